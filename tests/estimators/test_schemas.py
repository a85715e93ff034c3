"""What estimators return has one form everywhere: arrays, tables of corrected labels, functions."""

import importlib
import inspect
import pkgutil

import jax
import numpy as np
import pandas as pd
import pytest
import zoo
from every import BINARY, CASES, LABELS, VOTES, K, N, every_estimator, fitted, quick
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import nbmodels as nb

#: Cross-fitted tables here, whose labels are ranked by neighbours, too.
BY_BOTH_ENDS = (
    "NoisyLogisticRegression",
    "NoisyLabelClassifier",
    "AutoNoisyClassifier",
    "ClassConditionalNB",  # by a regression
)
COLUMNS = ["row", "given", "suggested", "p_suggested", "p_wrong", "rank"]

#: By estimator: data of which it predicts, and the number of its items.
NEW = {
    "CollaborativeClassifier": [((), N), ((CASES["CollaborativeClassifier"][1][0],), N)],
    "DawidSkene": [((), 20), ((VOTES[VOTES["task"] < 5],), 5)],
    "JointNB": [(({"x": BINARY[:7]},), 7)],
}


def test_every_estimator_is_here():
    found = {n for n in nb.__all__ if hasattr(getattr(nb, n), "predict_proba")}
    assert found == set(CASES)


# Tables -------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_estimator
def test_corrected_labels(name):
    e = fitted(name)
    frame = e.corrected_labels()
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert set(frame.columns[len(COLUMNS) :]) <= {"votes", "failed_checks"}
    assert isinstance(frame.index, pd.RangeIndex)
    resp = e.label_posterior_
    assert len(frame) == len(resp) == (20 if name == "DawidSkene" else N)
    np.testing.assert_array_equal(frame["suggested"], e.classes_[resp.argmax(1)])
    np.testing.assert_array_equal(frame["p_suggested"], resp.max(1))
    np.testing.assert_array_equal(frame["row"], np.arange(len(frame)))
    assert isinstance(frame.attrs["verdict"], str)
    if name in ("UnlabelledNB", "PartialLabelNB"):  # nothing was given of which it could be asked
        assert frame[["given", "p_wrong", "rank"]].isna().all(axis=None)
        return
    codes = np.searchsorted(e.classes_, frame["given"].to_numpy())
    np.testing.assert_allclose(frame["p_wrong"], 1 - resp[np.arange(len(resp)), codes], atol=1e-12)
    assert sorted(frame["rank"]) == list(range(1, len(frame) + 1))
    if name in BY_BOTH_ENDS:
        changed = frame["suggested"] != frame["given"]
        assert sorted(frame["rank"][changed]) == list(range(1, changed.sum() + 1))
    else:
        assert (np.diff(frame.sort_values("rank")["p_wrong"]) <= 0).all()


# a classifier of so few rows learns nothing from the features
@pytest.mark.filterwarnings("ignore::nbmodels.errors.IdentifiabilityWarning")
def test_rows_are_those_of_the_frame():
    index = [f"item {i}" for i in range(N)]
    x = pd.DataFrame(BINARY, columns=list("abcd"), index=index)
    for name in ("NoisyBernoulliNB", "NoisyLabelClassifier"):
        e = quick(name).fit(x, pd.Series(LABELS, index=index))
        assert e.corrected_labels()["row"].tolist() == index


# Arrays -------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_estimator
def test_predictions_are_arrays(name):
    e = fitted(name)
    for data, n in NEW.get(name, [((BINARY[:7],), 7)]):
        probs, best = e.predict_proba(*data), e.predict(*data)
        assert type(probs) is np.ndarray
        assert probs.shape == (n, K)
        assert probs.dtype == float
        np.testing.assert_allclose(probs.sum(1), 1, 1e-9)
        assert type(best) is np.ndarray
        assert best.shape == (n,)
        assert best.dtype == e.classes_.dtype
        np.testing.assert_array_equal(best, e.classes_[probs.argmax(1)])
        if hasattr(e, "predict_log_proba"):
            found = e.predict_log_proba(*data)
            assert type(found) is np.ndarray
            np.testing.assert_allclose(np.exp(found), probs, atol=1e-12)


@every_estimator
def test_read_outs_are_arrays_in_double_precision(name):
    e = fitted(name)
    shapes = {"class_prior_": (K,), "class_log_prior_": (K,), "label_posterior_": (None, K)}
    if name not in ("UnlabelledNB", "PartialLabelNB"):
        shapes |= {"noise_matrix_": (K, K), "inverse_noise_matrix_": (K, K)}
    for attribute, shape in shapes.items():
        found = getattr(e, attribute)
        assert type(found) is np.ndarray, attribute
        assert found.dtype == float, attribute
        assert found.shape[-len(shape) :][1:] == shape[1:], attribute
        assert np.isfinite(found).all(), attribute
    assert type(e.converged_) is bool
    assert isinstance(e.n_iter_, int)
    assert isinstance(e.objective_, float)


def test_what_a_model_lacks_is_no_attribute():
    assert not hasattr(fitted("UnlabelledNB"), "noise_matrix_")
    for name in CASES:
        for attribute in ("noise_matrix_", "converged_", "chosen_", "fit_"):
            assert not hasattr(quick(name), attribute), (name, attribute)


# What scikit-learn reads and shows ----------------------------------------------------------------


@every_estimator
def test_tags(name):
    assert is_classifier(quick(name))
    assert get_tags(quick(name)).target_tags.required == (name != "UnlabelledNB")
    assert get_tags(fitted(name)).estimator_type == "classifier"


@pytest.mark.slow
@every_estimator
def test_repr_and_html(name):
    plain, e = quick(name), fitted(name)
    assert repr(plain).startswith(f"{name}(")
    assert repr(e) == repr(plain)
    for one in (plain, e):
        html = one._repr_html_()
        assert name in html
    assert "Not fitted" in plain._repr_html_()
    assert "Not fitted" not in e._repr_html_()
    changed = plain.set_params(solver__max_iter=77)
    assert "solver=Solver(" in repr(changed).replace("\n", "")
    assert "max_iter=77" in repr(changed)


# A second opinion ---------------------------------------------------------------------------------


def test_a_second_opinion_where_logistic_regression_wins():
    e = fitted("AutoNoisyClassifier")
    assert e.emission_ == "logistic"
    opinion = e.second_opinion(BINARY, LABELS, cv=2)
    same = e.estimator_.second_opinion(BINARY, LABELS, cv=2)
    pd.testing.assert_frame_equal(opinion.theirs, same.theirs)
    np.testing.assert_allclose(opinion.ours, e.noise_matrix_)
    np.testing.assert_allclose(opinion.theirs.sum(axis=0), 1)
    with pytest.raises(nb.DataError, match=r"^y: row 3 is not the label"):
        e.second_opinion(BINARY, np.where(np.arange(N) == 3, 1 - LABELS, LABELS))


# Names of the package -----------------------------------------------------------------------------


def test_no_module_takes_a_name_of_the_package():
    """``import nbmodels.program`` would put a module where a function was."""
    modules = {one.name for one in pkgutil.iter_modules(nb.__path__)}
    assert not modules & set(nb.__all__)


def test_functions_stay_functions():
    case = zoo.build("bernoulli", "transition", n_items=12, seed=1)
    modules = [
        "core.numpyro_program",
        "fitting.em",
        "diagnostics.comparison",
        "posterior.numpyro",
        "data",
    ]
    for _ in range(2):
        for name in ("em", "fit", "program", "compare", "compare_posteriors"):
            assert inspect.isfunction(getattr(nb, name)), name
        assert callable(nb.program(case.model, case.data))
        found = nb.fit(case.model, case.data, key=jax.random.key(0))
        assert isinstance(found, nb.Fit)
        for name in modules:
            importlib.import_module(f"nbmodels.{name}")
