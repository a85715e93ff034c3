"""A model of which items are labelled, where that depends on their class.

That labels are missing by the class, and not by the features, is borne out if classes predict which
items are labelled about as well as the features themselves do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse, stats
from scipy.special import betaln
from sklearn.utils import _safe_indexing

from nbmodels.channels import LabellingRates
from nbmodels.core.component import Component
from nbmodels.core.model import Data
from nbmodels.data.features import without_marker
from nbmodels.data.validation import in_pandas, plain
from nbmodels.diagnostics.reference_classifier import reference_classifier
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.copied_rows import among
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_sources import CANDIDATES, LABELLED, LabelSource, Settings, coded
from nbmodels.fitting.labelled_at_random import LEVEL, UnlabelledShares, unlabelled_shares
from nbmodels.fitting.points import points
from nbmodels.fitting.scores import draw_folds

#: Name of the finding.
FINDING = "missing labels"

#: Components of labels, and of which items have one.
_OF_LABELS = {CANDIDATES, LABELLED, "labels", "trusted"}

#: Standard errors by which features must predict better which items are labelled, and folds. In 69
#: fits where labels were missing by the class it was half of one at most (1.3 in another), in 34
#: where they were missing by the features one at least.
_ERRORS, _FOLDS = 0.75, 5

#: Least probability, where a prediction is compared.
_LEAST = 1e-3


#: Of a fit that was interrupted before another one could be compared.
_STOPPED = Caution(
    INTERRUPTED.category,
    "interrupted while rates of labelling by class were fitted; labels are taken for missing at "
    "random",
)


def _rates(n_classes: int, settings: Settings) -> Component:
    return LabellingRates.even(n_classes)


def allowing_for_missing(
    trained: Callable[[Mapping[str, LabelSource]], FittedModel],
    known: Bool[np.ndarray, " n"],
    X: Any,
    marker: Any = None,
) -> FittedModel:
    """A fit, with rates of labelling by class where labels are not missing at random.

    Args:
        trained: the fit, with sources beside those of the estimator.
        known: ``(N,)`` whether something is known of an item's class.
        X: features, as they were given. Where they are neither a table nor texts, nothing can be
            said of what they predict, and labels are taken for missing at random.
        marker: of missing cells.
    """
    fitted = trained({})
    shares = None if fitted.interrupted else unlabelled_shares(fitted, known)
    if shares is None or not shares.may_differ:
        return fitted
    items = _as_table(X)
    if items is None:
        return fitted
    try:
        again = trained({LABELLED: coded(_rates, known.astype(int), 2)})
        if again.interrupted:
            raise KeyboardInterrupt
        if not _likelier(fitted, again, known, shares):
            return fitted
        rates = np.exp(np.asarray(again.fit.point_of(LABELLED), float))[:, 1]
        by_class = _explained(again, known, without_marker(in_pandas(items), marker), rates)
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True, cautions=(*fitted.cautions, _STOPPED))
    if not by_class:
        return replace(fitted, cautions=(*fitted.cautions, _by_features(fitted, shares)))
    return replace(again, cautions=(*again.cautions, _by_class(again, rates)))


def as_new_items(
    fitted: FittedModel, learned: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k"]:
    """What a classifier of the labelled rows is calibrated to, so that it suits new items.

    Args:
        fitted: the fit.
        learned: ``(N, K)`` P(true class) of the rows that it learned from, zeros elsewhere.

    Returns:
        ``(N, K)`` the same; P(true class) of all rows where labels are missing by the class, so
        that labelled rows have other shares than new ones.
    """
    return fitted.label_posterior if LABELLED in fitted.fit.model else learned


def _likelier(
    fitted: FittedModel, again: FittedModel, known: Bool[np.ndarray, " n"], shares: UnlabelledShares
) -> bool:
    """Whether rates by class are surely likelier than one rate: a likelihood ratio test."""
    if bool(fitted.scored) != bool(again.scored) and fitted.counterpart is not None:
        fitted = fitted.counterpart
    # likelihoods under other scores compare with nothing
    if fitted.scored != again.scored or (fitted.scored and fitted.chosen != again.chosen):
        return shares.differ
    weights = np.asarray(fitted.data.weights, float)[: len(known)]
    channel: Any = again.fit.model[LABELLED]
    pseudo = np.asarray(channel.prior.concentration, float)[0]
    number = np.array([weights @ ~known, weights @ known])
    rate, k = number / number.sum(), len(fitted.names)
    if again.fit.rule == "vb":  # the marginal likelihood, of which the objective is a bound
        alone = float(betaln(*(pseudo + number)) - betaln(*pseudo))
    else:
        alone = float(number @ np.log(rate))
        if again.fit.rule == "map":
            alone += k * float(stats.dirichlet(pseudo).logpdf(rate))
    gain = float(again.fit.objective - fitted.fit.objective) - alone
    return bool(stats.chi2.sf(2 * max(gain, 0.0), k - 1) < LEVEL) and shares.matter


def _explained(
    fitted: FittedModel, known: Bool[np.ndarray, " n"], X: Any, rates: Float[np.ndarray, " k"]
) -> bool:
    """Whether classes predict which items are labelled about as well as their features do."""
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    n = len(known)
    weights = np.asarray(fitted.data.weights, float)[:n]
    rows = np.flatnonzero(weights > 0)
    parts = {name: part for name, part in fitted.data.parts.items() if name not in _OF_LABELS}
    by_class = (fitted.predict(Data(parts, fitted.data.weights))[:n] @ rates)[rows]
    x, y = _safe_indexing(X, rows), known[rows]
    copies = None if fitted.copies is None else among(fitted.copies, rows)
    how = {"cv": PredefinedSplit(_folds(y, copies)), "method": "predict_proba"}
    by_features = cross_val_predict(reference_classifier(x), x, y, **how)[:, 1]
    logs = [np.log(np.clip(np.where(y, p, 1 - p), _LEAST, 1)) for p in (by_features, by_class)]
    gain = weights[rows] * (logs[0] - logs[1])
    return bool(gain.sum() <= _ERRORS * np.sqrt(np.square(gain).sum()))


def _as_table(X: Any) -> Any:
    """Features as rows that a classifier of tables takes; None where there is no such coding."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    return X if np.ndim(X) == 2 else points(X)


def _folds(
    labelled: Bool[np.ndarray, " n"], copies: Int[np.ndarray, " n"] | None
) -> Int[np.ndarray, " n"]:
    """Fold of each row; groups stay together unless some fold would leave one outcome alone."""
    table = np.eye(2)[labelled.astype(int)]
    fold = draw_folds(table, _FOLDS, copies)
    left = [np.unique(labelled[fold != f]) for f in np.unique(fold)]
    return fold if min(map(len, left)) == 2 else draw_folds(table, _FOLDS)


def _by_class(fitted: FittedModel, rates: Float[np.ndarray, " k"]) -> Caution:
    most, least = int(rates.argmax()), int(rates.argmin())
    one, other = (repr(plain(fitted.names[k])) for k in (most, least))
    sentence = (
        f"labels are not missing at random: {rates[most]:.0%} of the items of class {one} have one "
        f"and {rates[least]:.0%} of {other}, which the fit allows for"
    )
    return Caution(VerdictWarning, sentence, FINDING)


def _by_features(fitted: FittedModel, shares: UnlabelledShares) -> Caution:
    far = int(np.abs(shares.own - shares.fitted).argmax())
    sentence = (
        "whether an item has a label depends on its features: of those without one "
        f"{shares.fitted[far]:.0%} are of class {plain(fitted.names[far])!r}, where labels are "
        f"missing at random given the features, and {shares.own[far]:.0%} if they depend on the "
        "class"
    )
    return Caution(VerdictWarning, sentence, FINDING)
