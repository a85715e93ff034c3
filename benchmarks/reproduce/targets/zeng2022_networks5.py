"""Table 5 of Zeng et al. 2022: the two networks."""

from functools import partial

from benchmarks.reproduce import zeng_networks
from benchmarks.reproduce.results import Target

TARGET = Target(
    name="zeng2022-networks5",
    paper="Zeng et al. 2022",
    title="Table 5, simulated data: NLNN and NAL",
    about=zeng_networks.ABOUT,
    run=partial(zeng_networks.run, 5),
    scales=zeng_networks.SCALES,
    why="See [the experiment on the networks' training](#why-the-networks-differ).",
)
