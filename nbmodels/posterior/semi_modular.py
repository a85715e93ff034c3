"""Semi-modular posterior: cut and joint posterior pooled, and a test of the feedback.

The cut posterior holds where the model of the features does not; the joint one is narrower where it
does. Semi-modular inference lies between them (Carmona and Nicholls 2020, AISTATS). Here it is a
linear opinion pool, as in Frazier and Nott 2024 ("Posterior risk of modular and semi-modular
Bayesian inference", arXiv:2301.10911): a draw is one of the joint posterior with probability ``w``,
else one of the cut.

The weight is the tail area of the cut posterior at the joint mean: the share of the cut's draws
``theta`` with ``|theta - E_cut theta| >= |E_joint theta - E_cut theta|``, over the cells of all
noise matrices. It is one where the two agree, and falls to zero as their distance leaves the spread
of the cut. The weight of least squared error, ``min(1, tr(S_cut - S_joint)+ / |d|^2)`` with ``d``
the difference of the means and ``S`` the covariances (Frazier and Nott; Judge and Mittelhammer
2004, JASA 99), needs a cut that varies more than the joint posterior if that is right (Hausman
1978, Econometrica 46). Here it often does not, since it conditions on the features' scores; the two
weights are compared in ``benchmarks/semi_modular.py``.

The same tail area is the p-value of a test of the feedback, a conflict check by simulation. If the
joint model is right, ``d`` varies by ``S_cut - S_joint``, less than the draws of the cut do, so
that the test is conservative as far as the spread of the cut is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray

from nbmodels.errors import Caution, PosteriorWarning, issue
from nbmodels.posterior.opinion_pool import DRAWN, opinion_pool

if TYPE_CHECKING:
    from xarray import DataTree

#: Tail area from which on the two posteriors disagree.
CONFLICT = 0.05


class Pooling(NamedTuple):
    """How far the joint posterior counts, and whether the two agree.

    Attributes:
        weight: share of the cut's draws that are as far from their mean as the joint mean is; the
            p-value of the test, and the probability by which a draw is of the joint posterior.
        distance: root of the summed squared differences between the means of the noise matrices.
    """

    weight: float
    distance: float


def pooling(cut: DataTree, joint: DataTree) -> Pooling:
    """Weight and test, by the draws of all noise matrices.

    Args:
        cut: draws of the cut posterior.
        joint: draws of the joint posterior of the same noise matrices.
    """
    first, second = _noise(cut), _noise(joint)
    centre = first.mean(0)
    distance = float(np.sum(np.square(second.mean(0) - centre)))
    beyond = np.count_nonzero(np.sum(np.square(first - centre), 1) >= distance)
    # the observed distance is one more draw under the hypothesis
    return Pooling((1 + beyond) / (1 + len(first)), float(np.sqrt(distance)))


def mixed(cut: DataTree, joint: DataTree, rng: np.random.Generator) -> DataTree:
    """The pooled posterior, of what both have.

    Draws of different lengths (an interruption) are cut to the shorter. Log-likelihoods are left
    out: one is of the labels given the features, the other of both.

    Args:
        cut: draws of the cut posterior.
        joint: of the joint one.
        rng: NumPy generator.

    Returns:
        the tree, with ``from_joint`` among ``sample_stats``; its ``attrs`` have
        ``feedback_weight`` and ``feedback_distance``, see :class:`Pooling`.

    Warns:
        PosteriorWarning: the two posteriors disagree.
    """
    how = pooling(cut, joint)
    drawn = [name for name in DRAWN if name != "log_likelihood"]
    out = opinion_pool([joint, cut], [how.weight, 1 - how.weight], rng, drawn)
    of_joint = out["sample_stats"]["component"] == 0
    out["sample_stats"] = xarray.DataTree(xarray.Dataset({"from_joint": of_joint}))
    about = cut.attrs
    kept = ("method", "assumes", "row_weights", "correction")
    out.attrs = {name: about[name] for name in kept if name in about}
    share = f"{how.weight:.2g} {joint.attrs['kind']}, {1 - how.weight:.2g} {about['kind']}"
    out.attrs["kind"] = f"semi-modular: {share}"
    out.attrs.update(
        feedback="mixed",
        feedback_weight=how.weight,
        feedback_distance=how.distance,
    )
    cautions = conflict(how)
    lines = [cut.attrs["warnings"], joint.attrs["warnings"], *(c.message for c in cautions)]
    out.attrs["warnings"] = "\n".join(dict.fromkeys(filter(None, lines)))
    issue(cautions)
    return out


def conflict(how: Pooling) -> tuple[Caution, ...]:
    """A warning where the joint mean lies in the tail of the cut posterior."""
    if how.weight > CONFLICT:
        return ()
    message = (
        "the joint posterior of the noise matrix disagrees with the cut one "
        f"(p = {how.weight:.2g}): the model of the features does not hold, or the cut, which "
        "conditions on scores of the features, is too narrow"
    )
    return (Caution(PosteriorWarning, message),)


def _noise(tree: DataTree) -> np.ndarray:
    """``(draws, cells)`` of all noise matrices."""
    posterior = tree["posterior"].to_dataset()
    names = sorted(str(n) for n in posterior.data_vars if str(n).endswith("noise_matrix"))
    flat = [posterior[n].to_numpy().reshape(-1, posterior[n][0, 0].size) for n in names]
    return np.concatenate(flat, 1)
