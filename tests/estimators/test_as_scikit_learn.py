"""What users of scikit-learn do with an estimator, done with the three that they meet first."""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from every import BINARY, LABELS, every_estimator, quick
from every import CASES as EVERY
from marks import slow_among
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import nbmodels as nb
from nbmodels.estimators.auto import _ANSWERS

N = 60
CODES = np.arange(N) % 2
NAMES = np.array(["no", "yes"])[np.where(np.arange(N) % 6 == 5, 1 - CODES, CODES)]
REAL = pd.DataFrame(
    np.random.default_rng(0).normal(3.0 * CODES[:, None], 1.0, (N, 2)), columns=["a", "b"]
)
FLAGS = (REAL > 1.5).astype(int)

#: An estimator, its data, and a grid for it.
CASES = {
    "naive Bayes": (nb.NoisyBernoulliNB.published(), FLAGS, {"alpha": [0.5, 50.0]}),
    "any classifier": (
        nb.NoisyLabelClassifier(GaussianNB(), rounds=0, cv=3, random_state=0),
        REAL,
        {"base_estimator__var_smoothing": [1e-9, 10.0]},
    ),
    "automatic": (
        nb.AutoNoisyClassifier(emission=["bernoulli"], noise="full", random_state=0),
        REAL - 1.5,
        {"solver__max_iter": [50, 500]},
    ),
}
every_case = pytest.mark.parametrize("name", CASES)
#: For what fits an estimator several times.
quick_case = pytest.mark.parametrize("name", slow_among(CASES, ("automatic",)))
# thirty rows are too few for some checks
pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")


@pytest.mark.slow
@quick_case
def test_cross_validation(name):
    estimator, x, _ = CASES[name]
    scoring = ["accuracy", "neg_log_loss", "roc_auc"]
    found = cross_validate(estimator, x, NAMES, cv=2, scoring=scoring, error_score="raise")
    assert np.isfinite([found[f"test_{one}"] for one in scoring]).all()
    np.testing.assert_array_equal(
        cross_val_score(estimator, x, NAMES, cv=2, error_score="raise"), found["test_accuracy"]
    )
    assert found["test_roc_auc"].min() > 0.6
    probs = cross_val_predict(estimator, x, NAMES, cv=2, method="predict_proba")
    assert ((probs[:, 1] > 0.5) == CODES).mean() > 0.85
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize("name", slow_among(CASES, ("any classifier", "automatic")))
def test_grid_search_in_a_pipeline(name):
    estimator, x, grid = CASES[name]
    steps = make_pipeline("passthrough", clone(estimator))
    place = steps.steps[-1][0]
    nested = {f"{place}__{setting}": values for setting, values in grid.items()}
    search = GridSearchCV(steps, nested, cv=2, error_score="raise").fit(x, NAMES)
    ((setting, values),) = nested.items()
    assert search.best_params_[setting] in values
    again = clone(estimator).set_params(
        **{setting.partition("__")[2]: search.best_params_[setting]}
    )
    np.testing.assert_array_equal(
        search.predict_proba(x), again.fit(x, NAMES).predict_proba(x)
    )  # fmt: skip
    assert list(search.classes_) == ["no", "yes"]


@quick_case
def test_weights_pass_through_a_pipeline(name):
    estimator, x, _ = CASES[name]
    steps = make_pipeline("passthrough", clone(estimator))
    weights = (np.arange(N) < 40).astype(float)
    steps.fit(x, NAMES, **{f"{steps.steps[-1][0]}__sample_weight": weights})
    plain = clone(estimator).fit(x, NAMES)
    assert np.abs(steps.predict_proba(x) - plain.predict_proba(x)).max() > 1e-6


@every_case
def test_names_of_columns_and_output(name):
    """``set_output`` is of transformers; what they hand over keeps its names."""
    estimator, x, _ = CASES[name]
    assert not hasattr(estimator, "transform")
    first = make_column_transformer((StandardScaler(), ["a", "b"]), verbose_feature_names_out=False)
    estimator = clone(estimator)
    if name == "naive Bayes":
        estimator.set_params(binarize=0.0)
    steps = make_pipeline(first, estimator).set_output(transform="pandas").fit(x, NAMES)
    last = steps[-1]
    assert list(last.feature_names_in_) == ["a", "b"]
    assert last.n_features_in_ == 2
    assert last.corrected_labels()["given"].tolist() == NAMES.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        last.predict(x.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names should match"):
        last.predict(x.assign(c=0.0))


@quick_case
def test_copies(name):
    estimator, x, _ = CASES[name]
    e = clone(estimator).fit(x, NAMES)
    for one in (copy.deepcopy(e), pickle.loads(pickle.dumps(e)), copy.copy(e)):
        np.testing.assert_array_equal(one.predict_proba(x), e.predict_proba(x))
        pd.testing.assert_frame_equal(one.corrected_labels(), e.corrected_labels())
        assert one.verdict().sentence == e.verdict().sentence
    fresh = clone(e)
    assert vars(fresh).keys() == fresh.get_params(deep=False).keys()
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    # a second fit forgets the first
    other = np.where(CODES == 1, "b", "a")
    np.testing.assert_array_equal(e.fit(x, other).classes_, ["a", "b"])
    assert set(e.predict(x)) <= {"a", "b"}
    assert set(e.corrected_labels()["given"]) == {"a", "b"}


@pytest.mark.slow
@every_case
def test_inside_other_estimators(name):
    estimator, x, _ = CASES[name]
    calibrated = CalibratedClassifierCV(clone(estimator), cv=2, ensemble=False).fit(x, NAMES)
    assert calibrated.n_features_in_ == 2
    vote = VotingClassifier([("one", clone(estimator)), ("other", GaussianNB())], voting="soft")
    assert vote.fit(x, NAMES).score(x, NAMES) > 0.7


def real(**settings):
    return nb.NoisyGaussianNB.published(random_state=0, **settings).fit(REAL, NAMES)


def test_looking_at_a_fit_draws_nothing(monkeypatch):
    """scikit-learn reads every attribute where it lists them, and for its table."""
    e = real()

    def drawn(*args, **options):
        raise AssertionError("posterior draws were taken")

    monkeypatch.setattr(nb.NoisyGaussianNB, "posterior", drawn)
    assert "noise_matrix_" in e._repr_html_()
    assert "noise_range_" in dir(e)
    assert "noise_range_" not in dir(nb.NoisyGaussianNB())


def test_looking_at_a_fit_to_votes_leaves_its_report():
    votes = {"task": np.repeat(np.arange(30), 3), "worker": [0, 1, 2] * 30}
    votes["label"] = np.repeat(np.arange(30) % 2, 3)
    e = nb.DawidSkene(random_state=0).fit(votes)
    assert "workers_" in dir(e)
    assert "workers_" in e._repr_html_()
    assert len(e.worker_report()) == 3


def test_results_print_as_sentences():
    verdict = real().verdict()
    assert str(verdict) == verdict.sentence
    html = verdict._repr_html_()
    assert verdict.sentence.split(".")[0] in html
    assert "<table" in html


@pytest.mark.parametrize("progress", [None, False])
def test_draws_show_what_the_solver_shows(monkeypatch, progress):
    asked = []

    def sample(*args, **options):
        asked.append(options["progress"])
        raise KeyboardInterrupt

    monkeypatch.setattr("nbmodels.posterior.sampling.sample", sample)
    e = real(solver=nb.Solver(progress=progress))
    with pytest.raises(KeyboardInterrupt):
        e.posterior()
    with pytest.raises(KeyboardInterrupt):
        e.posterior(progress=True)
    assert asked == [progress, True]


def answers(e):
    """Names of the properties and of the methods that are for fitted estimators."""
    found = {n: inspect.getattr_static(type(e), n) for n in dir(type(e)) if n[0] != "_"}
    no_fit = {"fit", "get_params", "set_params", "get_metadata_routing"}
    methods = {n for n, v in found.items() if inspect.isfunction(v)} - no_fit
    return {n for n, v in found.items() if isinstance(v, property)}, methods


@every_estimator
def test_an_unfitted_estimator_raises_not_fitted(name):
    e = quick(name)
    properties, methods = answers(e)
    if name == "AutoNoisyClassifier":
        properties |= _ANSWERS
    assert {"label_posterior_", "noise_matrix_", "converged_"} <= properties
    assert {"predict", "predict_proba", "score"} <= methods
    for one in properties:
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
            getattr(e, one)
        assert not hasattr(e, one)
    for one in methods:
        call = getattr(e, one)
        needs = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
        needs = [p for p in needs if p.kind == p.POSITIONAL_OR_KEYWORD]
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
            call(*[None] * len(needs))


@every_estimator
def test_labels_that_lack_are_told_of_the_right_estimator(name):
    if name in ("UnlabelledNB", "DawidSkene"):
        return
    data = EVERY[name][1][0]
    with pytest.raises(
        nb.DataError, match=rf"^(y: ({name} requires y|no label names)|labels: a graph needs)"
    ):
        quick(name).fit(data, None)


#: Estimators by whether they take NaN, beside those that are told of it by ``missing_values``.
NAN = {
    "neighbours": (nb.NoisyNeighbours(), True),
    "distances": (nb.NoisyNeighbours(metric="precomputed", n_neighbors=3), False),
    "regression": (nb.NoisyLogisticRegression(C=1.0, rounds=0), False),
    "any": (nb.NoisyLabelClassifier(GaussianNB(), rounds=0), False),
    "any with gaps": (nb.NoisyLabelClassifier(DecisionTreeClassifier(), rounds=0), True),
    "logistic": (nb.AutoNoisyClassifier(emission="logistic"), True),
    "tfidf": (nb.AutoNoisyClassifier(emission=["tfidf"], missing_values=np.nan), False),
    "one of two": (nb.AutoNoisyClassifier(emission=["gaussian", "logistic"]), False),
} | {
    f"{name} {marker}": (quick(name, missing_values=marker), marker is not None)
    for name in ("NoisyBernoulliNB", "NoisyMixedNB", "AutoNoisyClassifier", "PartialLabelNB")
    for marker in (None, np.nan, -1)
    if (name, marker) != ("AutoNoisyClassifier", None)
}
_LONG = (
    "any with gaps",
    "logistic",
    "AutoNoisyClassifier nan",
    "AutoNoisyClassifier -1",
    "PartialLabelNB nan",
)


@pytest.mark.parametrize("case", NAN)
def test_tags_tell_who_takes_missing_cells(case):
    e, takes = NAN[case]
    assert get_tags(e).input_tags.allow_nan == takes


@pytest.mark.parametrize("case", slow_among(NAN, _LONG))
def test_missing_cells_are_taken_as_tags_tell(case):
    e, takes = NAN[case]
    x = BINARY.astype(float)
    x[3, 1] = x[20, 2] = np.nan
    if takes:
        assert np.isfinite(e.fit(x, LABELS).predict_proba(x)).all()
    else:
        with pytest.raises(ValueError, match=r"missing|NaN|distances"):
            e.fit(x, LABELS)


def test_two_folds_leave_a_round_with_nothing_to_learn_from():
    """Every fold is scored by what has seen neither its labels nor the other fold's: nothing."""
    e = nb.NoisyLabelClassifier(GaussianNB(), rounds=1, cv=2, random_state=0)
    assert e.fit(REAL, NAMES).score(REAL, NAMES) > 0.7
    assert np.isfinite(e.predict_proba(REAL)).all()


def test_labels_of_the_fit_are_not_changed():
    x, y = BINARY.copy(), LABELS.copy()
    for one in ("NoisyBernoulliNB", "NoisyLabelClassifier"):
        quick(one).fit(x, y)
    np.testing.assert_array_equal(x, BINARY)
    np.testing.assert_array_equal(y, LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("make", [nb.NoisyGaussianNB.published, nb.NoisyLabelClassifier])
def test_an_index_that_repeats_is_no_name_for_votes(make):
    fixed = {} if make == nb.NoisyGaussianNB.published else {"rounds": 0, "noise": "full"}
    e = make(random_state=0, **fixed)
    votes = pd.DataFrame({"task": np.arange(2 * N) // 2 % 40, "worker": ["a", "b"] * N})
    votes["label"] = NAMES[votes["task"]]
    x = REAL.set_axis([*range(40), *[99] * (N - 40)])
    ours = e.fit(x, NAMES, votes=votes).label_posterior_
    np.testing.assert_array_equal(ours, e.fit(REAL, NAMES, votes=votes).label_posterior_)
    votes.loc[5, "task"] = 99
    with pytest.raises(nb.DataError, match=r"^votes: row 5 has the task 99, which is 20 rows by"):
        e.fit(x, NAMES, votes=votes)


@pytest.mark.slow
def test_tables_of_arrow_are_read_as_data_frames():
    arrow = pytest.importorskip("pyarrow")
    e = nb.NoisyGaussianNB(random_state=0)
    table = arrow.Table.from_pandas(REAL)
    ours = e.fit(table, NAMES).predict_proba(table)
    np.testing.assert_array_equal(ours, e.fit(REAL, NAMES).predict_proba(REAL))
