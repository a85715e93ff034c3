"""Learning from partial labels: what items are, are not, and may be (Chen et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import jax
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

import nbmodels.emissions  # noqa: F401 - registers the families
from inference.arrays import on_device
from nbmodels.core import model as models
from nbmodels.core.registry import family
from nbmodels.data.column_types import measured
from nbmodels.data.features import Block, numbers, table
from nbmodels.data.label_sets import Sets, by_class, read_sets, read_table, sets_as_text
from nbmodels.data.labels import Classes, check_marker, seen_once
from nbmodels.data.noisy_labels import by_position, known_labels
from nbmodels.data.validation import (
    check_orders,
    check_weights,
    of_some_rows,
    pad_rows,
    plain,
    row_index,
)
from nbmodels.diagnostics.findings import Finding, Verdict
from nbmodels.errors import Caution, DataError, IdentifiabilityWarning
from nbmodels.estimators.constraints import Constraint, Number, OneOf, Weights
from nbmodels.estimators.labelled_by_class import allowing_for_missing
from nbmodels.estimators.naive_bayes import feature_parameters
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName
from nbmodels.estimators.partial_training import TRAINED, train_with_sets
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting.builder import ColumnPlan, ModelBuilder
from nbmodels.fitting.em import evaluate
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.label_sources import LabelSource, candidate_sets
from nbmodels.fitting.options import FitOptions

#: Check whether label sets identify the classes, and what helps.
_IDENTIFIED = "classes identified"
_REMEDY = "label sets that name one of them without the other"

_start = jax.jit(models.start, static_argnames="rule")


class PartialLabelNB(TableClassifier):
    """Naive Bayes from positive labels, negative labels and sets of candidates, mixed at will.

    Of an item one may know its class (the paper's S1), classes that it is not of (S2), a set of
    classes that it may be of, or nothing. ``"em"`` is a joint model that sums over what is
    possible; where features depend on each other it decides surely and wrongly inside a set.
    ``"cross_fit"`` learns features from the sets alone, with self-training rounds, and calibrates
    how far their scores count by held-out sets; ``"regression"`` does the same with a multinomial
    logistic regression, which correlated columns do not mislead, and ``"nonlinear"`` with least
    squares on kernels, for classes of any shape; either is learned from each candidate evenly or by
    EM (Jin and Ghahramani 2002), as held-out sets select. The other three are the closed forms of
    Chen et al. 2019: weights of items in classes, then weighted counts.

    ================ ==============================================================  ============
    estimator        weight of an item in class i                                    the paper
    ================ ==============================================================  ============
    ``"L1"``         even over its possible classes, zero elsewhere                  (3.3), (4.2)
    ``"L2"``         ``y_i - z_i + t``; y marks its label, z its excluded classes    (3.4), (4.4)
    ``"star"``       as L2, with ``z = 1 - y`` for items whose label is given        (4.5)
    ``"em"``         P(class i | features, class possible), iterated                 not there
    ``"cross_fit"``  as L1, then P(class i | scores, class possible)                 not there
    ``"regression"`` the same, of scores of a logistic regression                    not there
    ``"nonlinear"``  the same, of scores of a nonlinear classifier                   not there
    ================ ==============================================================  ============

    Items of which nothing is known count for ``"em"`` only. The class shares get the same weights.
    Each set has to hold the item's class: sets that often do not are for :class:`nbmodels.JointNB`
    or several labels an item for :class:`nbmodels.DawidSkene`. Some classes may be labelled more
    often than others: ``"em"``, ``"cross_fit"``, ``"regression"`` and ``"nonlinear"`` have a rate
    of each class where that is surely likelier, be what is known of an item a class or a set.

    Parameters:
        estimator: ``"em"``, ``"cross_fit"``, ``"regression"``, ``"nonlinear"``, ``"L1"``,
            ``"L2"``, ``"star"`` or ``"auto"``: em where features pass their checks and held-out
            sets are not surely less likely under it, or where nothing is smoothed, else that of the
            next three that makes held-out sets likeliest.
        t: of L2 and star, 1 or more; every item counts that much in every class.
        features: ``"multinomial"``, ``"bernoulli"``, ``"categorical"`` or ``"gaussian"``.
        alpha: pseudo-counts of each feature in each class, for the discrete features; the paper has
            none.
        weight: power of the features' likelihood, below 1 where features depend on each other.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None: nulls do.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        chosen_: the estimator that was selected, with the number of self-training rounds.
        feature_parameters_: parameters of the features by name, in the units of X; of a regression
            those by its classes.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import PartialLabelNB
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 3, 150), np.array(["ant", "bee", "fly"])
        >>> X = rng.multinomial(20, np.array([[8, 1, 1], [1, 8, 1], [1, 1, 8]])[truth] / 10)
        >>> other = (truth + rng.integers(1, 3, 150)) % 3
        >>> y = [set(pair) for pair in zip(names[truth], names[other], strict=True)]
        >>> model = PartialLabelNB().fit(X, y)  # two candidates each
        >>> print((model.predict(X) == names[truth]).sum())  # of 150
        150
        >>> np.exp(model.feature_log_prob_).round(1)
        array([[0.8, 0.1, 0.1],
               [0.1, 0.8, 0.1],
               [0.1, 0.1, 0.8]])
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "estimator": OneOf((*TRAINED, "L1", "L2", "star")),
        "t": Number(1),
        "features": OneOf(("multinomial", "bernoulli", "categorical", "gaussian")),
        "alpha": Number(),
        "weight": Weights(Number()),
        "noise_diagonal": Number(),
    }

    def __init__(
        self,
        *,
        estimator: Literal[
            "auto", "em", "cross_fit", "regression", "nonlinear", "L1", "L2", "star"
        ] = "auto",
        t: float = 2.0,
        features: Literal["multinomial", "bernoulli", "categorical", "gaussian"] = "multinomial",
        alpha: float = 1.0,
        weight: float = 1.0,
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.t = t
        self.features = features
        self.alpha = alpha
        self.weight = weight
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def fit(  # type: ignore[override]  # labels here are partial, and of one kind
        self, X: Any, y: Any = None, sample_weight: Any = None, excluded: Any = None
    ) -> Self:
        """Fit to features and to what is known of the items' classes.

        Args:
            X: ``(N, d)`` features.
            y: what items may be: a label, a list or set of candidate labels, or null, an item; or
                ``(N, K)`` booleans of the classes in the order of ``classes``, true where possible.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.
            excluded: what items are not: the same forms, true where excluded. Both may be a mapping
                or series from some rows to a label or labels, by the index of X where it is a data
                frame.

        Raises:
            DataError: bad input, naming the argument and the row; an item with no class left.

        Warns:
            IdentifiabilityWarning: classes occur only together in the label sets.
            NotConvergedWarning: the iteration of ``"em"`` did not converge.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        check_orders(X, y=y, sample_weight=sample_weight, excluded=excluded)
        rows = row_index(X)
        n_rows = block.x.shape[0]
        y, excluded = (
            of_some_rows(name, known, n_rows) for name, known in (("y", y), ("excluded", excluded))
        )
        if rows is not None:
            y, excluded = (
                by_position(name, known, rows) if isinstance(known, Mapping) else known
                for name, known in (("y", y), ("excluded", excluded))
            )
        classes, possible, weights = self._read_partial(y, excluded, n_rows)
        sources = {"candidates": candidate_sets(possible)}
        training = {**parameters, "item_weights": weights}
        counts = check_weights(sample_weight, n_rows)

        def trained(more: Mapping[str, LabelSource]) -> FittedModel:
            return self._fitted(training, block, classes, {**sources, **more}, counts)

        if self.estimator in TRAINED:
            known = np.asarray(~possible.all(1))
            fitted = allowing_for_missing(trained, known, X, self.missing_values)
        else:
            fitted = trained({})
        self._keep(rows, None)
        self._alike = _alike(possible[counts > 0], classes.names)
        cautions = [Caution(IdentifiabilityWarning, one) for one in self._alike]
        if np.isin(possible.sum(1), (1, len(classes))).all():
            cautions.extend(sets_as_text(classes.names))
        cautions.extend(() if family(self.features).numeric else measured(block))
        # closed forms do not follow the features, and bear a model that fits them badly
        check = self.estimator in TRAINED and not self._alike
        return self._finish(fitted, tuple(cautions), check=check)

    def verdict(self) -> Verdict:
        """Model checks of the fit, and whether label sets identify every class."""
        found = super().verdict()
        question = "Do label sets identify every class?"
        nan = float("nan")
        extra = (
            Finding(_IDENTIFIED, question, nan, nan, nan, nan, True, one, (_REMEDY,))
            for one in self._alike
        )
        return replace(found, findings=(*extra, *found.findings))

    def _read(self, X: Any, *, reset: bool) -> Block:
        columns = family(self.features)
        if columns.numeric:
            return numbers(self, X, reset=reset, accept_sparse=columns.sparse)
        return table(self, X, reset=reset)[0]

    def _plan(self, block: Block) -> list[ColumnPlan]:
        return [ColumnPlan("features", np.arange(len(block.names)), family(self.features))]

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        weights = build.settings({})["item_weights"]
        if weights is None:
            # without smoothing, features that no item of a class has would exclude it
            how = "em" if self.estimator == "auto" and not self.alpha else self.estimator
            symbols = not family(self.features).numeric
            return train_with_sets(build, how, names, options, symbols=symbols)
        candidate, jacobian = build({}), build.log_jacobian({})
        padded = on_device(pad_rows(weights, len(candidate.data.weights)))
        params = _start(candidate.model, padded, candidate.data, rule=options.rule)
        fit = evaluate(candidate.model, params, candidate.data, rule=options.rule)
        return fitted_model(fit, candidate.data, names, build.n_rows, log_jacobian=jacobian)

    # Labels -------------------------------------------------------------------------------------

    def _read_partial(
        self, y: Any, excluded: Any, n_rows: int
    ) -> tuple[Classes, Bool[np.ndarray, "n k"], Float[np.ndarray, "n k"] | None]:
        """The classes, ``(N, K)`` what is possible, and the closed forms' weights."""
        if y is None and excluded is None:
            raise DataError(
                "y: PartialLabelNB requires y to be passed, but the target y is None, and so is "
                "excluded"
            )
        parts: dict[str, Any] = {"y": y, "excluded": excluded}
        tables = {name: read_table(name, v, n_rows) for name, v in parts.items() if v is not None}
        sets = {
            name: read_sets(name, parts[name], n_rows, self.missing_label)
            for name, found in tables.items()
            if found is None
        }
        classes = self._classes(tables, sets)
        k = len(classes)
        whole = np.zeros((n_rows, k), bool)
        read = {name: s.table(name, classes) for name, s in sets.items()}
        for name, found in tables.items():
            if found is not None:
                read[name] = by_class(name, *found, classes)

        named, negative = read.get("y", ~whole), read.get("excluded", whole)
        if "y" in sets:
            named = named | ~sets["y"].given[:, None]
        possible = named & ~negative
        empty = np.flatnonzero(~possible.any(1))
        if len(empty):
            raise DataError(f"y: row {empty[0]} has every class excluded; leave at least one")
        if possible.all():
            raise DataError("y: no label of any item is known, nor what an item is not")
        positive = named & (named.sum(1, keepdims=True) == 1)
        single = positive.any(1, keepdims=True)
        weights = self._weights(positive, ~single & ~named | negative, possible)
        return classes, possible, weights

    def _classes(self, tables: Mapping[str, Any], sets: Mapping[str, Sets]) -> Classes:
        """From ``classes``, else the columns' names, else all labels that occur."""
        declared = self.classes
        for found in tables.values():
            if declared is None and found is not None:
                declared = np.arange(found[0].shape[1]) if found[1] is None else found[1]
        labels = np.concatenate([s.labels for s in sets.values()]) if sets else np.zeros(0)
        classes = Classes.infer(known_labels(labels), declared)
        if declared is None:
            check_marker(classes.names, self.missing_label)
            _check_slips(sets, classes)
        return classes

    def _weights(self, y: np.ndarray, z: np.ndarray, possible: np.ndarray) -> np.ndarray | None:
        """``(N, K)`` weights of the items in the classes, None where they are found by a fit.

        Args:
            y: true for the one label of an item.
            z: true for the excluded classes of an item.
            possible: true for the classes that are left.
        """
        if self.estimator in TRAINED:
            return None
        known = ~possible.all(1, keepdims=True)
        if self.estimator == "L1":
            return known * possible / possible.sum(1, keepdims=True)
        if self.estimator == "star":
            z = np.where(y.any(1, keepdims=True), ~y, z)
        return known * (y + float(self.t) - z)

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def feature_parameters_(self) -> dict[str, np.ndarray]:
        """Parameters of the features by name, in the units of X."""
        return feature_parameters(self)

    @property
    def feature_log_prob_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` log-probabilities of multinomial features."""
        if self.features != "multinomial":
            raise AttributeError("only multinomial features have these; see feature_parameters_")
        return np.asarray(self.fit_.point["features"], float).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.features in ("multinomial", "bernoulli")
        tags.input_tags.positive_only = self.features == "multinomial"
        tags.classifier_tags.poor_score = self.features == "multinomial"
        return tags


def _check_slips(sets: Mapping[str, Sets], classes: Classes) -> None:
    """Refuse a class that no item has and one alone does not have, of many that do not.

    Every other item may be of it, and would be.

    Raises:
        DataError: such a class, with its row.
    """
    if "excluded" not in sets:
        return
    found = {
        name: classes.encode(name, s.labels, np.zeros(len(s.labels), bool), s.rows)
        for name, s in sets.items()
    }
    once = seen_once(found["excluded"], len(classes))
    once[found.get("y", found["excluded"][:0])] = False
    for k in np.flatnonzero(once):
        row = sets["excluded"].rows[int(np.argmax(found["excluded"] == k))]
        raise DataError(
            f"excluded: row {row} excludes {plain(classes.names[k])!r}, which no other row names; "
            "correct it if it is a slip, else name all classes with classes="
        )


def _alike(possible: Bool[np.ndarray, "n k"], names: np.ndarray) -> tuple[str, ...]:
    """Classes that are possible for the same items, as sentences.

    Args:
        possible: ``(N, K)`` classes that each item may be of.
        names: ``(K,)`` of the classes.
    """
    known = possible[~possible.all(1)]
    # a class that no label set names is of no interest here
    occurs = np.flatnonzero(known.any(0))
    _, group = np.unique(known[:, occurs], axis=1, return_inverse=True)
    together = [names[occurs[group.ravel() == g]] for g in range(group.max(initial=-1) + 1)]
    return tuple(
        f"{', '.join(map(str, some[:-1]))} and {some[-1]} occur only together in the label sets; "
        "nothing distinguishes them"
        for some in together
        if len(some) > 1
    )
