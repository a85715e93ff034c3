"""Two ends of what labels allow: is a fit's share of wrong labels that of near items' votes?

Errors that depend on the features and classes that overlap have one likelihood, so that neither end
can be rejected for its share of wrong labels alone. What can be tested is which end predicts an
item's label better from everything else. Where classes that do not overlap surely do, better than
the fit and than the shares of the neighbours' labels themselves, the class says all that there is
to say of a label, and the fit takes errors for overlap, or overlap for errors. The shares stand for
any overlap: a fit may predict labels badly for reasons of its own. Labels that were checked by hand
decide where they contradict an end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.checks.checked import CheckedEnds
from nbmodels.diagnostics.findings import SEPARABLE, SHAPE, TWO_ENDS

#: Difference between the shares that matters, and standard errors that it must exceed.
_LEAST, _ERRORS = 0.02, 2.0

#: Ratio of the shares from which on a fit is rejected, or the share not identified: overlap raises
#: the other end's, and where clusters are many, classes that do not overlap predict labels better
#: anyway. Also of the least other estimate to the matrix's from which on the matrix is too clean.
_TIMES = 2.0

#: Ratio of the least other estimate to the fit's from which on it expects too few wrong labels.
_TOO_FEW = 3.0


@dataclass(frozen=True)
class Ends:
    """A fit beside the model whose classes are functions of the features.

    Attributes:
        independent: share of wrong labels by the fit, of the items whose neighbours were found.
        separable: share of wrong labels by the votes of neighbours.
        gain: ``(n,)`` by item, log-probability of its label given everything else, by distinct
            classes less that by the fit.
        over_shares: ``(n,)`` the same, less that by the shares of its neighbours' labels.
        weights: ``(n,)`` row weights, above 0.
        checked: labels that were checked by hand beside both ends; None without enough of them.
        matrix: share of wrong labels by the fit's noise matrix.
        shape: the same by the shape of the classes; NaN where that says nothing.
        changed: share of the labels in whose place another one is suggested.
        contradicted: share of the labels that a nonlinear classifier of other items' labels
            contradicts; NaN where there is none.
        widest: ``separable`` by the number of neighbours by which most labels are wrong.
        every: ``independent`` of all items, which sentences state; NaN where those are all.
    """

    independent: float
    separable: float
    gain: Float[np.ndarray, " n"]
    over_shares: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    checked: CheckedEnds | None = None
    matrix: float = np.nan
    shape: float = np.nan
    changed: float = np.nan
    contradicted: float = np.nan
    widest: float = np.nan
    every: float = np.nan

    @property
    def by_fit(self) -> float:
        """Share of wrong labels by the fit, of all items, as ``noise_range_`` has it."""
        return self.independent if np.isnan(self.every) else self.every

    @property
    def without_overlap(self) -> float:
        """Largest share of wrong labels if classes do not overlap, as ``noise_range_`` has it."""
        return float(np.fmax(self.separable, self.widest))

    @property
    def differ(self) -> bool:
        """Whether the shares differ by more than chance, and enough to matter."""
        shares = np.array([self.independent, self.separable])
        spread = np.sqrt(np.sum(shares * (1 - shares)) / self.weights.sum())
        return bool(abs(np.diff(shares)[0]) > max(_LEAST, _ERRORS * spread))

    @property
    def least_estimate(self) -> float:
        """Least other estimate of the share of wrong labels: by shape, neighbours or classifier.

        Overlap alone makes near items and a nonlinear classifier contradict labels. The shape of
        the classes separates overlap from errors where classes are of one cluster each, and is led
        astray where they are not; the other two then contradict few labels.
        """
        return float(np.nanmin([self.shape, self.separable, self.contradicted]))

    @property
    def in_matrix(self) -> bool:
        """Whether the noise matrix has the errors that all three estimates find."""
        return bool(_TIMES * self.matrix >= self.least_estimate)

    def expects_too_few(self, threshold: float) -> bool:
        """Whether all three estimates are surely above the fit's share, and three times as large.

        Labels that were checked and contradict an end decide instead.

        Args:
            threshold: by which the least of them must exceed the fit's share.
        """
        if self.checked is not None and self.checked.decided:
            return False
        wrong = self.least_estimate
        surely = wrong - _ERRORS * np.sqrt(wrong * (1 - wrong) / self.weights.sum())
        expected = self.independent
        return bool(surely > expected + threshold and wrong > _TOO_FEW * expected)

    @property
    def z(self) -> float:
        """Mean gain in standard errors; over the shares of neighbours' labels, if that is less."""
        return min(self._z(self.gain), self._z(self.over_shares))

    def _z(self, gain: Float[np.ndarray, " n"]) -> float:
        mean = np.average(gain, weights=self.weights)
        spread = np.sqrt(np.sum(self.weights**2 * (gain - mean) ** 2)) / self.weights.sum()
        return float(mean / max(spread, np.finfo(float).tiny))


def _ends(at: Ends, threshold: float) -> Measurement:
    effect = at.separable - at.independent
    few, many = sorted([at.separable, at.independent])
    far = bool(at.differ and abs(effect) > threshold and many > _TIMES * few)
    # the fit is borne out by the checks, and the other end is not
    borne_out = at.checked is not None and at.checked.contradicted == (False, True)
    bad = far and at.z > _ERRORS and not borne_out
    undecided = far and not bad and not (at.checked is not None and at.checked.decided)
    return Measurement(effect, bad, at.differ, statistic=at.z, undecided=undecided)


def _both_shares(at: Ends) -> str:
    """Both shares in words: of the other end that of ``noise_range_``, in every sentence."""
    return (
        f"{100 * at.by_fit:.1f} % of the given labels are wrong by this fit, and "
        f"{100 * at.without_overlap:.1f} % {SEPARABLE}"
    )


def _sentence(at: Ends, found: Measurement) -> str:
    shares = _both_shares(at)
    if found.bad:
        sentence = f"{shares}, which predicts held-out labels surely better"
        if found.effect * (at.without_overlap - at.by_fit) < 0:
            return sentence
        taken = "errors for overlap" if found.effect > 0 else "overlap for errors"
        return f"{sentence}: the fit takes {taken}"
    if at.checked is not None:
        return f"{shares}; {at.checked.clause}"
    return f"{shares}; labels and features cannot tell which"


def _shape(at: Ends, threshold: float) -> Measurement | None:
    """Whether all other estimates find errors where fit and noise matrix assume overlap."""
    if np.isnan(at.shape):
        return None
    bad = at.expects_too_few(threshold) and not at.in_matrix
    return Measurement(at.least_estimate - at.independent, bad, bad, share_only=bad)


def _shape_sentence(at: Ends, found: Measurement) -> str:
    return (
        f"{_both_shares(at)}; by the shape of the classes, taken to be normal along linear scores, "
        f"{100 * at.shape:.1f} % are: errors seem to follow the features, and the noise matrix to "
        "be too clean"
    )


def _staying(at: Ends, threshold: float) -> Measurement | None:
    """Whether labels stay though by the noise matrix and all other estimates many are wrong.

    Of a right fit to classes that overlap many labels stay, too, since their classes are not sure:
    it then expects the errors that it does not change.
    """
    if np.isnan(at.shape) or np.isnan(at.changed):
        return None
    bad = at.expects_too_few(threshold) and at.in_matrix
    return Measurement(at.least_estimate - at.independent, bad, bad, share_only=bad)


def _staying_sentence(at: Ends, found: Measurement) -> str:
    contradicted = (
        "the features surely predict others"
        if np.isnan(at.contradicted)
        else f"predictions from other items' labels contradict {percent(at.contradicted)} of them"
    )
    return (
        f"{100 * at.changed:.1f} % of the given labels are changed, though {contradicted}, and by "
        f"near items and the shape of the classes {100 * at.least_estimate:.1f} % or more are "
        "wrong: they stay since classes that overlap may explain that as well, and how many of "
        "them are wrong is not known"
    )


CHECKS: tuple[Check[Ends], ...] = (
    Check(
        TWO_ENDS,
        "Would as many labels be wrong if classes were functions of the features?",
        _ends,
        0.05,
        _sentence,
        always(remedies.NEIGHBOURS, remedies.AUDIT),
        "as many labels would be wrong if classes were functions of the features",
    ),
    Check(
        SHAPE,
        "Does the shape of the classes support overlap where the fit assumes overlap?",
        _shape,
        0.03,
        _shape_sentence,
        always(remedies.AUDIT, remedies.NEIGHBOURS),
        "the shape of the classes does not indicate errors that follow the features",
    ),
    Check(
        "labels that stay",
        "Are labels changed where by all other estimates many of them are wrong?",
        _staying,
        0.03,
        _staying_sentence,
        always(remedies.AUDIT, remedies.AUTO),
        "labels are changed where by all other estimates many of them are wrong",
    ),
)
