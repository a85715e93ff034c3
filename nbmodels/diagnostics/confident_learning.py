"""Confident learning: a second estimate of the noise matrix, beside the latent-class model.

Confident learning (Northcutt, Jiang and Chuang 2021, Journal of Artificial Intelligence Research
70) counts: an item is assigned to class k if a classifier gives k out of fold at least the
probability that it gives the items labelled k on average. It has no model of the features, and
errs in other ways than EM: where the two agree, the estimate is the more credible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from nbmodels.data.readable import Readable

#: Share of the labels, beyond that of the most frequent class, which a classifier predicts that has
#: learned anything of them.
_LEAST_GAIN = 0.02


def confident_joint(
    probs: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "k k"]:
    """Confident joint: ``(K, K)`` counts ``[given, true]`` (Northcutt 2021, eqs. (1) and (2)).

    Args:
        probs: ``(N, K)`` P(label | features) by a classifier that has not seen the item.
        codes: ``(N,)`` given labels.
    """
    k = probs.shape[1]
    inside = np.eye(k)[codes]
    count = inside.sum(0)
    # a classifier that has not seen a class's only label does not know the class: the mean
    # self-confidence of such a class, or of one that never occurs, is not reached
    own = (inside * probs).sum(0) / np.maximum(count, 1)
    threshold = np.where(count > 1, own, np.inf)
    above = probs >= threshold - 1e-6
    likeliest = np.where(above, probs, -np.inf).argmax(1)
    sure = above.any(1)
    joint = np.zeros((k, k))
    np.add.at(joint, (codes[sure], likeliest[sure]), 1)
    # no class may be empty: an item of it stands for itself
    diagonal = np.arange(k)
    joint[diagonal, diagonal] = np.maximum(joint[diagonal, diagonal], 1)
    return joint


def calibrated(
    joint: Float[np.ndarray, "k k"], codes: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "k k"]:
    """``(K, K)`` P(given, true): rows scaled to the given labels' counts (eq. (3))."""
    counts = np.bincount(codes, minlength=len(joint))
    rows = joint * (counts / joint.sum(1))[:, None]
    return rows / rows.sum()


@dataclass(frozen=True)
class SecondOpinion(Readable):
    """Two noise matrices beside each other.

    Attributes:
        ours: ``(K, K)`` frame ``[observed, true]``, P(observed | true), of the latent-class model.
        theirs: the same by confident learning.
        total_variation: by true class, half the sum of the absolute differences of its column.
        largest: observed class, true class and difference (ours less theirs) of the largest cell.
        disagreement: share of the given labels that one takes for right and the other for wrong.
        share_wrong: expected shares of wrong labels, ours and theirs.
        predictive: whether its classifier predicts held-out labels better than their shares do.

    Examples:
        Of 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> opinion = model.second_opinion(lengths, y)
        >>> print(opinion.ours.round(1))  # P(observed | true)
        true      ant  bee
        observed
        ant       0.8  0.2
        bee       0.2  0.8
        >>> print([f"{share:.0%}" for share in opinion.share_wrong])  # ours and theirs
        ['19%', '21%']
    """

    ours: pd.DataFrame
    theirs: pd.DataFrame
    total_variation: pd.Series
    largest: tuple[Any, Any, float]
    disagreement: float
    share_wrong: tuple[float, float]
    predictive: bool

    @property
    def sentence(self) -> str:
        """Both estimates, as a sentence, if that by confident learning means anything."""
        if not self.predictive:
            return (
                "there is none, since the classifier of confident learning predicts held-out "
                "labels no better than the shares of the classes do."
            )
        given, true, _ = self.largest
        ours, theirs = self.ours.loc[given, true], self.theirs.loc[given, true]
        worst = self.total_variation.idxmax()
        return (
            f"This model estimates that {100 * self.share_wrong[0]:.1f} % of the labels are wrong, "
            f"confident learning {100 * self.share_wrong[1]:.1f} %; they disagree about "
            f"{100 * self.disagreement:.1f} % of the labels. Their noise matrices differ most for "
            f"true class {worst} (total variation "
            f"{self.total_variation.max():.2f}); the largest gap is P({given} | {true}): "
            f"{ours:.2f} against {theirs:.2f}."
        )

    def table(self) -> pd.DataFrame:
        """A row a true class: how often it is labelled right, by both, and the distance."""
        return pd.DataFrame(
            {
                "right, this model": np.diag(self.ours),
                "right, confident learning": np.diag(self.theirs),
                "total variation": self.total_variation,
            },
            index=self.total_variation.index,
        )


def second_opinion(
    noise_matrix: Float[np.ndarray, "observed k"],
    label_posterior: Float[np.ndarray, "n k"],
    probs: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    names: Any,
) -> SecondOpinion:
    """The noise matrix of the latent-class model beside that of confident learning.

    Args:
        noise_matrix: ``(K, K)`` ``[observed, true]``, ours.
        label_posterior: ``(N, K)`` P(true class | everything), ours.
        probs: ``(N, K)`` out-of-fold P(given label | features) of a classifier.
        codes: ``(N,)`` given labels.
        names: ``(K,)`` names of the classes.
    """
    joint = calibrated(confident_joint(probs, codes), codes)
    mass = joint.sum(0)
    theirs = joint / np.where(mass > 0, mass, 1)
    index = pd.Index(names, name="observed")
    columns = pd.Index(names, name="true")
    gap = noise_matrix - theirs
    row, column = np.unravel_index(int(np.argmax(np.abs(gap))), gap.shape)
    rows = np.arange(len(codes))
    wrong = label_posterior.argmax(1) != codes
    share = 1 - label_posterior[rows, codes].mean()
    return SecondOpinion(
        pd.DataFrame(noise_matrix, index, columns),
        pd.DataFrame(theirs, index, columns),
        pd.Series(np.abs(gap).sum(0) / 2, columns, name="total_variation"),
        (names[row], names[column], float(gap[row, column])),
        float(np.mean(wrong != wrong_labels(probs, codes, joint))),
        (float(share), float(1 - np.trace(joint))),
        _predictive(probs, codes),
    )


def _predictive(probs: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]) -> bool:
    """Whether out-of-fold predictions are likelier than the classes' shares, or hit more labels."""
    n, shares = len(codes), np.bincount(codes, minlength=probs.shape[1]) / len(codes)
    own = np.maximum(probs[np.arange(n), codes], np.finfo(float).eps)
    hits = np.mean(probs.argmax(1) == codes)
    return bool(np.log(own / shares[codes]).mean() > 0 or hits > shares.max() + _LEAST_GAIN)


def wrong_labels(
    probs: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    joint: Float[np.ndarray, "k k"],
) -> Bool[np.ndarray, " n"]:
    """``(N,)`` labels that confident learning prunes, by class (their method ``prune by class``).

    Of the items labelled j, as many as are wrong under the joint, those of least self-confidence.

    Args:
        probs: ``(N, K)`` out-of-fold probabilities.
        codes: ``(N,)`` given labels.
        joint: ``(K, K)`` P(given, true).
    """
    out = np.zeros(len(codes), bool)
    for j in range(len(joint)):
        rows = np.flatnonzero(codes == j)
        wrong = round((joint[j].sum() - joint[j, j]) * len(codes))
        least = np.argsort(probs[rows, j], kind="stable")[:wrong]
        out[rows[least]] = True
    return out
