"""Table 5 of Zeng et al. 2022: naive Bayes, INB and the true parameters."""

from functools import partial

from benchmarks.reproduce import zeng_table
from benchmarks.reproduce.results import Target

TARGET = Target(
    name="zeng2022-table5",
    paper="Zeng et al. 2022",
    title="Table 5, simulated data: NB, INB, NB-T",
    about=zeng_table.ABOUT,
    run=partial(zeng_table.run, 5),
    scales=zeng_table.SCALES,
    why=zeng_table.WHY,
)
