"""Labels given the out-of-fold scores of a classifier, in the place of a feature model.

A logistic regression, or a nonlinear classifier, of the labels as they are is the plain answer
where naive Bayes is refuted. Labels that flip at rates of their own leave the ranking of items by
P(given label | features) as it is (Menon et al. 2015), and so do positive items of which a share is
labelled (Elkan and Noto 2008). How the scores count and what the labels' channel does to the
classes are fitted together, the scores being of classifiers that have not seen the item's label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jaxtyping import Bool, Float

from inference import Status
from inference.arrays import on_device
from nbmodels.channels import CandidateSets
from nbmodels.channels.candidates import pack_candidates
from nbmodels.class_priors import Logistic
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.features import Block
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.errors import Caution, IdentifiabilityWarning, NotConvergedWarning
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.classifier_scores import Learner
from nbmodels.fitting.discriminative import LOG_SLOPE_SD, train_scored
from nbmodels.fitting.em import emissions_started
from nbmodels.fitting.fitted_model import FittedModel, RowClassifier, fitted_model
from nbmodels.fitting.holdout import compare_scores, held_out_by_fold
from nbmodels.fitting.label_sources import CANDIDATES, class_prior, padded_powers
from nbmodels.fitting.nonlinear_sets import NonlinearSets
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.plain import plain_classifier
from nbmodels.fitting.points import Coding, point_coding
from nbmodels.fitting.regression import (
    GRID,
    SPARSE_GRID,
    Regression,
    coded_block,
)
from nbmodels.fitting.scores import Candidate, draw_folds, label_responsibilities, with_score_prior

#: Number of folds of the regressions.
_FOLDS = 5

#: How a regression learns from label sets: each candidate class evenly, or by EM.
EVEN, BY_EM = "even", "em"

#: Estimators that classify in the place of a model of the features, and as sentences have them.
REGRESSION, NONLINEAR = "regression", "nonlinear"
CLASSIFIERS = {REGRESSION: "a logistic regression", NONLINEAR: "a nonlinear classifier"}

#: Why there is no nonlinear one.
NOT_NONLINEAR = (
    "estimator: 'nonlinear' requires dense columns, and at least 30 rows whose labels exclude a "
    "class"
)

_NOT_HELD_OUT = Caution(
    NotConvergedWarning,
    "interrupted before labels were held out of the fit; the fit to all of them is kept",
)


@dataclass(frozen=True)
class SetRegression(Regression):
    """Logistic regression of label sets.

    By EM (Jin and Ghahramani 2002) a class of a set counts as far as the regression has it, which
    is fitted anew to that, on the training rows alone; or each counts evenly.

    Attributes:
        possible: ``(N, K)`` what items may be.
        options: of the fits.
    """

    possible: Bool[np.ndarray, "n k"] = field(kw_only=True)
    options: FitOptions = field(kw_only=True)

    def out_of_fold(
        self,
        resp: np.ndarray,
        weights: np.ndarray,
        fold: np.ndarray,
        settings: Mapping[str, Any],
        folds: Sequence[int] | None = None,
    ) -> np.ndarray:
        if settings["sets"] == EVEN:
            return super().out_of_fold(resp, weights, fold, settings, folds)
        every = range(int(fold.max()) + 1)
        fits = self._by_em(resp.shape[1], [weights * (fold != f) for f in every], settings)
        out = np.zeros(resp.shape)
        for f, one in zip(every, fits, strict=True):
            out[fold == f] = self.scores(one)[fold == f]
        return out

    def learned(
        self, resp: np.ndarray, weights: np.ndarray, settings: Mapping[str, Any]
    ) -> tuple[Logistic, Any]:
        if settings["sets"] == EVEN:
            return super().learned(resp, weights, settings)
        return self._by_em(resp.shape[1], [weights], settings)[0]

    def _by_em(
        self, k: int, weights: Sequence[np.ndarray], settings: Mapping[str, Any]
    ) -> list[tuple[Logistic, Any]]:
        """Component and parameters under each of some row weights.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        design = self.design()
        length = design.x.shape[0]
        sets = pack_candidates(pad_rows(self.possible, length, True), k)
        model = {PRIOR: self.component(k, float(settings["C"])), CANDIDATES: CandidateSets.of(k)}
        parts = {PRIOR: design, CANDIDATES: sets}
        data = [Data(parts, on_device(pad_rows(one, length))) for one in weights]
        fits = self.options.without_restarts().fit_all([model] * len(data), data)
        host = partial(jax.tree.map, np.asarray)
        return [(host(model[PRIOR]), host(finished(one).params[PRIOR])) for one in fits]


class CodedLearner(Learner, Protocol):
    """A classifier of training rows that are coded as points, and of new ones."""

    def classifier(
        self, coding: Coding, resp: np.ndarray, weights: np.ndarray, settings: Mapping[str, Any]
    ) -> RowClassifier:
        """The classifier of new rows, learned from all training rows.

        Args:
            coding: by which rows became points.
            resp: ``(N, K)`` responsibilities to learn from.
            weights: ``(N,)`` row weights.
            settings: those of the classifier among them.
        """


@dataclass(frozen=True)
class Coded:
    """A classifier of a table's columns, a regression or one that is nonlinear.

    Attributes:
        coding: of the columns, for new rows, too.
        learner: of the training rows.
        grid: values of its settings that are compared, the cautious one first.
        name: of the estimator that it is.
    """

    coding: Coding
    learner: CodedLearner
    grid: Mapping[str, Sequence[Any]]
    name: str = REGRESSION

    @classmethod
    def of(cls, build: ModelBuilder, *, symbols: bool) -> Coded:
        """A regression of the labels.

        Args:
            build: of the models of a table.
            symbols: whether numbers are symbols, too.
        """
        coding, points = _as_points(build, symbols)
        return cls(coding, Regression(points, {}), _grid(points))

    @classmethod
    def of_sets(cls, build: ModelBuilder, options: FitOptions, *, symbols: bool) -> Coded:
        """A regression of label sets.

        Args:
            build, symbols: see :meth:`of`.
            options: of the fits.
        """
        coding, points = _as_points(build, symbols)
        possible = build.labels[CANDIDATES].values
        learner = SetRegression(points, {}, possible=possible, options=options)
        return cls(coding, learner, {"sets": (EVEN, BY_EM), **_grid(points)})

    @classmethod
    def nonlinear_of_sets(cls, build: ModelBuilder, *, symbols: bool) -> Coded | None:
        """A nonlinear classifier of label sets; None of sparse columns, or of few sets.

        Args:
            build, symbols: see :meth:`of`.
        """
        coding, points = _as_points(build, symbols)
        possible = build.labels[CANDIDATES].values
        return cls._nonlinear(build, coding, points, possible)

    @classmethod
    def nonlinear(cls, build: ModelBuilder, *, symbols: bool) -> Coded | None:
        """A nonlinear classifier of labels, each of which is a set of one; None as of sets.

        Args:
            build, symbols: see :meth:`of`.
        """
        given = _labels(build).given
        possible = (given > 0) | ~given.any(1, keepdims=True)
        return cls._nonlinear(build, *_as_points(build, symbols), possible)

    @classmethod
    def _nonlinear(
        cls,
        build: ModelBuilder,
        coding: Coding,
        points: Block,
        possible: Bool[np.ndarray, "n k"],
    ) -> Coded | None:
        learner = NonlinearSets.of(points.x, possible, build.weights, build.copies)
        return None if learner is None else cls(coding, learner, {}, NONLINEAR)

    def held_by(self, fitted: FittedModel, build: ModelBuilder, rule: Any) -> FittedModel:
        """A fit that was selected with the classifier for new rows, and emissions by its classes.

        Args:
            fitted: of the labels, given the classifier's scores.
            build: of the models of the table.
            rule: of the fit.
        """
        assert fitted.learned_from is not None
        about = fitted.learned_from, build.weights, fitted.settings
        model, data, _ = build({})
        emissions = {name: model[name] for name in build.features}
        resp = pad_rows(fitted.label_posterior, len(data.weights))
        params = emissions_started(emissions, resp, data, rule)
        host = partial(jax.tree.map, np.asarray)
        whole = replace(
            fitted.fit,
            model={**fitted.fit.model, **host(emissions)},
            params={**fitted.fit.params, **host(params)},
        )
        # scores name the classes, even one that is labelled as the other more often than not
        named = {
            one
            for one in fitted.fit.cautions(fitted.names)
            if one.category is IdentifiabilityWarning
        }
        return replace(
            fitted,
            fit=whole,
            scored=build.features,
            cautions=tuple(one for one in fitted.cautions if one not in named),
            regression=self.learner.classifier(self.coding, *about),
        )


def _as_points(build: ModelBuilder, symbols: bool) -> tuple[Coding, Block]:
    block = build.block
    coding = point_coding(block.x, block.missing, symbols)
    assert coding is not None  # a table
    return coding, coded_block(coding, block)


def _grid(points: Block) -> dict[str, Sequence[Any]]:
    return {"C": SPARSE_GRID if points.is_sparse else GRID}


def train_on_scores(
    build: ModelBuilder, names: np.ndarray, options: FitOptions, coded: Coded
) -> FittedModel:
    """The labels' channels given a classifier's scores, its settings selected by held-out labels.

    New rows are predicted after :meth:`Coded.held_by`, a training more.

    Args:
        build: of the models of the table.
        names: ``(K,)`` names of the classes.
        options: of the fits.
        coded: the classifier.
    """
    fitted = train_scored(
        coded.learner,
        build.settings({}),
        coded.grid,
        build.labels,
        names,
        build.weights,
        options,
        rounds=0,
        cv=_FOLDS,
        own=tuple(coded.grid),
        copies=build.copies,
    )
    return replace(fitted, chosen={**fitted.chosen, "estimator": coded.name})


def train_positive_unlabelled(
    build: ModelBuilder, names: np.ndarray, options: FitOptions, coded: Coded
) -> FittedModel:
    """Labels of one class given a classifier of labelled against unlabelled items.

    P(labelled | x) is P(positive | x) times the share of positive items that is labelled, at which
    it levels off where the class is sure: the share is learned from that, together with the
    calibration. The mean of the scores of labelled items, by which Elkan and Noto 2008 estimate it,
    is right where classes do not overlap, and too low elsewhere. There is no floor of labels as
    they are: an unlabelled item may be of either class.

    Args:
        build, names, options, coded: see :func:`train_on_scores`.

    Returns:
        the fit; where it was interrupted, with no log-probabilities of held-out labels.

    Raises:
        KeyboardInterrupt: interrupted before anything was fitted.
    """
    n, weights = build.n_rows, build.weights
    labels, given = _labels(build)
    length = len(labels.data.weights)
    fold = draw_folds(given * (weights[:, None] > 0), _FOLDS, build.copies)
    values = product(*coded.grid.values())
    trials = [dict(zip(coded.grid, one, strict=True)) for one in values]
    scores = [coded.learner.out_of_fold(given, weights, fold, one) for one in trials]
    plain = [plain_classifier(one, given, weights, fold, False).held_out for one in scores]
    best = compare_scores(plain, [True] * len(plain), weights, groups=build.copies).best
    model, data, _ = with_score_prior(
        labels, pad_rows(scores[best], length), log_slope_sd=LOG_SLOPE_SD
    )
    fit = finished(options.fit(model, data))
    start = jax.tree.map(on_device, fit.params)
    held_out = None
    if fit.status != Status.INTERRUPTED:
        held_out = held_out_by_fold(model, data, pad_rows(fold, length), options, start)
    return fitted_model(
        fit,
        data,
        names,
        n,
        interrupted=held_out is None,
        cautions=() if held_out is not None else (_NOT_HELD_OUT,),
        settings={**build.settings({}), **trials[best]},
        chosen={**trials[best], "estimator": coded.name},
        held_out_scores=None if held_out is None else held_out[:n],
        plain_scores=plain[best],
        learned_from=given,
        copies=build.copies,
    )


class _Labels(NamedTuple):
    """Labels of a table, without its features.

    Attributes:
        labels: class shares and channels of the labels.
        given: ``(N, K)`` responsibilities from the labels alone.
    """

    labels: Candidate
    given: Float[np.ndarray, "n k"]


def _labels(build: ModelBuilder) -> _Labels:
    """Raises: DataError: there is no label."""
    settings, n, k = build.settings({}), build.n_rows, build.n_classes
    length = padded_length(n)
    parts = {name: source.padded(length) for name, source in build.labels.items()}
    powers = padded_powers(build.labels, length)
    data = Data(parts, on_device(pad_rows(build.weights, length)), powers)
    channels = {name: source.channel(k, settings) for name, source in build.labels.items()}
    given = np.asarray(label_responsibilities(channels, data))[:n]
    return _Labels(Candidate({PRIOR: class_prior(k, settings), **channels}, data), given)


def likelier(fitted: FittedModel) -> Float[np.ndarray, " n"]:
    """Held-out log-probabilities of the labels, with noise or without, whichever are likelier."""
    own, plain = fitted.held_out_scores, fitted.plain_scores
    assert own is not None  # cross-fitted
    if plain is None:
        return own
    weights = np.asarray(fitted.data.weights)[: len(own)]
    return max((own, plain), key=lambda one: float(weights @ np.nan_to_num(one)))
