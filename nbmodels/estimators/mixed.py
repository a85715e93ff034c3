"""Naive Bayes on columns of different kinds with noisy labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

import nbmodels.emissions  # noqa: F401 - registers the families
from nbmodels.core.registry import family, family_names
from nbmodels.data.column_types import assign_families, check_numbers, identifiers
from nbmodels.data.features import Block, table
from nbmodels.errors import issue
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName, Training
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting.builder import ColumnPlan


class NoisyMixedNB(TableClassifier):
    """Columns of different kinds, each with its own emission, with noisy labels; dense X.

    Columns that ``families`` does not name are assigned by their dtype and values: booleans and
    columns of zeros and ones are binary; text, objects and pandas categories are categorical; other
    numbers are Gaussian. Counts must be named: they cannot be distinguished from measurements.

    Parameters:
        families: ``"auto"``, or columns by family: a mapping from ``"bernoulli"``,
            ``"multinomial"``, ``"categorical"``, ``"gaussian"`` or a registered family to names or
            positions of columns. A warning names columns of text with few rows a value, like an
            id's, unless they are named here.
        alpha: pseudo-items or pseudo-counts of each value, for the discrete families, or
            ``"auto"``.
        covariance: of the Gaussian columns, ``"diag"``, ``"full"``, ``"tied"`` or ``"auto"``.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            ``"auto"`` (pooled; full where maximum likelihood has no prior), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        training: ``"auto"`` (joint where that model passes its own checks and predicts held-out
            labels better, or of more than 500 rows no worse; else cross-fitted with self-training
            rounds), ``"joint"`` (the papers' joint model), ``"cross_fit"`` (features learn from the
            given labels alone), or a :class:`~nbmodels.estimators.options.Joint` or
            :class:`~nbmodels.estimators.options.CrossFit`.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        chosen_: settings that were selected, with the number of self-training rounds.
        choice_: data frame of all that was compared, or None.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        families_: family of each column, by its name.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from nbmodels import NoisyMixedNB
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = pd.DataFrame({"length": rng.normal(5 + 4 * truth)})
        >>> X["winged"] = rng.random(200) < 0.8 * truth
        >>> y = names[np.where(rng.random(200) < 0.2, 1 - truth, truth)]  # a fifth is wrong
        >>> model = NoisyMixedNB(alpha=1.0, training="joint").fit(X, y)
        >>> model.families_
        {'length': 'gaussian', 'winged': 'bernoulli'}
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        158 196
    """

    def __init__(
        self,
        *,
        families: Literal["auto"] | Mapping[str, Sequence[Any]] = "auto",
        alpha: float | Literal["auto"] = "auto",
        covariance: Literal["diag", "full", "tied", "auto"] = "diag",
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        training: Training = "auto",
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.families = families
        self.alpha = alpha
        self.covariance = covariance
        self.noise = noise
        self.class_prior = class_prior
        self.training = training
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def _read(self, X: Any, *, reset: bool) -> Block:
        block, frame = table(self, X, reset=reset)
        if reset:
            self.families_ = assign_families(block, frame, self.families, family_names())
            issue(identifiers(frame, self.families))
        check_numbers(block, self.families_)
        return block

    def _plan(self, block: Block) -> list[ColumnPlan]:
        kinds = np.asarray(list(self.families_.values()))
        return [
            ColumnPlan(name, np.flatnonzero(kinds == name), family(name))
            for name in family_names()
            if (kinds == name).any()
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags
