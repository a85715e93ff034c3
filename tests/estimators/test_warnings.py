"""A warning is issued once, at the line of the user who called the library or scikit-learn."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import nbmodels as nb
from nbmodels.errors import (
    ClippedWarning,
    IdentifiabilityWarning,
    NbmodelsWarning,
    NotConvergedWarning,
    VerdictWarning,
)

N = 120
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
#: Four copies of one column: naive Bayes takes them for four witnesses.
COPIES = np.repeat((RNG.random((N, 2)) < 0.2 + 0.6 * Y[:, None]).astype(int), 4, axis=1)
CHANCE = np.random.default_rng(2).integers(0, 2, (N, 3))
TURNED = np.array([[0.1, 0.8], [0.9, 0.2]])

#: A warning, who issues it, and the data.
CASES = {
    "verdict": (VerdictWarning, lambda: nb.NoisyBernoulliNB.published(), COPIES),
    "crossed": (
        IdentifiabilityWarning,
        lambda: nb.NoisyBernoulliNB.published(noise=TURNED),
        COPIES[:, ::4],
    ),
    "limit": (
        NotConvergedWarning,
        lambda: nb.NoisyBernoulliNB.published(solver=nb.Solver(max_iter=2)),
        COPIES[:, ::4],
    ),
    "closed form": (ClippedWarning, lambda: nb.ClassConditionalNB(estimator="moments"), CHANCE),
    "compared": (
        NotConvergedWarning,
        lambda: nb.AutoNoisyClassifier(emission=["bernoulli"], solver=nb.Solver(max_iter=2)),
        COPIES[:, ::4],
    ),
    "sources": (
        NotConvergedWarning,
        lambda: _Sources(nb.Solver(max_iter=2)),
        COPIES[:, ::4],
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


class _Sources:
    """A joint model of one source, with the signature of a classifier of a table."""

    def __init__(self, solver):
        self.model = nb.JointNB({"x": nb.NoisyBernoulliNB()}, solver=solver)

    def fit(self, x, y):
        return self.model.fit({"x": x}, y)


def caught(call, *args):
    with warnings.catch_warnings(record=True, action="always") as found:
        call(*args)
    return [w for w in found if issubclass(w.category, NbmodelsWarning)]


def here(found, line=None):
    """Whether all warnings name this file, and a line of it."""
    lines = {w.lineno for w in found}
    return {w.filename for w in found} == {__file__} and (line is None or lines == {line})


@pytest.mark.slow
@every_case
def test_once_at_the_line_of_the_fit(name):
    category, make, x = CASES[name]
    line = inspect.currentframe().f_lineno + 1
    found = caught(lambda: make().fit(x, Y))
    assert category in {w.category for w in found}
    messages = [str(w.message) for w in found]
    assert len(set(messages)) == len(messages)
    if name != "sources":  # whose line is that of the class above
        assert here(found, line)


@every_case
def test_the_same_in_a_pipeline(name):
    category, make, x = CASES[name]
    if name == "sources":
        pytest.skip("takes a mapping")
    alone = caught(lambda: make().fit(x, Y))
    steps = make_pipeline(FunctionTransformer(), make())
    line = inspect.currentframe().f_lineno + 1
    found = caught(lambda: steps.fit(x, Y))
    assert here(found, line)
    assert [str(w.message) for w in found] == [str(w.message) for w in alone]
    assert category in {w.category for w in found}


def test_searches_and_scores_name_the_line_that_began_them():
    _, make, x = CASES["limit"]
    line = inspect.currentframe().f_lineno + 1
    found = caught(lambda: cross_val_score(make(), x, Y, cv=3, error_score="raise"))
    assert here(found, line)
    assert sum(w.category is NotConvergedWarning for w in found) == 3  # one a fit
    line = inspect.currentframe().f_lineno + 1
    found = caught(lambda: GridSearchCV(make(), {"alpha": [1.0, 2.0]}, cv=2).fit(x, Y))
    assert here(found, line)
    assert sum(w.category is NotConvergedWarning for w in found) == 5


def test_a_filter_of_the_user_holds():
    _, make, x = CASES["limit"]
    with warnings.catch_warnings(record=True) as found:
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", category=NbmodelsWarning)
        make().fit(x, Y)
    assert not found
    with warnings.catch_warnings(action="error"), pytest.raises(NotConvergedWarning):
        make().fit(x, Y)


def test_a_warning_as_an_error_leaves_a_fitted_estimator():
    _, make, x = CASES["limit"]
    e = make()
    with warnings.catch_warnings(action="error"), pytest.raises(NotConvergedWarning):
        e.fit(x, Y)
    assert not e.converged_
    assert e.predict(x).shape == (N,)
