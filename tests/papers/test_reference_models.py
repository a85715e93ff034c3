"""The NumPyro reference model of each paper agrees with the components that stand for it.

At random parameters both have one likelihood; where MAP-EM stops, the reference model's density is
EM's objective and its gradient is zero. Hyperparameters that are given differ from all defaults, so
that one which only one description reads would show.
"""

import inspect
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paper_data import (
    KINDS,
    N_BINARY,
    N_CLASSES,
    N_REAL,
    N_TOPICS,
    N_WORDS,
    SIZES,
    features,
    partly_labelled_documents,
    two_class_items,
)
from reference import (
    Reference,
    assert_agreement,
    assert_stationary,
    enumerated_density,
    fixed_point,
    prior_density,
)

from inference import Status
from nbmodels.channels import Transition
from nbmodels.core import model as m
from nbmodels.papers import bootkrajang2011, chen2019, denis2006, maystre2021, zeng2022


def of_components(model, data, read):
    """Log-likelihood of all items, where the components' likelihoods read ``read``."""
    items = m.posterior(model, read, data).log_likelihood + m.base_measure(model, data)
    return jnp.sum(items)


# Denis et al. 2006 ------------------------------------------------------------------------------


def denis_likelihood(model, data, sites):
    rows = [jnp.stack([sites[f"P_minus_{i}"], sites[f"P_plus_{i}"]], 1) for i in range(len(SIZES))]
    read = {
        "class_prior": jnp.log(jnp.stack([1 - sites["p"], sites["p"]])),
        "x": jnp.log(jnp.concatenate(rows)),
    }
    if "labels" in model:
        eta0, eta1 = sites["eta0"], sites["eta1"]
        read["labels"] = jnp.log(jnp.array([[1 - eta0, eta0], [eta1, 1 - eta1]]))
    return of_components(model, data, read)


DENIS_HYPER = {"alpha_p": 0.7, "alpha_P": 1.3, "wrong": 0.9, "right": 3.1}


def denis(labels):
    x, y, _ = two_class_items(24, seed=4)
    y[3::7] = -1
    if labels:
        program = partial(denis2006.class_conditional, jnp.asarray(x), y, SIZES)
        model = denis2006.to_model(SIZES, **DENIS_HYPER)
        data = denis2006.to_data(model, x, y)
        return Reference(program, DENIS_HYPER, model, data, denis2006.parameters, denis_likelihood)
    hyper = {name: DENIS_HYPER[name] for name in ("alpha_p", "alpha_P")}
    program = partial(denis2006.unlabelled, jnp.asarray(x), SIZES)
    model = denis2006.to_model(SIZES, labels=False, **hyper)
    data = denis2006.to_data(model, x)
    guess = np.random.default_rng(0).dirichlet(np.ones(2), len(x))
    return Reference(
        program, hyper, model, data, denis2006.parameters, denis_likelihood, jnp.asarray(guess)
    )


@pytest.mark.slow
def test_positive_and_unlabelled_samples_are_labels_never_given_to_negative_items():
    x, _, y_true = two_class_items(80, seed=6)
    marked = (y_true == 1) & (np.arange(80) % 3 == 0)
    model = denis2006.positive_unlabelled_model(SIZES)
    data = denis2006.to_data(model, x, marked.astype(int))
    program = partial(
        denis2006.positive_unlabelled, jnp.asarray(x[~marked]), jnp.asarray(x[marked]), SIZES
    )
    program = partial(program, alpha_p=0.0)

    resp = jnp.where(marked[:, None], jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]))
    stats = {
        "class_prior": resp.sum(0),
        "labels": Transition.of(2).stats(None, resp, marked.astype(int)),
    }
    rows = jax.random.dirichlet(jax.random.key(1), jnp.ones(2), (80,))
    stats["x"] = model["x"].stats(None, rows, data.parts["x"])
    status, q, _ = fixed_point(model, m.update(model, stats, "map"), data)
    assert Status(int(status)) is Status.CONVERGED
    found = denis2006.parameters(model, q)
    assert found["eta0"] < 1e-12
    sites = {name: v for name, v in found.items() if name.startswith("P")}
    share = found["p"] * found["eta1"]
    sites["p"] = share / (share + 1 - found["p"])
    assert_stationary(program, sites, 1e-4)

    # the share of labelled items is free, and at its best for every p
    def ours(sites):
        n, size = len(x), marked.sum()
        positive = (size + sites["p"] * (n - size)) / n
        rate = size / n / positive
        return denis_likelihood(model, data, sites | {"p": positive, "eta0": 0.0, "eta1": 1 - rate})

    size = marked.sum()
    of_sizes = size * np.log(size / 80) + (80 - size) * np.log(1 - size / 80)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        sites = {
            n: jnp.asarray(rng.dirichlet(np.ones(len(v)))) for n, v in sites.items() if n != "p"
        }
        sites["p"] = jnp.asarray(rng.random())
        theirs = enumerated_density(program, sites) - prior_density(program, sites)
        np.testing.assert_allclose(ours(sites), theirs + of_sizes, rtol=1e-10)


# Bootkrajang and Kaban 2011 -----------------------------------------------------------------------


DOF = 3.5


def bootkrajang_likelihood(dof, data_x, y_hat, model, data, sites):
    """By the paper's formulas: the components read scale matrices in another form."""
    logs = bootkrajang2011.log_density(data_x, sites["mu"], sites["Sigma"], dof)
    logs = logs + jnp.log(sites["gamma"] * sites["p_hat"][:, None])[y_hat]
    return jax.nn.logsumexp(logs, 1).sum()


def bootkrajang(dof):
    k, d = 3, 2
    hyper = {"kappa": 0.4, "extra_dof": 1.5, "scale": 0.6}
    sim = bootkrajang2011.simulate(jax.random.key(0), 80, d, k, 1.5, dof=dof)
    sim = jax.tree.map(np.asarray, sim)
    program = partial(bootkrajang2011.rnda, jnp.asarray(sim.x), sim.y_hat, k, dof=dof)
    model = bootkrajang2011.to_model(k, d, dof=dof, **hyper)
    data = bootkrajang2011.to_data(sim.x, sim.y_hat, k)
    likelihood = partial(bootkrajang_likelihood, dof, sim.x, sim.y_hat)
    return Reference(program, hyper, model, data, bootkrajang2011.parameters, likelihood)


# Chen et al. 2019 -------------------------------------------------------------------------------


def chen_likelihood(model, data, sites):
    read = m.likelihood_params(model, {name: c.prior for name, c in model.items()}, "map")
    read |= {"class_prior": jnp.log(sites["P"]), "x": jnp.log(sites["theta"].T)}
    return of_components(model, data, read)


def chen():
    x, y, z, _ = partly_labelled_documents()
    hyper = {"alpha_P": 0.7, "alpha_theta": 1.4}
    program = partial(chen2019.em, jnp.asarray(x), y, z)
    model = chen2019.to_model(N_TOPICS, N_WORDS, **hyper)
    data = chen2019.to_data(x, y, z)
    return Reference(program, hyper, model, data, chen2019.parameters, chen_likelihood)


# Maystre et al. 2021 ----------------------------------------------------------------------------


def maystre_sites(model, q):
    return {"u": jnp.exp(q["users"].likelihood_params("map"))}


def maystre_likelihood(model, data, sites):
    read = m.likelihood_params(model, {name: c.prior for name, c in model.items()}, "map")
    return of_components(model, data, read | {"users": jnp.log(sites["u"])})


def maystre():
    k = 4
    platform = maystre2021.simulate(np.random.default_rng(0), M=40, N=30, K=k, S=4)
    v_hat = np.where(np.arange(30) % 7 == 0, -1, platform.v_hat)
    hyper = {"alpha": np.random.default_rng(1).uniform(1.2, 2.5, (40, k))}
    program = partial(maystre2021.model, jnp.asarray(platform.edges.toarray()), v_hat, k)
    model, data = maystre2021.to_model(platform.edges, v_hat, k, **hyper)
    # beta is normalised over classes on the page, and P(label | class) in the channel: 1/K apart
    shift = (v_hat >= 0).sum() * np.log(k)
    return Reference(program, hyper, model, data, maystre_sites, maystre_likelihood, shift=shift)


# Zeng et al. 2022 -------------------------------------------------------------------------------

ZENG_HYPER = {
    "alpha_pi": 0.7,
    "alpha_rho": 0.9,
    "diagonal_rho": 3.1,
    "alpha_p": 1.3,
    "kappa": 0.4,
    "shape": 1.7,
    "rate": 0.6,
}


@cache
def zeng_program(kind):
    """One program for all hyperparameters: it is compiled once."""
    x, labels = features(kind, np.random.default_rng(2))
    return partial(getattr(zeng2022, kind), *x.values(), labels, N_CLASSES)


def zeng_sites(model, q):
    letters = zeng2022.parameters(model, q)
    out = {name: v for name, v in letters.items() if name in ("pi", "p", "mu")}
    out["rho_columns"] = letters["rho"].T
    if "sigma" in letters:
        out["sigma2"] = jnp.square(letters["sigma"])
    return out


def zeng_likelihood(model, data, sites):
    read = {"class_prior": jnp.log(sites["pi"]), "labels": jnp.log(sites["rho_columns"])}
    if "x" in model:
        read["x"] = jnp.log(jnp.stack([1 - sites["p"], sites["p"]]))
    if "z" in model:
        like = model["z"].likelihood_params(model["z"].prior, "map")
        variance = sites["sigma2"].T
        read["z"] = like._replace(
            mean=sites["mu"].T, precision=1 / variance, log_precision=-jnp.log(variance)
        )
    return of_components(model, data, read)


def zeng(kind, given):
    x, labels = features(kind, np.random.default_rng(2))
    read = inspect.signature(getattr(zeng2022, kind)).parameters
    defaults = {n: float(p.default) for n, p in read.items() if n in ZENG_HYPER}
    own = {name: ZENG_HYPER[name] for name in defaults} if given else {}
    d, d_2 = N_BINARY * ("X" in x), N_REAL * ("Z" in x)
    model = zeng2022.to_model(N_CLASSES, d, d_2, **own)
    data = zeng2022.to_data(model, labels, **x)
    return Reference(zeng_program(kind), defaults | own, model, data, zeng_sites, zeng_likelihood)


# All of them ------------------------------------------------------------------------------------

MODELS = {
    "denis2006 labelled": partial(denis, labels=True),
    "denis2006 unlabelled": partial(denis, labels=False),
    "bootkrajang2011 normal": partial(bootkrajang, dof=None),
    "bootkrajang2011 student": partial(bootkrajang, dof=DOF),
    "chen2019": chen,
    "maystre2021": maystre,
    **{
        f"zeng2022 {kind} {how}": partial(zeng, kind, given=how == "given")
        for kind in KINDS
        for how in ("default", "given")
    },
}
#: Two digits fewer: the mode of a scale matrix is found through its inverse.
TOLERANCES = {"bootkrajang2011 normal": 5e-5, "bootkrajang2011 student": 5e-5}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_reference_model_is_the_components(name):
    assert_agreement(MODELS[name](), TOLERANCES.get(name, 2e-5))
