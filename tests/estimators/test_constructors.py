"""Constructors are short, written out and typed; configurations are parameters like others."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from children import environment
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV

import nbmodels
from nbmodels import (
    AutoNoisyClassifier,
    CollaborativeClassifier,
    CrossFit,
    DawidSkene,
    Joint,
    JointGraph,
    JointNB,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    Priors,
    Solver,
)

ROOT = Path(nbmodels.__file__).parent.parent
CONFIGURATIONS = [CrossFit, Joint, JointGraph, Priors, Solver]
ESTIMATORS = [
    one
    for one in (getattr(nbmodels, name) for name in nbmodels.__all__)
    if inspect.isclass(one) and issubclass(one, BaseEstimator) and one not in CONFIGURATIONS
]
MOST_PARAMETERS = 12


def made(cls, **parameters):
    """An estimator; the sources of a joint model have no default."""
    own = {"sources": {"x": NoisyGaussianNB()}} if cls is JointNB else {}
    return cls(**own, **parameters)


def parameters_of(estimator):
    """Parameters by name; estimators in a mapping are equal to none but themselves."""
    return {n: str(v) if n == "sources" else v for n, v in estimator.get_params().items()}


def data():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = (rng.random((40, 4)) < np.where(y[:, None] == 1, 0.9, 0.1)).astype(int)
    return x, np.where(np.arange(40) < 4, 1 - y, y)


# Signatures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ESTIMATORS + CONFIGURATIONS)
def test_constructors_are_short_and_written_out(cls):
    parameters = inspect.signature(cls).parameters
    assert 0 < len(parameters) <= MOST_PARAMETERS
    for name, one in parameters.items():
        assert one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD), name
        assert one.annotation is not one.empty, name
        if name not in ("sources", "base_estimator"):
            assert one.kind is one.KEYWORD_ONLY, name
    assert sorted(cls._get_param_names()) == sorted(parameters)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_two_bases_at_most_lie_between_an_estimator_and_scikit_learn(cls):
    ours = [base for base in cls.__mro__[1:] if base.__module__.startswith("nbmodels")]
    assert len(ours) <= 2, [base.__name__ for base in ours]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_documented(cls):
    text = inspect.getdoc(cls)
    for name in inspect.signature(cls).parameters:
        assert f"\n    {name}: " in text, name


# Types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", [nbmodels, nbmodels.estimators])
def test_type_checkers_see_what_is_imported_late(package):
    """Without these imports each name is ``Any``, and nothing is checked."""
    (block,) = [
        node
        for node in ast.parse(Path(package.__file__).read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert set(seen) == set(package.__all__) - {"__version__"}
    for name, module in seen.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


ALONE = """
import numpy as np, pandas as pd
from nbmodels import NoisyMixedNB
x = pd.DataFrame({"size": np.arange(40) / 7, "kind": list("ab") * 20})
NoisyMixedNB(random_state=0).fit(x, np.arange(40) > 20)
"""


@pytest.mark.slow
def test_an_estimator_that_is_loaded_alone_knows_the_families():
    """In a process of its own, in which no other estimator has registered them."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


TYPED = """
from nbmodels import NoisyBernoulliNB, Priors, Solver

NoisyBernoulliNB(alpha=1.0, solver="vb", priors=Priors(noise_alpha=2), training="joint")
NoisyBernoulliNB(solver=Solver(max_iter=3))
"""
UNTYPED = [
    "NoisyBernoulliNB(alpa=1)",
    "NoisyBernoulliNB(alpha='x')",
    "NoisyBernoulliNB(solver='em')",
    "NoisyBernoulliNB(training='cut')",
    "NoisyBernoulliNB(priors={})",
    "Solver(max_steps=3)",
]


# a type checker that has not seen the package reads all of it first
@pytest.mark.slow
def test_mypy_refuses_what_is_no_parameter(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "user.py"
    file.write_text(TYPED + "\n".join(UNTYPED) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    first = TYPED.count("\n") + 1
    assert refused == set(range(first, first + len(UNTYPED))), done.stdout + done.stderr


# Configuration objects ----------------------------------------------------------------------------

NESTED = [
    (NoisyBernoulliNB, "solver__max_iter", 7, Solver(max_iter=7)),
    (NoisyBernoulliNB, "priors__noise_diagonal", 9.0, Priors(noise_diagonal=9.0)),
    (NoisyBernoulliNB, "training__weight", 0.3, CrossFit(weight=0.3)),
    (CollaborativeClassifier, "training__collapsed", False, JointGraph(collapsed=False)),
    (CollaborativeClassifier, "solver__max_iter", 7, Solver(method="vb", max_iter=7)),
    (JointNB, "solver__tol", 0.1, Solver(tol=0.1)),
    (JointNB, "priors__class_alpha", 2.0, Priors(class_alpha=2.0)),
    (DawidSkene, "priors__noise_alpha", 2.0, Priors(noise_alpha=2.0)),
    (NoisyLabelClassifier, "solver__method", "vb", Solver(method="vb")),
    (AutoNoisyClassifier, "solver__max_iter", 7, Solver(max_iter=7)),
    (AutoNoisyClassifier, "solver__on_interrupt", "keep", Solver(on_interrupt="keep")),
]


@pytest.mark.parametrize(("cls", "name", "value", "expected"), NESTED)
def test_a_nested_parameter_of_a_configuration_that_is_a_name_or_none(cls, name, value, expected):
    before = parameters_of(made(cls))
    estimator = made(cls).set_params(**{name: value})
    outer = name.partition("__")[0]
    assert getattr(estimator, outer) == expected
    assert estimator.get_params()[name] == value
    assert parameters_of(clone(estimator)) == parameters_of(estimator)
    # others, and the defaults, are as they were
    assert parameters_of(made(cls)) == before
    assert Solver() == Solver(method="map", max_iter=500, tol=1e-6)


@pytest.mark.parametrize("form", ["joint", "cross_fit", Joint(init="moments"), CrossFit(rounds=2)])
def test_the_training_that_was_named_is_kept(form):
    estimator = NoisyBernoulliNB(training=form).set_params(training__weight=0.3)
    expected = {"joint": Joint(), "cross_fit": CrossFit(rounds=0)}.get(str(form), form)
    assert estimator.training == clone(expected).set_params(weight=0.3)


@pytest.mark.parametrize("cls", [NoisyBernoulliNB, AutoNoisyClassifier, JointNB])
def test_one_object_in_two_estimators(cls):
    """A nested parameter of one is none of the other's."""
    shared = Solver(max_iter=50)
    one, other = made(cls, solver=shared), made(cls, solver=shared)
    one.set_params(solver__max_iter=3)
    assert (one.solver.max_iter, other.solver.max_iter, shared.max_iter) == (3, 50, 50)


def test_a_name_and_a_nested_parameter_together():
    for cls in (NoisyBernoulliNB, AutoNoisyClassifier):
        estimator = made(cls).set_params(solver__max_iter=3, solver="vb")
        assert estimator.solver == Solver(method="vb", max_iter=3)
    estimator = NoisyBernoulliNB().set_params(training__weight=0.5, training=Joint(size_power=0.0))
    assert estimator.training == Joint(weight=0.5, size_power=0.0)


@pytest.mark.parametrize("name", ["solver__maxiter", "priors__x", "training__init", "solve__tol"])
def test_unknown_nested_parameters_are_refused(name):
    with pytest.raises(ValueError, match="Invalid parameter"):
        NoisyBernoulliNB().set_params(**{name: 1})


def test_cross_fitted_graphs_have_no_nested_parameters():
    """The joint model's would silently take its place."""
    estimator = CollaborativeClassifier(training="cross_fit")
    with pytest.raises(ValueError, match=r"^training: 'cross_fit' has no parameters"):
        estimator.set_params(training__collapsed=False)
    assert estimator.training == "cross_fit"


@pytest.mark.parametrize("cls", CONFIGURATIONS)
def test_configuration_objects_are_values(cls):
    one = cls()
    assert one == clone(one)
    name, default = next(iter(one.get_params().items()))
    other = clone(one).set_params(**{name: "something else"})
    assert other != one
    assert getattr(one, name) == default
    assert repr(one) == f"{cls.__name__}()"
    assert "something else" in repr(other)


# of forty rows, one classifier in two is a poor one; what is asked is whether all are tried
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_grid_search_reaches_into_configurations():
    grid = {
        "solver__max_iter": [1, 50],
        "training__weight": [0.5, 1.0],
        "priors__noise_diagonal": [2.0, 1e6],
    }
    estimator = NoisyBernoulliNB.published()
    search = GridSearchCV(estimator, grid, cv=2, error_score="raise").fit(*data())
    assert len(search.cv_results_["params"]) == 8
    best = search.best_estimator_
    assert {name: best.get_params()[name] for name in grid} == search.best_params_
    # each setting was that of a fit
    fits = [clone(estimator).set_params(**one).fit(*data()) for one in search.cv_results_["params"]]
    assert len({round(float(fit.objective_), 6) for fit in fits}) == 8
    assert {fit.n_iter_ for fit in fits if fit.solver.max_iter == 1} == {1}
    assert estimator.get_params() == NoisyBernoulliNB.published().get_params()


@pytest.mark.slow
def test_grid_search_over_whole_configurations():
    grid = {"solver": ["ml", Solver(method="vb", max_iter=100)], "priors": [None, Priors()]}
    search = GridSearchCV(NoisyBernoulliNB.published(), grid, cv=2, error_score="raise")
    search.fit(*data())
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.converged_


def test_the_two_ways_to_name_a_solver_are_one():
    x, y = data()
    named, whole = (
        NoisyBernoulliNB.published(solver=s).fit(x, y) for s in ("vb", Solver(method="vb"))
    )
    np.testing.assert_array_equal(named.label_posterior_, whole.label_posterior_)
    plain = NoisyBernoulliNB.published().fit(x, y)
    assert np.abs(plain.label_posterior_ - named.label_posterior_).max() > 1e-6


@pytest.mark.parametrize(
    "cls", [c for c in ESTIMATORS if hasattr(c, "published") and c is not CollaborativeClassifier]
)
def test_published_forms_exist_or_are_refused(cls):
    if "training" in inspect.signature(cls).parameters:
        assert isinstance(cls.published().training, Joint)
        assert cls.published(solver="ml").solver == "ml"
    elif "estimator" in cls.published_settings:
        assert cls.published(solver="ml").estimator == "em"
    else:
        with pytest.raises(AttributeError, match=f"^{cls.__name__} has no published form"):
            cls.published()
