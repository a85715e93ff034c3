"""Model comparison by cross-validation: the held-out log-likelihood of the given labels.

``P(given label | features)`` is the class posterior passed through the fitted noise. Its logarithm
on held-out labels needs no true label, and compares models of different features, noise and
training on one scale, in nats per label. For posteriors with pointwise log-likelihoods,
:func:`compare_posteriors` uses ArviZ.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone

from nbmodels.data.labels import is_missing
from nbmodels.data.validation import as_column, check_length, check_orders
from nbmodels.errors import Caution, DataError, NbmodelsWarning, PosteriorWarning, counted, issue
from nbmodels.fitting.scores import stratified_folds

#: Least probability of a label, so that one surprise does not decide alone.
_LEAST = 1e-12


def compare(estimators: Any, X: Any, y: Any, *, cv: int = 5, random_state: int = 0) -> pd.DataFrame:
    """Estimators ranked by the held-out log-likelihood of the given labels.

    Every fold's rows are left out of a refit of a clone. An estimator without a noise matrix, such
    as any classifier of scikit-learn, is taken to predict given labels as it is.

    Args:
        estimators: unfitted or fitted estimators by name, or a list of them.
        X: ``(N, d)`` features, as all of them take them.
        y: ``(N,)`` given labels; those that an estimator's ``missing_label`` marks are fitted with
            and not scored.
        cv: number of folds, 2 or more.
        random_state: seed of the folds.

    Returns:
        A frame, the best first, by name: ``rank``, ``log_likelihood`` (mean of a label, in nats),
        ``standard_error`` of it, ``difference`` to the best (0 or less) and ``difference_error``,
        the standard error of the difference label by label.

    Raises:
        DataError: no estimators, something that is none, a wrong number of folds, labels of another
            length than X, or in another order by their index.

    Examples:
        >>> import numpy as np
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from nbmodels import NoisyGaussianNB, compare
        >>> from nbmodels.datasets import corrupt, flip_noise
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 200)
        >>> X = rng.normal(3 * truth[:, None], size=(200, 4))
        >>> y = np.array(["ant", "bee"])[corrupt(truth, flip_noise(2, {(0, 1): 0.3}), rng)]
        >>> models = {"noisy": NoisyGaussianNB(training="joint"), "plain": GaussianNB()}
        >>> compare(models, X, y)[["rank", "log_likelihood", "difference"]].round(2)
                   rank  log_likelihood  difference
        estimator
        noisy         1           -0.28        0.00
        plain         2           -0.75       -0.47
    """
    named = _named(estimators)
    scores = pointwise(named, X, y, cv=cv, random_state=random_state)
    return ranked(scores)


def pointwise(
    estimators: Mapping[str, Any], X: Any, y: Any, *, cv: int = 5, random_state: int = 0
) -> pd.DataFrame:
    """``(labels, estimators)`` log-probability of each given label, left out; see :func:`compare`.

    Returns:
        a frame whose index are the rows of X.
    """
    check_orders(X, y=y)
    labels = as_column("y", y)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    check_length("y", labels, n_rows)
    _check_folds(cv)
    known = np.ones(n_rows, bool)
    for one in estimators.values():
        marker = getattr(one, "missing_label", None)
        if marker is not None:
            known &= ~is_missing(labels, marker)
    codes = np.full(n_rows, -1)
    codes[known], names = pd.factorize(labels[known], sort=True)
    rows = np.flatnonzero(known)
    if len(rows) < cv:
        raise DataError(f"y: {counted(len(rows), 'label')} cannot be left out in {cv} folds")
    out = {}
    for name, one in estimators.items():
        probs = predicted_labels(one, X, labels, np.asarray(names), codes, int(cv), random_state)
        out[name] = np.log(np.maximum(probs[rows, codes[rows]], _LEAST))
    return pd.DataFrame(out, index=rows)


def predicted_labels(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    names: np.ndarray,
    codes: Int[np.ndarray, " n"],
    cv: int,
    random_state: int,
) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` P(given label | features) by clones that have not seen the row.

    Args:
        estimator: with a noise matrix, or any classifier.
        X: ``(N, d)`` features.
        y: ``(N,)`` given labels as the estimator takes them.
        names: ``(K,)`` names of the classes.
        codes: ``(N,)`` codes of the labels, negative where missing; such rows are zeros.
        cv: number of folds.
        random_state: seed of the folds.

    Raises:
        DataError: a wrong number of folds.
    """
    _check_folds(cv)
    rows = np.flatnonzero(codes >= 0)
    fold = np.full(len(codes), -1)
    rng = np.random.default_rng(random_state)
    fold[rows] = stratified_folds(codes[rows], int(cv), rng)
    # rows without a label are left out where the estimator does not take them
    usable = np.full(len(codes), getattr(estimator, "missing_label", None) is not None)
    usable[rows] = True
    out = np.zeros((len(codes), len(names)))
    for f in range(int(cv)):
        held = np.flatnonzero(fold == f)
        train = np.flatnonzero((fold != f) & usable)
        out[held] = _predicted(estimator, X, y, train, held, names)
    return out


def ranked(scores: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`compare` from the log-probabilities of :func:`pointwise`."""
    mean = scores.mean().sort_values(ascending=False, kind="stable")
    gap = scores[mean.index].sub(scores[mean.index[0]], axis=0)
    root = np.sqrt(max(len(scores), 1))
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(mean) + 1),
            "log_likelihood": mean,
            "standard_error": scores.std()[mean.index] / root,
            "difference": gap.mean(),
            "difference_error": gap.std() / root,
        },
        index=pd.Index(mean.index, name="estimator"),
    )


def compare_posteriors(posteriors: Mapping[str, Any], **options: Any) -> pd.DataFrame:
    """Posteriors ranked by ArviZ, by leave-one-out cross-validation (Vehtari et al. 2017).

    Args:
        posteriors: from ``estimator.posterior()``, by name, with a group ``log_likelihood``.
        options: of ``arviz_stats.compare``.

    Raises:
        DataError: a posterior without pointwise log-likelihoods, or less than two.

    Warns:
        PosteriorWarning: what ArviZ warns of, such as items whose Pareto k is too large.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB, Priors, compare_posteriors
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 100), np.array(["ant", "bee"])
        >>> X = rng.normal(4 * truth[:, None], size=(100, 2))
        >>> y = np.where(rng.random(100) < 0.4 * (1 - truth), "bee", names[truth])
        >>> model, posteriors = NoisyGaussianNB(noise="full", training="joint", random_state=4), {}
        >>> for name, diagonal in {"open": 2, "trusting": 100}.items():
        ...     model = model.set_params(priors=Priors(noise_diagonal=diagonal)).fit(X, y)
        ...     posteriors[name] = model.posterior(draws=250, chains=2)
        >>> compare_posteriors(posteriors)[["elpd"]].round(-1)
                   elpd
        open     -230.0
        trusting -240.0
    """
    import arviz_stats

    if not isinstance(posteriors, Mapping) or len(posteriors) < 2:
        raise DataError("posteriors: expected a mapping from two or more names to posteriors")
    for name, tree in posteriors.items():
        if "log_likelihood" not in getattr(tree, "children", ()):
            raise DataError(
                f"posteriors: {name!r} has no group log_likelihood, by which it could be compared"
            )
    with warnings.catch_warnings(record=True, action="always") as caught:
        table = arviz_stats.compare(dict(posteriors), **options)
    # ArviZ calls pandas in a way that pandas has deprecated
    messages = [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    issue([Caution(PosteriorWarning, message) for message in dict.fromkeys(messages)])
    return table


def _named(estimators: Any) -> dict[str, Any]:
    if isinstance(estimators, Mapping):
        named = {str(name): one for name, one in estimators.items()}
    elif isinstance(estimators, Iterable):
        named = {}
        for one in estimators:
            name = " ".join(str(one).split())
            same = sum(other.split(" #")[0] == name for other in named)
            named[f"{name} #{same + 1}" if same else name] = one
    else:
        named = {}
    if not named:
        raise DataError(
            "estimators: expected a list of estimators, or a mapping from names to them"
        )
    for name, one in named.items():
        missing = [m for m in ("fit", "predict_proba", "get_params") if not hasattr(one, m)]
        if missing or isinstance(one, type):
            why = "a class" if isinstance(one, type) else f"has no method {missing[0]}"
            raise DataError(f"estimators: {name!r} is not a classifier with probabilities ({why})")
    return named


def _check_folds(cv: Any) -> None:
    if not (isinstance(cv, int | np.integer) and cv >= 2):
        raise DataError(f"cv: expected 2 or more folds, got {cv!r}")


def _rows(X: Any, rows: np.ndarray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def _predicted(
    estimator: Any, X: Any, y: np.ndarray, train: np.ndarray, held: np.ndarray, names: np.ndarray
) -> np.ndarray:
    """``(held, K)`` P(given label | features) by a clone fitted to other rows."""
    one = clone(estimator)
    # a class of few labels may be missing from the training rows
    if "classes" in one.get_params(deep=False) and one.classes is None:
        one.set_params(classes=names)
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        one.fit(_rows(X, train), y[train])
    probs = np.asarray(one.predict_proba(_rows(X, held)), float)
    if hasattr(one, "noise_matrix_"):
        probs = probs @ one.noise_matrix_.T
    out = np.zeros((len(held), len(names)))
    place = pd.Index(one.classes_).get_indexer(pd.Index(names))
    out[:, place >= 0] = probs[:, place[place >= 0]]
    return out
