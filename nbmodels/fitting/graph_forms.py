"""Forms of the noise matrix on a graph: one error rate, or a full matrix, by held-out labels.

Under each form there is an average of neighbour models of its own
(:mod:`nbmodels.fitting.stacked_graph`). Forms are compared by labels that had no part in the
average's weights, its calibration and the noise, and by the votes of two halves of the users
(:mod:`nbmodels.fitting.split_users`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.errors import Caution, IdentifiabilityWarning
from nbmodels.fitting.em import Fit
from nbmodels.fitting.errors_by_size import ErrorsBySize, errors_by_size
from nbmodels.fitting.identifiability import APART, POSSIBLE
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.paired_gains import surely
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.propagation import LabelledGraph, Propagated
from nbmodels.fitting.split_users import Halves, NoiseLevels, levels_of
from nbmodels.fitting.stacking import Mixture, mixtures

#: Labels that a full noise matrix needs for each of its cells to be tried.
_LABELS_A_CELL = 5

#: Standard errors by which a form is likelier under which a class has mostly wrong labels.
_SURELY = 2.0

#: Probability below which a form of the noise matrix counts nothing.
_LEAST_FORM = 0.02


class Form(NamedTuple):
    """What was found under one form of the noise matrix.

    Attributes:
        noise: the form.
        about: graph and labels.
        candidates: all that were tried.
        mixture: their average.
        weights: of each candidate in it.
        fit: calibration and noise, fitted to the average.
        held_out: ``(N,)`` log-probability of each label under an average whose weights, calibration
            and noise were learned from the labels of other folds.
        levels: the level of the noise by the votes of two halves of the users; None where the
            noise is known, or there are none but checked labels.
    """

    noise: Any
    about: LabelledGraph
    candidates: list[Propagated]
    mixture: Mixture
    weights: Float[np.ndarray, " c"]
    fit: Fit
    held_out: Float[np.ndarray, " n"]
    levels: NoiseLevels | None

    @property
    def evidence(self) -> Float[np.ndarray, " n"]:
        """What the form is compared by: each label's, and its part of the votes of both halves."""
        if self.levels is None:
            return self.held_out
        rows = self.about.weights * self.about.resp.any(1)
        return self.held_out + self.levels.marginal / max(float(rows.sum()), 1.0)


def forms_to_try(noise: Any, weights: np.ndarray, k: int) -> Sequence[Any]:
    """Forms of the noise matrix to try, the one with fewer parameters first.

    Args:
        noise: the form, or ``"auto"``.
        weights: ``(N,)`` row weights, 0 where there is no label.
        k: number of classes.
    """
    if not is_auto(noise):
        return [noise]
    enough = np.count_nonzero(weights) >= _LABELS_A_CELL * k * (k - 1)
    return ["symmetric", "full"] if enough and k > 1 else ["symmetric"]


def stacked(
    form: Any,
    about: LabelledGraph,
    candidates: list[Propagated],
    fold: Int[np.ndarray, " n"],
    halves: Halves | None,
    options: FitOptions,
) -> Form:
    """The average of candidates under a form, with what it is worth on held-out labels.

    Args:
        form: of the noise matrix.
        about: graph and labels under it.
        candidates: neighbour models.
        fold: ``(N,)`` fold of each item.
        halves: labels and the votes of each half of the users; None where no noise is learned.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    rows = about.weights * about.resp.any(1)
    # more candidates and a larger matrix fit better by chance: forms are compared on labels that
    # had no part in the weights, the calibration and the noise
    seen = [fold != f for f in range(int(fold.max()) + 1)]
    of_all, *of_folds = mixtures(
        candidates, np.stack([rows, *(rows * one for one in seen)]), about.shares
    )
    mixed, share = of_all
    predictions = about.predictions()
    (fit,) = predictions.calibrated([mixed.held_out()], options)
    parts = [part.held_out() for part, _ in of_folds]
    held_out = np.zeros(len(rows))
    begun = [fit] * len(seen)
    fits = predictions.calibrated(parts, options, seen, begun, second_start=False)
    for one, found in zip(seen, fits, strict=True):
        held_out[~one] = np.asarray(found.log_likelihood)[: len(rows)][~one]
    largest = 1.0 if about.errors is None else float(about.errors.relative.max())
    levels = None if halves is None else levels_of(matrix_of(fit), halves, largest)
    return Form(form, about, candidates, mixed, share, fit, held_out, levels)


def preferred_form(found: Sequence[Form]) -> Form:
    """The form under which held-out labels are likelier, among those that are admitted."""
    best = found[0]
    for other in found[1:]:
        known, instead = best.about.identified(best.fit), other.about.identified(other.fit)
        better = instead == known and _better(other, best)
        if better or (instead and not known):
            best = other
    return best


def _better(other: Form, best: Form) -> bool:
    """Whether labels are likelier; surely so where those of a class may be mostly wrong.

    Of many classes, one with few labels has less than half of them right by chance.
    """
    rows = other.about.resp.any(1) & (other.about.weights > 0)
    gains, weights = (other.evidence - best.evidence)[rows], other.about.weights[rows]
    if _mostly_right(other):
        return bool(weights @ gains > 0)
    return credible(other) and surely(gains, weights, _SURELY)


def _mostly_right(found: Form) -> bool:
    """Whether most labels of every class are right.

    Weak scores let a full matrix explain more than the noise, as far as it is diagonally dominant.
    """
    return bool(np.diag(matrix_of(found.fit)).min() > 0.5)


def form_weights(chosen: Form, found: Sequence[Form]) -> list[float]:
    """Posterior probabilities of the forms, by held-out labels and halves of users (pseudo-BMA)."""
    return _weights(chosen, found, [one.evidence for one in (chosen, *found)])


def _weights(
    chosen: Form, found: Sequence[Form], evidence: Sequence[Float[np.ndarray, " n"]]
) -> list[float]:
    """Probabilities of forms by their evidence, that of the chosen one first."""
    weights = chosen.about.weights * chosen.about.resp.any(1)
    out = []
    for one, own in zip(found, evidence[1:], strict=True):
        admitted = one is chosen or (credible(one) and _mostly_right(one))
        p = pseudo_bma(own, evidence[0], weights) if admitted else 0.0
        out.append(p / (1 - p) if p >= _LEAST_FORM else 0.0)
    return [one / sum(out) for one in out]


def undecided(chosen: Form, found: Sequence[Form], shares: Sequence[float]) -> tuple[Caution, ...]:
    """A warning where another form may be right, and finds another share of right labels.

    A form is possible if it is by held-out labels alone: halves of users may show nothing.
    """
    if len(found) == 1:
        return ()
    alone = _weights(chosen, found, [one.held_out for one in (chosen, *found)])
    shares = [max(both) for both in zip(shares, alone, strict=True)]
    right = [float(np.diag(matrix_of(one.fit)).mean()) for one in found]
    at = [one is chosen for one in found].index(True)
    for i, share in enumerate(shares):
        if i != at and share >= POSSIBLE and abs(right[i] - right[at]) >= APART:
            sentence = (
                f"the noise is hardly identified: held-out labels are about as likely where "
                f"{right[i]:.0%} of the labels are right ({found[i].noise} noise) as where "
                f"{right[at]:.0%} are ({chosen.noise}); corrected labels are averaged over both, "
                "the noise matrix is of the latter"
            )
            return (Caution(IdentifiabilityWarning, sentence),)
    return ()


def credible(found: Form) -> bool:
    """Whether classes kept their names and items, and most labels are right."""
    labels = found.about.resp
    # where they are shares of several classes, the likeliest
    given = np.asarray(found.fit.resp)[np.arange(len(labels)), labels.argmax(1)]
    rows = found.about.weights * labels.any(1)
    return found.about.identified(found.fit) and rows @ given >= 0.5 * rows.sum()


def errors_of_form(found: Form, codes: Int[np.ndarray, " n"]) -> ErrorsBySize | None:
    """Error rates by the number of users, by the average's scores; None where there are none.

    Args:
        found: a form of the noise and its average.
        codes: ``(N,)`` given labels, negative where there is none.
    """
    scores, degree = found.mixture.held_out(), np.diff(found.about.graph.edges.indptr)
    about = codes, found.about.weights, matrix_of(found.fit), degree
    return errors_by_size(scores, *about)


def matrix_of(fitted: Fit) -> Float[np.ndarray, "k k"]:
    """Noise matrix of a fit, ``[true, observed]``."""
    found = fitted.transitions["labels"]
    return np.asarray(found, float)
