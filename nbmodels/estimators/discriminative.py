"""What the estimators of discriminative classifiers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nbmodels.core.jax_settings import computing
from nbmodels.data.noisy_labels import LabelData
from nbmodels.errors import DataError
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.options import GRIDS
from nbmodels.fitting.batched import counted_fits
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.classifier_scores import Learner
from nbmodels.fitting.discriminative import NOISE_FORMS, noise_forms, train_scored
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint_regression import with_joint_draws
from nbmodels.fitting.label_sources import label_sources
from nbmodels.fitting.matrix_scaling import scalings
from nbmodels.fitting.options import FitOptions, is_auto

#: Probability that labels are noisy up to which self-training rounds are taken back.
_SURELY_RIGHT = 0.1


@dataclass(frozen=True)
class _Folds:
    """A number of folds, 2 or more, or a splitter."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: fewer than two folds."""
        if isinstance(value, int | np.integer) and value < 2:
            raise DataError(f"{name}: expected two folds or more, got {value!r}")


#: Constraints on the parameters of these estimators.
SCORED: Mapping[str, Constraint] = {
    "rounds": Number(whole=True, words=("auto",)),
    "cv": _Folds(),
}


@dataclass
class JointDraws:
    """A discriminative fit with draws of the joint model of labels and regression, kept.

    Attributes:
        columns: ``(N, d)`` standardised columns of that model; None where it is not affordable.
        found: the fit with its draws, once these were asked for.
    """

    columns: Float[np.ndarray, "n d"] | None
    found: FittedModel | None = None

    def of(
        self, fitted: FittedModel, method: str, options: Callable[[], FitOptions]
    ) -> FittedModel:
        """What draws by a method are of; the coefficients have no variational posterior.

        Args:
            fitted: the fit.
            method: of the draws.
            options: makes those of fits, where the fit's precision holds.
        """
        if method == "vb" or self.columns is None:
            return fitted
        if self.found is None:
            with computing(fitted.double):
                self.found = with_joint_draws(fitted, self.columns, options())
        return self.found


def known_labels(
    estimator: LatentClassModel,
    parameters: Mapping[str, Any],
    labels: LabelData,
    weights: Float[np.ndarray, " n"],
) -> Known:
    """What an estimator that is no source of several knows of its rows.

    Args:
        estimator: whose fit it is.
        parameters: of the estimator, by name.
        labels: as read.
        weights: ``(N,)`` row weights.
    """
    settings = estimator._by_class(parameters, labels.classes)
    settings["shares_held"] = labels.shares_held
    sources = label_sources(labels, weights)
    return Known(sources, settings, weights, labels.classes.names, estimator._options())


def fit_scored(
    learner: Learner,
    parameters: Mapping[str, Any],
    known: Known,
    own: Mapping[str, Sequence[Any]] | None = None,
    copies: Int[np.ndarray, " n"] | None = None,
    self_training: bool = True,
) -> FittedModel:
    """Train a discriminative classifier under an estimator's parameters.

    Args:
        learner: the classifier.
        parameters: of the estimator, by name.
        known: the labels of the rows, with their settings.
        own: open settings of the classifier with their values, the cautious one first.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.
        self_training: whether rounds that are left to the data may be taken.
    """
    own, parameters = own or {}, {**parameters, **known.of_labels}
    noise = {n: GRIDS[n] for n in ("noise_diagonal",) if is_auto(parameters[n])}
    if is_auto(parameters["noise"]):
        # votes have channels of their own
        forms: tuple[str, ...] = NOISE_FORMS[:1]
        if "labels" in known.sources:
            labelled = (known.sources["labels"].values >= 0) & (known.weights > 0)
            forms = noise_forms(len(known.names), int(labelled.sum()))
        parameters = {**parameters, "noise": forms[0]}
        noise |= {"noise": forms} if len(forms) > 1 else {}
    rounds = parameters["rounds"]
    scaling: dict[str, Sequence[Any]] = {}
    if is_auto(rounds):  # a number is of rounds of the fit that was asked for
        compared = scalings(len(known.names), len(known.weights))
        scaling = {"scaling": compared} if len(compared) > 1 else {}
    with counted_fits() as count:
        fitted = train_scored(
            learner,
            parameters,
            {**own, **scaling, **noise},
            known.sources,
            known.names,
            known.weights,
            known.options,
            rounds=_rounds(rounds, self_training),
            cv=parameters["cv"],
            own=tuple(own),
            copies=copies,
        )
    return replace(fitted, n_fits=count.n)


def _rounds(rounds: Any, self_training: bool) -> int | None:
    """The number of rounds; None where it is left to the data."""
    if not is_auto(rounds):
        return int(rounds)
    return None if self_training else 0


def with_rounds_where_noisy(
    fit: Callable[[bool], FittedModel], parameters: Mapping[str, Any]
) -> FittedModel:
    """A fit without self-training rounds where labels are surely right after all.

    Rounds are chosen by held-out labels, before a classifier of other kind and neighbours are asked
    of the changes. Where these do not believe them, the classifier would predict new items by what
    it has learned from corrected labels. Where the probability of noise is not that low, a
    classifier of rounds is the better one; where scores are a nonlinear classifier's, it has no
    part in them.

    Args:
        fit: with or without rounds, compared with what it is held to.
        parameters: of the estimator, by name.
    """
    found = fit(True)
    taken = is_auto(parameters["rounds"]) and found.chosen.get("rounds", 0) > 0
    if not taken or found.interrupted or found.noisy >= _SURELY_RIGHT or found.chosen.get("scores"):
        return found
    again = fit(False)
    return replace(again, n_fits=found.n_fits + again.n_fits)
