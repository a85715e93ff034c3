"""The emission chosen, too: several estimators fitted, one kept, by labels that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from nbmodels.data.column_types import column_kind, identifiers
from nbmodels.data.features import check_names, without_marker
from nbmodels.data.noisy_labels import check_given
from nbmodels.data.validation import check_orders, check_weights, in_pandas, seed_of
from nbmodels.diagnostics.reference_classifier import reference_classifier
from nbmodels.errors import Caution, DataError, Interrupted, NbmodelsWarning, issue
from nbmodels.estimators.accuracy import score
from nbmodels.estimators.any_classifier import NoisyLabelClassifier
from nbmodels.estimators.auto_coding import CLASSIFIERS, coding
from nbmodels.estimators.discriminant import NoisyGaussianNB, RobustNDA
from nbmodels.estimators.mixed import NoisyMixedNB
from nbmodels.estimators.naive_bayes import NoisyBernoulliNB, NoisyMultinomialNB
from nbmodels.estimators.options import (
    CONFIGURED,
    NoiseForm,
    RandomState,
    Solver,
    SolverName,
    prepare_nested,
    resolved_solver,
)
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.holdout import Comparison, compare_scores
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.reference_scores import COMPARE
from nbmodels.fitting.trials import choice_table

if TYPE_CHECKING:
    from nbmodels.diagnostics.confident_learning import SecondOpinion

#: Degrees of freedom of the Student emission that is compared.
_DOF = 4.0

#: Trees of the forest, and the fewest rows in a leaf: a wrong label alone makes none.
_TREES, _LEAF = 100, 3

#: Columns up to which a split considers all of them; the root of their number would be one or two.
_FEW_COLUMNS = 4

#: What the kept estimator answers in this one's place.
_ANSWERS = frozenset(
    {
        "audit",
        "audit_plan",
        "chosen_",
        "class_prior_",
        "class_log_prior_",
        "converged_",
        "fit_",
        "fitted_",
        "corrected_labels",
        "inverse_noise_matrix_",
        "label_posterior_",
        "n_iter_",
        "noise_matrix_",
        "noise_range",
        "noise_range_",
        "objective_",
        "objective_trace_",
        "posterior",
        "verdict",
    }
)


def _bernoulli(X: Any, **shared: Any) -> Any:
    return NoisyBernoulliNB(binarize=0.0, **shared)


def _multinomial(X: Any, **shared: Any) -> Any:
    return NoisyMultinomialNB(**shared)


def _gaussian(X: Any, **shared: Any) -> Any:
    return NoisyGaussianNB(covariance="auto", **shared)


def _student(X: Any, **shared: Any) -> Any:
    return RobustNDA(dof=_DOF, **shared)


def _mixed(X: Any, **shared: Any) -> Any:
    return NoisyMixedNB(**shared)


def _logistic(X: Any, missing_values: Any = None, **shared: Any) -> Any:
    return NoisyLabelClassifier(reference_classifier(X), rounds="auto", **shared)


def _forest(X: Any, missing_values: Any = None, **shared: Any) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier  # a tenth of the library's start
    from sklearn.pipeline import make_pipeline

    # a seed of its own, so that the same table gets the same forest
    forest = ExtraTreesClassifier(
        _TREES,
        min_samples_leaf=_LEAF,
        max_features=None if np.shape(X)[1] <= _FEW_COLUMNS else "sqrt",
        random_state=0,
    )
    columns = reference_classifier(X)[:-1]
    return NoisyLabelClassifier(make_pipeline(columns, forest), rounds=0, **shared)


_MAKERS: dict[str, Callable[..., Any]] = {
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "tfidf": _multinomial,
    "gaussian": _gaussian,
    "student": _student,
    "mixed": _mixed,
    "logistic": _logistic,
    "forest": _forest,
}


def suitable(X: Any) -> list[str]:
    """Names of the models that X can be taken for, naive Bayes before other classifiers.

    Whole numbers may be counts, or measurements such as the brightness of pixels. A sparse matrix
    is taken for words, of which trees are slow to learn.
    """
    if sparse.issparse(X):
        counts = np.asarray(X.data)
        complete = bool(np.isfinite(counts).all())
        counts = counts[np.isfinite(counts)]
    else:
        frame = pd.DataFrame(X)
        kinds = {column_kind(column).family for _, column in frame.items()}
        if not kinds <= {"bernoulli", "gaussian"}:
            return ["mixed", *CLASSIFIERS]
        counts = frame.to_numpy(float, na_value=np.nan)
        complete = bool(np.isfinite(counts).all())
        counts = counts[np.isfinite(counts)]
    whole = bool((counts == np.round(counts)).all())
    dense = [] if sparse.issparse(X) else ["gaussian"]
    others = [name for name in CLASSIFIERS if dense or name != "forest"]
    if set(np.unique(counts).tolist()) <= {0.0, 1.0}:
        return ["bernoulli", *others]
    if (counts >= 0).all() and (whole or not dense):
        weighted = ["tfidf"] if whole and complete else []  # no weights of documents with gaps
        return ["multinomial", "bernoulli", *weighted, *dense, *others]
    return [*dense, *(["student"] if dense else []), *others]


def _finished(estimator: Any, *data: Any, **more: Any) -> bool:
    """Fit an estimator; whether nothing interrupted it."""
    try:
        estimator.fit(*data, **more)
    except KeyboardInterrupt:
        return False
    return not estimator.fitted_.interrupted


def _compared(
    scores: Sequence[np.ndarray], identified: Sequence[bool], weights: np.ndarray
) -> Comparison:
    """Estimators beside the first one, by the labels that all of them held out.

    Large tables are compared on a sample, and a fit that was interrupted early held out none.
    """
    table = np.asarray(scores, float)
    known = np.isfinite(table).all(0)
    some = known.any()
    table, weights = (table[:, known], weights[known]) if some else (np.nan_to_num(table), weights)
    return compare_scores(list(table), identified, weights, significant=0.0)


class AutoNoisyClassifier(ClassifierMixin, BaseEstimator):
    """Several models of the features with noisy labels; kept is that of the likeliest held-out y.

    Every estimator is fitted with all of its settings chosen, on the same folds. P(given label |
    features), from a fit that has not seen the label, compares them, whatever they assume: naive
    Bayes of each kind that X can be taken for, and, which assume none of it, a logistic regression
    and a forest of randomised trees. Of dense X they cost 12 to 29 trainings of a scikit-learn
    classifier, six of them forests, and some 100 where a regression of more than 200 rows is
    trained on corrected labels, too.

    Parameters:
        emission: ``"auto"``, or the names to compare, of ``"bernoulli"``, ``"multinomial"``,
            ``"tfidf"`` (multinomial of TF-IDF weights), ``"gaussian"`` (any covariance),
            ``"student"`` (heavy tails), ``"mixed"`` (columns of several kinds), ``"logistic"`` and
            ``"forest"`` (randomised trees).
        noise: ``"full"``, ``"symmetric"``, ``"pooled"``, a known ``(K, K)`` matrix ``[observed,
            true]``, or ``"auto"``.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label".
        missing_values: value of X that means "missing".
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`.
        random_state: seed of posterior draws; None takes others each time.

    Attributes:
        estimator_: the fitted estimator that was kept; it answers for ``noise_matrix_``,
            ``corrected_labels()``, ``posterior()``, ``verdict()`` and the like.
        emission_: its name.
        choice_: data frame of what was compared.
        classes_: ``(K,)`` names of the classes.
        n_fits_: number of trainings of scikit-learn's classifiers.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import AutoNoisyClassifier
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(size=(200, 2)) * np.where(truth, 5.0, 1.0)[:, None]  # bees vary more
        >>> y = names[corrupt(truth, uniform_noise(2, 0.1), rng)]
        >>> model = AutoNoisyClassifier(emission=["gaussian", "logistic"], random_state=0).fit(X, y)
        >>> model.emission_  # no line separates the classes
        'gaussian'
        >>> model.choice_[["emission", "chosen"]]
           emission  chosen
        0  gaussian    True
        1  logistic   False
    """

    score = score

    def __init__(
        self,
        *,
        emission: str | Sequence[str] = "auto",
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.emission = emission
        self.noise = noise
        self.class_prior = class_prior
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``solver__max_iter`` and the like reach into the solver.

        Args:
            params: values by name.
        """
        super().set_params(**{n: value for n, value in params.items() if "__" not in n})
        nested = {n: value for n, value in params.items() if "__" in n}
        prepare_nested(self, nested, lambda n, value: CONFIGURED.get(n, lambda v: v)(value))
        return super().set_params(**nested)

    def _names(self, X: Any) -> list[str]:
        if is_auto(self.emission):
            declared = self.missing_values is not None
            return suitable(without_marker(X, self.missing_values) if declared else X)
        names = [self.emission] if isinstance(self.emission, str) else list(self.emission)
        for name in names:
            if name not in _MAKERS:
                raise DataError(
                    f"emission: expected 'auto' or some of {tuple(_MAKERS)}, got {name!r}"
                )
        return names

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        trusted: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit all that X can be taken for, and keep one.

        Args:
            X: ``(N, d)`` features.
            y: ``(N,)`` given labels.
            sample_weight: ``(N,)`` row weights.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of
                some rows, by the index of X, or of y where X has none.
            groups: ``(N,)`` names of what rows belong to, such as a patient's visits, whose labels
                may share an error: they stay in one fold and are no neighbours of each other. Null
                for a row of its own. By default near copies of rows are groups. Intervals
                are as wide as errors that groups share make them.

        Raises:
            DataError: bad input, naming the argument and the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``. Compared are the
                estimators that were fitted by then.

        Warns:
            as the estimator that is kept, and of columns of text with few rows a value.
        """
        check_given(y, type(self).__name__)
        X = in_pandas(X)
        check_names(self, X, reset=True)
        check_orders(X, y=y, sample_weight=sample_weight, trusted=trusted, groups=groups)
        names = self._names(X)
        mixed = isinstance(X, pd.DataFrame) and "mixed" in suitable(X)
        shared = {
            "noise": self.noise,
            "class_prior": self.class_prior,
            "classes": self.classes,
            "missing_label": self.missing_label,
            "missing_values": self.missing_values,
            "solver": self.solver,
            # the same folds for all
            "random_state": seed_of(self.random_state),
        }
        found: list[Any] = []
        scores, identified = [], []
        self._interrupted = False
        for name in names:
            read = coding(name, X, self.missing_values, mixed=mixed)
            own = read(X)
            one = _MAKERS[name](own, **shared)
            # advice names what can be set here
            one._advised = type(self).__name__, frozenset(self._get_param_names())
            # warnings of an estimator matter if it is kept
            with warnings.catch_warnings(record=True, action="always") as caught:
                self._interrupted = not _finished(
                    one, own, y, sample_weight, trusted, groups=groups
                )
            # its scores, of fits that were cut short, compare with none
            if self._interrupted and (found or not hasattr(one, "fitted_")):
                break
            found.append((one, read, caught))
            scores.append(one.fitted_.held_out_scores)
            identified.append(not one.fit_.confused)
            if self._interrupted:
                break
        if not found:
            raise KeyboardInterrupt
        self.n_fits_ = sum(getattr(one, "n_fits_", 0) for one, *_ in found)
        compared = _compared(scores, identified, check_weights(sample_weight, len(scores[0])))
        best = compared.best
        self.estimator_, self._coding, caught = found[best]
        self.emission_, self.classes_ = names[best], self.estimator_.classes_
        settings = [{"emission": name} for name in names[: len(found)]]
        self.choice_ = choice_table(settings, compared, settings[best])
        if self._interrupted and resolved_solver(self.solver).on_interrupt == "raise":
            raise Interrupted(self)
        cautions = [INTERRUPTED] if self._interrupted else []
        cautions.extend([] if sparse.issparse(X) else identifiers(pd.DataFrame(X)))
        for w in caught:
            if issubclass(w.category, NbmodelsWarning):
                cautions.append(Caution(w.category, str(w.message).removesuffix(COMPARE)))
            else:
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        issue(cautions)
        return self

    @property
    def converged_(self) -> bool:
        """Whether the kept estimator converged and nothing was interrupted."""
        check_is_fitted(self)
        return self.estimator_.converged_ and not self._interrupted

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class given the features."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` log P(true class | features)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        X = in_pandas(X)
        check_names(self, X, reset=False)
        return self.estimator_.predict_proba(self._coding(X))

    def second_opinion(self, X: Any, y: Any, classifier: Any = None, cv: int = 5) -> SecondOpinion:
        """That of the estimator that was kept; see :meth:`TableClassifier.second_opinion`.

        Args:
            X: the features of the fit.
            y: ``(N,)`` the given labels of the fit.
            classifier: any classifier with ``predict_proba`` that takes X; None for a logistic
                regression.
            cv: number of folds, 2 or more.

        Raises:
            DataError: other labels than those of the fit, or a wrong number of folds.
        """
        check_is_fitted(self)
        X = in_pandas(X)
        # the kept estimator may not know the marker
        own = without_marker(X, self.missing_values) if classifier is None else X
        return self.estimator_.second_opinion(own, y, classifier, cv)

    def __getattr__(self, name: str) -> Any:
        if name in _ANSWERS:
            check_is_fitted(self)
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = tags.input_tags.string = True
        named = set() if is_auto(self.emission) else set(np.atleast_1d(self.emission).tolist())
        declared = self.missing_values is not None or (bool(named) and named <= set(CLASSIFIERS))
        tags.input_tags.allow_nan = declared and "tfidf" not in named
        return tags
