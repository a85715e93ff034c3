"""Settings that no fit and no sampler can use are refused by name, before anything is computed."""

import inspect
import re

import numpy as np
import pytest
from every import CASES, every_estimator, fitted

import nbmodels as nb
from nbmodels import DataError, Joint, JointGraph, Priors, Solver


def refuses(argument, name, **parameters):
    """Assert that a fit is refused, by a message that begins with the argument's name."""
    make, data = CASES[name]
    with pytest.raises(DataError, match=rf"^{argument}: expected .*"):
        make(**parameters).fit(*data)


def takes(name, parameter):
    return parameter in inspect.signature(getattr(nb, name)).parameters


def test_every_estimator_is_here():
    found = {n for n in nb.__all__ if hasattr(getattr(nb, n), "predict_proba")}
    assert found == set(CASES)


# Fits ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_estimator
@pytest.mark.parametrize("value", ["x", -1, 1.5, [0]], ids=repr)
def test_random_state(name, value):
    refuses("random_state", name, random_state=value)


@every_estimator
@pytest.mark.parametrize("value", ["em", None, Solver, {"method": "vb"}, Priors()], ids=repr)
def test_solver(name, value):
    refuses("solver", name, solver=value)


SOLVER = [
    ("method", "x"),
    ("accelerate", "x"),
    ("accelerate", None),
    ("precision", 64),
    ("progress", "x"),
    ("on_interrupt", "stop"),
    ("tol", -1e-6),
    ("tol", np.nan),
    ("max_iter", 0),
    ("max_iter", True),
    ("max_iter", 10**12),
    ("n_restarts", -1),
    ("n_restarts", 10**9),
]


@every_estimator
@pytest.mark.parametrize(("setting", "value"), SOLVER)
def test_settings_of_the_solver(name, setting, value):
    refuses(setting, name, solver=Solver(**{setting: value}))


@every_estimator
@pytest.mark.parametrize("value", ["x", 2.0, Priors, {"noise_alpha": 1.0}, Solver()], ids=repr)
def test_priors(name, value):
    if takes(name, "priors"):
        refuses("priors", name, priors=value)


@every_estimator
@pytest.mark.parametrize("setting", ["class_alpha", "noise_alpha", "noise_diagonal"])
def test_settings_of_the_priors(name, setting):
    if takes(name, "priors"):
        for value in (-1.0, np.inf, None, "x"):
            refuses(setting, name, priors=Priors(**{setting: value}))


@every_estimator
@pytest.mark.parametrize("value", ["x", None, "cut", Joint, True], ids=repr)
def test_training(name, value):
    if takes(name, "training"):
        refuses("training", name, training=value)
        other = Joint() if name == "CollaborativeClassifier" else JointGraph()
        refuses("training", name, training=other)


FORMS = {"ClassConditionalNB": {"full", "symmetric", "pooled"}}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_the_noise_that_are_not_selected(name):
    refuses("noise", name, noise="auto")
    refuses("noise", name, noise="diagonal")
    # and the documentation lists what is taken
    (text,) = re.findall(r"\n    noise: (.*?)\n    \w+: ", inspect.getdoc(getattr(nb, name)), re.S)
    assert set(re.findall(r'``"(\w+)"``', text)) == FORMS[name]
    make, _ = CASES[name]
    for form in FORMS[name]:
        make(noise=form)._validate()


@pytest.mark.parametrize("name", ["ClassConditionalNB", "PartialLabelNB", "UnlabelledNB"])
def test_what_these_do_not_select_is_refused(name):
    """It was read as the first of the values that others compare."""
    for parameter in ("alpha", "weight"):
        refuses(parameter, name, **{parameter: "auto"})
    refuses("noise_diagonal", name, priors=Priors(noise_diagonal="auto"))


@pytest.mark.parametrize("name", ["NoisyLabelClassifier", "NoisyLogisticRegression"])
@pytest.mark.parametrize("value", [1, 0, -3, "x", 2.5], ids=repr)
def test_folds(name, value):
    refuses("cv", name, cv=value)


@pytest.mark.parametrize("value", [-1, 1, 2.5, "x", None], ids=repr)
def test_folds_of_a_graph(value):
    refuses("noise_folds", "CollaborativeClassifier", training=JointGraph(noise_folds=value))


# the fixture forks to set the limit, and runs another program at once
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_huge_numbers_are_refused_before_memory_goes(within):
    script = """
        import numpy as np
        import nbmodels as nb

        y = np.arange(40) % 2
        x = np.stack([y, 1 - y, y], 1)
        for setting in ("n_restarts", "max_iter"):
            try:
                nb.NoisyBernoulliNB(solver=nb.Solver(**{setting: 10**10})).fit(x, y)
            except nb.DataError as error:
                print(str(error).partition(":")[0])
    """
    assert within(2 * 2**30, script).split() == ["n_restarts", "max_iter"]


# Draws --------------------------------------------------------------------------------------------


WRONG = [
    ("draws", 0),
    ("draws", -1),
    ("draws", 1.5),
    ("draws", "many"),
    ("chains", 0),
    ("chains", None),
    ("thin", 0),
    ("warmup", -3),
    ("warmup", 2.5),
    ("random_state", "x"),
    ("random_state", -1),
    ("keep", "some"),
    ("method", "hmc"),
    ("progress", "x"),
]


@pytest.mark.parametrize("name", ["DawidSkene", "UnlabelledNB"])
@pytest.mark.parametrize(("argument", "value"), WRONG)
def test_arguments_of_the_posterior(name, argument, value):
    with pytest.raises(DataError, match=rf"^{argument}: expected "):
        fitted(name).posterior(**{argument: value})


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("n_draws", "draws"),
        ("chain", "chains"),
        ("Draws", "draws"),
        ("num_samples", None),
        ("names", None),
        ("units", None),
    ],
)
def test_unknown_options_of_the_posterior(option, meant):
    hint = rf"did you mean {meant}\? Its" if meant else "its"
    known = "draws, chains, thin, warmup, keep, sandwich, progress$"
    words = rf"^{option}: unknown option of method='gibbs'; {hint} options: {known}"
    with pytest.raises(DataError, match=words):
        fitted("DawidSkene").posterior(**{option: 10})
    with pytest.raises(DataError, match=r"progress, target_accept$"):
        fitted("DawidSkene").posterior("nuts", **{option: 10})
