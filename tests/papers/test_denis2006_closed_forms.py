"""Denis 2006, two classes: the closed forms on exact distributions, and their errors on samples."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paper_data import SIZES, all_items, joint, product_distributions

from nbmodels.emissions import Categorical
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.papers import denis2006

quiet = pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")

ETAS = [(0.2, 0.5), (0.0, 0.0), (0.7, 0.1), (0.1, 0.8), (0.3, 0.3), (0.0, 0.6)]
CLOSED_FORMS = [pairwise.class_conditional, pairwise.class_conditional_by_roots]


@pytest.mark.parametrize("estimate", CLOSED_FORMS)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("p", [0.15, 0.6])
@pytest.mark.parametrize("sizes", [(2, 2), SIZES], ids=str)
def test_noisy_labels_determine_both_classes(sizes, p, eta, estimate):
    """Eqs. (8)-(15), (18), (19): exact tables give the parameters to rounding error."""
    probs = product_distributions(sizes, 2, np.random.default_rng(3))
    _, onehot = all_items(sizes)
    flips = np.array([[1 - eta[0], eta[0]], [eta[1], 1 - eta[1]]])
    tables = pairwise.tables(onehot, joint(onehot, [1 - p, p], probs) @ flips, sizes)
    found = estimate(tables)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.probs, probs, atol=1e-10)
    np.testing.assert_allclose(found.share, p, atol=1e-10)
    np.testing.assert_allclose(found.flip_rates(tables.share), eta, atol=1e-10)
    alpha = p * (1 - eta[1]) / (p * (1 - eta[1]) + (1 - p) * eta[0])
    beta = p * eta[1] / (p * eta[1] + (1 - p) * (1 - eta[0]))
    np.testing.assert_allclose(found.mix, [beta, alpha], atol=1e-10)  # eq. (6)


def test_the_complementary_reading_is_not_chosen():
    """Section 3: exchanged classes with rates 1 - eta give the same data; the sum decides."""
    probs = product_distributions(SIZES, 2, np.random.default_rng(0))
    _, onehot = all_items(SIZES)
    one = joint(onehot, [0.4, 0.6], probs) @ [[0.8, 0.2], [0.5, 0.5]]
    other = joint(onehot, [0.6, 0.4], probs[:, ::-1]) @ [[0.5, 0.5], [0.8, 0.2]]
    np.testing.assert_allclose(one, other)
    found = pairwise.class_conditional(pairwise.tables(onehot, other, SIZES))
    np.testing.assert_allclose(found.flip_rates(other.sum(0)), [0.2, 0.5])


@pytest.mark.parametrize("estimate", CLOSED_FORMS)
def test_labels_that_are_pure_noise_are_reported(estimate):
    probs = product_distributions(SIZES, 2, np.random.default_rng(0))
    _, onehot = all_items(SIZES)
    groups = joint(onehot, [0.4, 0.6], probs) @ [[0.7, 0.3], [0.7, 0.3]]
    found = estimate(pairwise.tables(onehot, groups, SIZES))
    assert found.outside[0]
    assert all(np.isfinite(leaf).all() for leaf in found)
    assert found.flip_rates(groups.sum(0)).sum() < 1


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(2, 2), SIZES], ids=str)
def test_positive_items_determine_the_share(sizes, p):
    """Eqs. (16), (17), and where their print goes wrong."""
    probs = product_distributions(sizes, 2, np.random.default_rng(5))
    _, onehot = all_items(sizes)
    both = joint(onehot, [1 - p, p], probs)
    groups = np.stack([both.sum(1), 0.3 * both[:, 1]], 1)
    tables = pairwise.tables(onehot, groups, sizes)
    found = pairwise.positive_unlabelled(tables)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.mix, [p, 1], atol=1e-10)
    np.testing.assert_allclose(found.probs, probs, atol=1e-10)

    a, b = 0, sizes[0]  # a value of the first attribute, and one of the second
    (P_a, A), (P_b, B) = tables.single[a], tables.single[b]
    P_ab = tables.pair[0, a, b]
    np.testing.assert_allclose((P_ab - P_a * P_b) / (P_ab + A * B - P_a * B - A * P_b), p)
    printed = (P_ab - A * B) / (P_ab + P_a * P_b - P_a * B - A * P_b)
    assert abs(printed - p) > 0.01
    block = np.s_[: sizes[0], sizes[0] : sizes[0] + sizes[1]]
    np.testing.assert_allclose(tables.dependence[0][block].sum(), 0, atol=1e-15)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("sizes", [(2, 2, 2), SIZES, (2,) * 5], ids=str)
def test_unlabelled_items_determine_both_classes(sizes, p):
    """Geiger et al.: of the two models, the one whose class 0 is the larger."""
    probs = product_distributions(sizes, 2, np.random.default_rng(7))
    _, onehot = all_items(sizes)
    found = pairwise.unlabelled(onehot, joint(onehot, [1 - p, p], probs).sum(1), sizes)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.share, min(p, 1 - p), atol=1e-9)
    order = [0, 1] if p < 0.5 else [1, 0]
    if p == 0.5 and abs(found.probs[0, 0] - probs[0, 0]) < 1e-6:
        order = [0, 1]
    np.testing.assert_allclose(found.probs, probs[:, order], atol=1e-8)


def test_central_moments_are_those_of_section_2_2():
    rng = np.random.default_rng(1)
    alpha, p, q = 0.3, rng.random(3), rng.random(3)
    x = np.array(list(itertools.product((0, 1), repeat=3)))
    weights = sum(
        share * np.prod(np.where(x, r, 1 - r), 1) for share, r in ((alpha, p), (1 - alpha, q))
    )
    centred = x - weights @ x
    z_ij = (weights[:, None] * centred).T @ centred
    z_123 = weights @ centred.prod(1)
    s, u = 2 * alpha - 1, (p - q) / 2
    np.testing.assert_allclose(z_ij[0, 1], (1 - s**2) * u[0] * u[1])
    np.testing.assert_allclose(z_123, -2 * s * (1 - s**2) * u.prod())
    root = np.sqrt(z_ij[0, 1] * z_ij[0, 2] * z_ij[1, 2] + z_123**2 / 4) / z_ij[1, 2]
    np.testing.assert_allclose(abs(root), abs(u[0]))


def test_tables_leave_missing_cells_out():
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(s, size=40) for s in SIZES], 1)
    codes[rng.random(codes.shape) < 0.2] = -1
    component = Categorical.of(SIZES, 2)
    weights = rng.uniform(0.5, 2, (40, 1))
    tables = pairwise.tables(component.pack(codes).onehot.to_dense(), weights, SIZES)
    both = (codes[:, 0] >= 0) & (codes[:, 2] >= 0)
    right = both & (codes[:, 0] == 1) & (codes[:, 2] == 3)
    expected = weights[right].sum() / weights[both].sum()
    np.testing.assert_allclose(tables.pair[0, 1, 5 + 3], expected)
    seen = codes[:, 1] >= 0
    expected = weights[seen & (codes[:, 1] == 2)].sum() / weights[seen].sum()
    np.testing.assert_allclose(tables.single[2 + 2, 0], expected)


@pytest.mark.slow
@quiet
def test_errors_shrink_with_the_sample():
    """Consistency of the three closed forms, on the same data."""

    @partial(jax.jit, static_argnames="n")
    def errors(key, n):
        target = (jnp.asarray(0.6), denis2006.draw_target(jax.random.key(3))[1])
        sim = denis2006.simulate(key, target, n, 0)
        x = jax.nn.one_hot(sim.x, 2).reshape(n, 20)
        tables = pairwise.tables(x, jax.nn.one_hot(sim.y, 2), (2,) * 10)
        noisy = pairwise.class_conditional(tables)
        marked = sim.y_true * sim.y
        tables = pairwise.tables(x, jax.nn.one_hot(marked, 2), (2,) * 10)
        positive = pairwise.positive_unlabelled(tables)
        blind = pairwise.unlabelled(x, jnp.ones(n), (2,) * 10)
        among = jnp.sum(sim.y_true * (1 - marked)) / jnp.sum(1 - marked)
        rates = noisy.flip_rates(jnp.stack([1 - jnp.mean(sim.y), jnp.mean(sim.y)]))
        return jnp.stack(
            [
                jnp.abs(noisy.share - 0.6),
                jnp.max(jnp.abs(rates - jnp.array([0.2, 0.5]))),
                jnp.abs(positive.mix[0] - among),
                jnp.abs(blind.share - 0.4),
            ]
        )

    def mean_error(n):
        keys = jax.random.split(jax.random.key(0), 12)
        return jax.lax.map(partial(errors, n=n), keys).mean(0)

    few, many = mean_error(400), mean_error(12800)
    assert np.all(many < 0.5 * few)
    assert np.all(many < np.array([0.02, 0.03, 0.02, 0.06]))
