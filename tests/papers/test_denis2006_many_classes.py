"""Moments of more than two classes, labelled or not, and estimators that start from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from paper_data import all_items, joint, product_distributions
from scipy.optimize import linear_sum_assignment
from settings import configured

from nbmodels import (
    DataError,
    Joint,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    UnlabelledNB,
)
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.emissions import Bernoulli, Categorical
from nbmodels.fitting import init_spectral as spectral


def bad(e, *args, match, **kwargs):
    with pytest.raises(DataError, match=match):
        e.fit(*args, **kwargs)


def exact_classes(sizes, K, seed, labelled, binary=False):
    """Every item, and every label where there are labels, weighted by its exact probability."""
    rng = np.random.default_rng(seed)
    probs = product_distributions(sizes, K, rng, least=0.06)
    shares = 0.5 / K + 0.5 * rng.dirichlet(np.ones(K))
    transition = 0.4 * np.eye(K) + 0.6 * rng.dirichlet(np.ones(K), K)
    x, onehot = all_items(sizes)
    weights = joint(onehot, shares, probs)
    model = {"class_prior": Proportions.of(K), "x": Categorical.of(sizes, K)}
    if binary:
        model["x"] = Bernoulli.of(len(sizes), K)
    parts = {"class_prior": None}
    if labelled:
        model["labels"] = Transition.of(K)
        parts["labels"] = jnp.tile(jnp.arange(K), len(x))
        x, weights = np.repeat(x, K, 0), (weights @ transition).ravel()
    else:
        weights = weights.sum(1)
    parts["x"] = model["x"].pack(x)
    return model, models.Data(parts, jnp.asarray(weights)), (shares, probs, transition)


def read_ml(model, q):
    values = models.values(model, models.likelihood_params(model, q, "ml"))
    table = jnp.exp(models.likelihood_params(model, q, "ml")["x"])
    return values, np.asarray(table[1] if table.ndim == 3 else table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "K", "binary"),
    [((2,) * 6, 3, False), ((3, 4, 3, 2), 4, False), ((2,) * 6, 3, True), ((2, 2), 2, False)],
    ids=str,
)
def test_moments_with_labels_are_exact(sizes, K, binary):
    model, data, (shares, probs, transition) = exact_classes(sizes, K, 1, True, binary)
    q = spectral.start(model, data, jax.random.key(0), "ml", K)
    values, table = read_ml(model, q)
    np.testing.assert_allclose(values["class_prior"]["probs"], shares, atol=1e-7)
    np.testing.assert_allclose(table, probs[1::2] if binary else probs, atol=1e-7)
    np.testing.assert_allclose(values["labels"]["transition"], transition, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "K", "binary"), [((3,) * 6, 3, False), ((2,) * 9, 3, True)], ids=str
)
def test_moments_without_labels_are_exact(sizes, K, binary):
    model, data, (shares, probs, _) = exact_classes(sizes, K, 2, False, binary)
    q = spectral.start(model, data, jax.random.key(0), "ml", K)
    values, table = read_ml(model, q)
    truth = probs[1::2] if binary else probs
    gaps = np.square(table[:, :, None] - truth[:, None, :]).sum(0)
    order = linear_sum_assignment(gaps.T)[1]
    np.testing.assert_allclose(table[:, order], truth, atol=1e-6)
    np.testing.assert_allclose(values["class_prior"]["probs"][order], shares, atol=1e-6)


def test_power_method_finds_orthogonal_components():
    rng = np.random.default_rng(0)
    v = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    weights = np.array([3.0, 2.5, 2.0, 1.5, 1.1])
    tensor = jnp.einsum("k,ki,kj,kl->ijl", weights, v, v, v)
    found, vectors = spectral.orthogonal_decomposition(tensor, jax.random.key(0))
    overlap = np.asarray(vectors) @ v.T
    order = np.argmax(overlap, 1)
    assert sorted(order) == list(range(5))
    np.testing.assert_allclose(overlap.max(1), 1, atol=1e-8)
    np.testing.assert_allclose(found, weights[order], atol=1e-8)


def clusters(n, K, d, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    ones = rng.uniform(0.1, 0.9, (K, d))
    return (rng.random((n, d)) < ones[y]).astype(float), y


@pytest.mark.slow
def test_moments_are_a_better_start_than_chance():
    """Without labels, where a start is all there is: four steps from it beat 20 others."""
    K, d = 4, 18
    model = {"class_prior": Proportions.of(K), "x": Bernoulli.of(d, K)}
    x, _ = clusters(3000, K, d, 0)
    data = models.Data({"class_prior": None, "x": Bernoulli.pack(x)}, jnp.ones(len(x)))

    @jax.jit
    def reached(q):
        step, at = models.step("map"), (model, data)
        q = jax.lax.fori_loop(0, 4, lambda _, q: step(q, at)[0], q)
        return models.objective(model, q, data, "map")

    @jax.jit
    def chance(key):
        resp = jax.random.dirichlet(key, jnp.ones(K), (len(x),))
        return reached(models.start(model, resp, data, "map"))

    ours = float(reached(spectral.start(model, data, jax.random.key(0), "map", K)))
    others = np.array(jax.lax.map(chance, jax.random.split(jax.random.key(1), 20)))
    assert ours > others.max() + 20


def mislabelled(y, K, seed):
    """Most items of class 1 are labelled 2: naming by majority would fail."""
    rng = np.random.default_rng(seed)
    transition = 0.7 * np.eye(K) + 0.3 / K
    return np.array([rng.choice(K, p=transition[k]) for k in y])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")  # on a single iteration
@pytest.mark.parametrize("kind", ["bernoulli", "categorical", "multinomial"])
def test_estimators_begin_at_the_moments(kind):
    K = 3
    x, y = clusters(1500, K, 12, 3)
    labels = np.array(["a", "b", "c"])[mislabelled(y, K, 0)]
    make = {
        "bernoulli": NoisyBernoulliNB.published,
        "categorical": NoisyCategoricalNB.published,
        "multinomial": NoisyMultinomialNB.published,
    }[kind]
    if kind == "multinomial":
        rng = np.random.default_rng(1)
        words = rng.dirichlet(np.ones(12), K)
        x = np.stack([rng.multinomial(40, words[k]) for k in y])
    shared = {"random_state": 0}
    first = configured(make, init="moments", max_iter=1, **shared)
    with pytest.warns(UserWarning, match="iteration limit"):
        first.fit(x, labels)
    np.testing.assert_allclose(first.noise_matrix_.diagonal(), 0.8, atol=0.08)
    with pytest.warns(UserWarning, match="iteration limit"):
        plain = configured(make, max_iter=1, **shared).fit(x, labels)
    assert first.objective_ > plain.objective_
    ended = configured(make, init="moments", **shared).fit(x, labels)
    np.testing.assert_allclose(
        ended.objective_, make(**shared).fit(x, labels).objective_, rtol=1e-5
    )
    assert (ended.predict(x) == np.array(["a", "b", "c"])[y]).mean() > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:classes. no label names 'c'")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.IdentifiabilityWarning")
def test_a_class_without_labels_begins_at_moments_of_the_features():
    x, y = clusters(3000, 3, 15, 5)
    labels = np.where(y == 2, None, np.array(["a", "b", "c"], object)[y])
    e = NoisyBernoulliNB.published(
        classes=["a", "b", "c"],
        missing_label=np.nan,
        random_state=0,
        training=Joint(init="moments", size_power=0.0),
    )
    e.fit(x, pd.Series(labels))
    assert (e.predict(x) == np.array(["a", "b", "c"])[y]).mean() > 0.9


@pytest.mark.slow
def test_three_unlabelled_classes():
    x, y = clusters(3000, 3, 15, 5)
    e = UnlabelledNB(classes=[0, 1, 2], random_state=0).fit(x)
    together = pd.crosstab(e.predict(x), y).to_numpy()
    assert together[linear_sum_assignment(-together)].sum() > 0.9 * len(y)
    assert np.all(np.diff(e.class_prior_) <= 0)


def test_moments_need_enough_discrete_features():
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 4)), np.arange(60) % 3
    bad(
        NoisyGaussianNB.published(training=Joint(init="moments", size_power=0.0)),
        x,
        y,
        match="init: 'moments' needs 2 groups",
    )
    bad(
        NoisyBernoulliNB.published(training=Joint(init="moments", size_power=0.0)),
        x > 0.5,
        y,
        match="4 discrete feature",
    )
    bad(
        NoisyBernoulliNB.published(training=Joint(init="luck", size_power=0.0)),
        x > 0.5,
        y,
        match="init: expected",
    )
    bad(UnlabelledNB(classes=range(5)), x[:, :3] > 0.5, match="3 groups")
