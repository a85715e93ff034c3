"""Denis 2006: EM by its equations, and the estimators of two classes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from paper_data import SIZES, all_items, joint, product_distributions, two_class_items

from nbmodels import (
    ClassConditionalNB,
    ClippedWarning,
    DataError,
    IdentifiabilityWarning,
    NoisyCategoricalNB,
    PositiveUnlabelledNB,
    Solver,
    UnlabelledNB,
)
from nbmodels.core import model as models
from nbmodels.papers import denis2006

quiet = pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")


def bad(e, *args, match, **kwargs):
    with pytest.raises(DataError, match=match):
        e.fit(*args, **kwargs)


@pytest.mark.slow
def test_a_plain_step_is_that_of_the_paper():
    x, y, _ = two_class_items()
    n, rng = len(y), np.random.default_rng(1)
    model = denis2006.to_model(SIZES)
    data = denis2006.to_data(model, x, y)
    guess = 0.2 + 0.6 * jax.nn.one_hot(y, 2) * rng.random((n, 1))
    q = models.start(model, guess / guess.sum(1, keepdims=True), data, "ml")
    old = {name: np.asarray(v) for name, v in denis2006.parameters(model, q).items()}
    new = denis2006.parameters(model, models.step("ml")(q, (model, data))[0])

    eta = {0: old["eta0"], 1: old["eta1"]}
    P = {0: "P_minus", 1: "P_plus"}

    def given_x(z, i):
        """Proportional to P(z | x_i, theta_k)."""
        share = old["p"] if z else 1 - old["p"]
        return share * np.prod([old[f"{P[z]}_{j}"][x[i, j]] for j in range(len(SIZES))])

    corrupted = np.zeros(n)  # (20)
    for i in range(n):
        flipped = given_x(1 - y[i], i) * eta[1 - y[i]]
        corrupted[i] = flipped / (flipped + given_x(y[i], i) * (1 - eta[y[i]]))
    for k in (0, 1):
        was = np.where(y == k, 1 - corrupted, corrupted)  # the label was k before the noise
        size = was.sum()
        np.testing.assert_allclose(new["p"] if k else 1 - new["p"], size / n)  # (21)
        for j, values in enumerate(SIZES):
            counts = [was[x[:, j] == a].sum() / size for a in range(values)]
            np.testing.assert_allclose(new[f"{P[k]}_{j}"], counts)  # (22)
        np.testing.assert_allclose(new[f"eta{k}"], was[y == 1 - k].sum() / size)  # (23)


def simulated(n, seed=0, eta=(0.2, 0.5), p=0.6):
    """Ten binary attributes of a target drawn once, with text labels."""
    ones = denis2006.draw_target(jax.random.key(3))[1]
    sim = denis2006.simulate(jax.random.key(seed), (jnp.asarray(p), ones), n, 500, eta)
    names = np.array(["no", "yes"])
    return sim, np.asarray(sim.x), names[np.asarray(sim.y_true)], names[np.asarray(sim.y)]


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
def test_flip_rates_are_found(method):
    sim, x, y_true, y = simulated(4000)
    e = ClassConditionalNB(estimator=method).fit(x[:4000], y[:4000])
    # beta is near 1/2, where the closed form knows it least: its discriminant is near zero
    near = {"moments": 0.1, "em": 0.04}[method]
    np.testing.assert_allclose(e.flip_rates_, [0.2, 0.5], atol=near)
    np.testing.assert_allclose(e.class_prior_, [0.4, 0.6], atol=near)
    np.testing.assert_allclose(np.exp(e.feature_log_prob_[2])[:, 1], sim.ones[2], atol=near)
    assert (e.predict(x[4000:]) == y_true[4000:]).mean() > 0.9
    assert e.classes_.tolist() == ["no", "yes"]
    assert e.converged_
    np.testing.assert_allclose(e.noise_matrix_.sum(0), 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sample_weight. weights sum to 1,")
def test_estimator_is_the_closed_form():
    """Rows weighted by their exact probabilities: the estimator gives the exact parameters."""
    sizes = (2, 3, 3)
    probs = product_distributions(sizes, 2, np.random.default_rng(2))
    x, onehot = all_items(sizes)
    both = joint(onehot, [0.3, 0.7], probs) @ [[0.9, 0.1], [0.6, 0.4]]
    weights = np.concatenate([both[:, 0], both[:, 1]])
    y = np.repeat(["a", "b"], len(x))
    e = ClassConditionalNB(estimator="moments").fit(np.tile(x, (2, 1)), y, sample_weight=weights)
    np.testing.assert_allclose(e.flip_rates_, [0.1, 0.6], atol=1e-9)
    np.testing.assert_allclose(e.class_prior_, [0.3, 0.7], atol=1e-9)
    np.testing.assert_allclose(np.exp(np.concatenate(e.feature_log_prob_, 1)).T, probs, atol=1e-9)
    expected = (weights * np.log(np.concatenate([both[:, 0], both[:, 1]]))).sum()
    np.testing.assert_allclose(e.objective_, expected)
    # where the likelihood is largest already, EM has nothing to do
    em = ClassConditionalNB.published(solver="ml").fit(np.tile(x, (2, 1)), y, sample_weight=weights)
    np.testing.assert_allclose(em.objective_, expected, rtol=1e-9)
    np.testing.assert_allclose(em.flip_rates_, [0.1, 0.6], atol=1e-4)


@pytest.mark.slow
@quiet
def test_a_class_may_be_labelled_wrong_more_often_than_right():
    """Identifiability: eta0 + eta1 < 1 is enough, and nothing is warned of."""
    _, x, y_true, y = simulated(2000, eta=(0.1, 0.7))
    e = ClassConditionalNB().fit(x, y)
    np.testing.assert_allclose(e.flip_rates_, [0.1, 0.7], atol=0.05)
    assert (e.predict(x) == y_true).mean() > 0.85


@pytest.mark.slow
def test_inadmissible_estimates_warn_and_em_goes_on():
    rng = np.random.default_rng(0)
    x, y = rng.integers(3, size=(40, 4)), rng.integers(2, size=40)
    with pytest.warns(ClippedWarning, match="flip rates"):
        e = ClassConditionalNB(estimator="moments").fit(x, y)
    assert e.flip_rates_.sum() < 1
    assert ((e.flip_rates_ >= 0) & (e.flip_rates_ <= 1)).all()
    with pytest.warns(ClippedWarning, match="EM continues"):
        e = ClassConditionalNB(solver=Solver(max_iter=2000)).fit(x, y)
    assert e.converged_
    assert np.all(np.diff(e.objective_trace_) >= 0)
    assert np.isfinite(e.predict_proba(x)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
def test_rates_that_sum_to_more_than_one_are_reported():
    _, x, _, y = simulated(300)
    wrong = np.array([[0.1, 0.2], [0.9, 0.8]])
    with pytest.warns(IdentifiabilityWarning, match="sum to one or more"):
        ClassConditionalNB(noise=wrong).fit(x, y)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
@pytest.mark.parametrize("positive", ["no", "yes"])
def test_positive_and_unlabelled(method, positive):
    _, x, y_true, _ = simulated(4000)
    marked = (y_true == positive) & (np.random.default_rng(0).random(len(x)) < 0.3)
    other = "yes" if positive == "no" else "no"
    e = PositiveUnlabelledNB(positive=positive, estimator=method)
    e.fit(x, np.where(marked, positive, other))
    where = list(e.classes_).index(positive)
    share = (y_true[~marked] == positive).mean()
    np.testing.assert_allclose(e.class_prior_[where], share, atol=0.05)
    hidden = x[~marked]
    assert (e.predict(hidden) == y_true[~marked]).mean() > 0.87
    # predictions are for items like the unlabelled ones
    np.testing.assert_allclose(e.predict_proba(hidden)[:, where].mean(), share, atol=0.05)
    assert e.label_posterior_[marked][:, where].min() == 1
    # the same with missing labels instead of the other class's
    nulls = np.where(marked, positive, None)
    again = PositiveUnlabelledNB(
        positive=positive, missing_label=np.nan, classes=["no", "yes"], estimator=method
    ).fit(x, nulls)
    np.testing.assert_allclose(again.class_prior_, e.class_prior_)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
def test_unlabelled(method):
    _, x, y_true, _ = simulated(2000, p=0.3)
    e = UnlabelledNB(estimator=method).fit(x)
    np.testing.assert_allclose(e.class_prior_, [0.7, 0.3], atol=0.08)
    assert (e.predict(x) == (y_true == "yes")).mean() > 0.85
    named = UnlabelledNB(classes=["often", "seldom"], estimator=method).fit(x)
    assert named.predict(x).tolist() == np.where(e.predict(x), "seldom", "often").tolist()


@pytest.mark.slow
@quiet
def test_weights_are_repeated_rows_and_missing_cells_are_left_out():
    _, x, _, y = simulated(300)
    x, y = x[:300].astype(float), y[:300]
    times = np.random.default_rng(0).integers(3, size=300)
    e = ClassConditionalNB()
    one = e.fit(x, y, sample_weight=times).flip_rates_
    np.testing.assert_allclose(e.fit(x.repeat(times, 0), y.repeat(times)).flip_rates_, one)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    e = ClassConditionalNB(missing_values=np.nan).fit(x, y)
    assert np.isfinite(e.objective_)
    assert len(e.categories_[0]) == 2


@quiet
@pytest.mark.parametrize(
    ("positive", "other", "null"),
    [(1.0, 0.0, np.nan), (1, 0, None), (0, 1, None), (True, False, None), ("bee", "not bee", None)],
)
def test_labels_of_positive_items_alone(positive, other, null):
    _, x, y_true, _ = simulated(300)
    marked = (y_true == "yes") & (np.arange(len(x)) % 2 == 0)
    alone = np.array([positive if one else null for one in marked])
    e = PositiveUnlabelledNB(positive=positive, missing_label=np.nan, estimator="moments")
    assert set(e.fit(x, alone).classes_) == {positive, other}
    both = np.array([positive if one else other for one in marked])
    again = PositiveUnlabelledNB(positive=positive, estimator="moments").fit(x, both)
    np.testing.assert_array_equal(again.classes_, e.classes_)
    np.testing.assert_allclose(again.predict_proba(x), e.predict_proba(x))


@quiet
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")  # columns of chance
def test_measurements_are_no_symbols():
    rng = np.random.default_rng(0)
    symbols = rng.integers(0, 2, (100, 3)).astype(float)
    real = np.column_stack([symbols, rng.normal(size=100)])
    frame = pd.DataFrame(real, columns=["a", "b", "c", "length"])
    bad(UnlabelledNB(), frame, match="column 'length' has 100 different values in 100 rows")
    # values that repeat stay symbols, however many there are
    many = np.column_stack([symbols, np.arange(100) % 50])
    assert UnlabelledNB(estimator="moments").fit(many).predict(many).shape == (100,)
    assert UnlabelledNB(estimator="moments").fit(real[:20]).classes_.tolist() == [0, 1]


def test_bad_input():
    _, x, _, y = simulated(60)
    three = np.where(np.arange(len(y)) % 3 == 0, "perhaps", y)
    bad(ClassConditionalNB(), x[:, :1], y, match="n_features = 1")
    bad(UnlabelledNB(), x[:, :2], match="3 attributes or more")
    bad(ClassConditionalNB(), x, three, match="Only binary classification")
    bad(ClassConditionalNB(estimator="map"), x, y, match="estimator: expected one of")
    bad(ClassConditionalNB(solver="moments"), x, y, match="solver: expected")
    bad(ClassConditionalNB(noise=np.eye(2), estimator="moments"), x, y, match="noise: estimator=")
    bad(ClassConditionalNB(class_prior=[0.5, 0.5], estimator="moments"), x, y, match="class_prior:")
    weights = (y == "yes").astype(float)
    bad(ClassConditionalNB(), x, y, sample_weight=weights, match="both classes need labels")
    bad(PositiveUnlabelledNB(), x, y, match="positive: name the label")
    bad(PositiveUnlabelledNB(positive="maybe"), x, y, match="positive: no row of y")
    bad(PositiveUnlabelledNB(positive="yes"), x, three, match="Only binary classification")
    same = np.full(len(y), "yes")
    bad(PositiveUnlabelledNB(positive="yes"), x, same, match="y: no row is unlabelled")
    bad(PositiveUnlabelledNB(positive="yes", classes=["no", "yes"]), x, same, match="unlabelled")
    bad(PositiveUnlabelledNB(positive="no", classes=["no", "yes"]), x, same, match="positive:")


def test_parameters_are_documented_once():
    for cls in (ClassConditionalNB, PositiveUnlabelledNB, UnlabelledNB, NoisyCategoricalNB):
        doc = cls.__doc__.split("Attributes:")[0]
        for name in cls().get_params():
            assert len(re.findall(rf"\n\s+{name}: ", doc)) == 1, (cls, name)
