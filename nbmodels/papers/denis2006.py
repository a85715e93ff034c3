"""Denis, Magnan and Ralaivola 2006: naive Bayes under class-conditional label noise (NB-CCCN).

The models below are written from sections 2.1, 3, 4.2 and 4.4 of the paper [1], in its notation,
and never call a component's ``log_likelihood``. :func:`to_model` describes the same data by
components; :func:`parameters` puts a fit of theirs into the notation of this module. The closed
forms are in :mod:`nbmodels.fitting.init_pairwise`, the estimators in
:mod:`nbmodels.estimators.two_class`.

================================  ============================  ==================================
the paper                         this module                   the components, the closed forms
================================  ============================  ==================================
``m``, ``Dom(x^i)``               ``sizes``, values ``0, 1..``  ``Categorical.sizes``
``x^i``                           ``x`` ``(N, m)`` integers     data of ``"x"``
``y`` true class, 0 or 1          ``y_true``                    the latent true class
``y`` given label                 ``y``, -1 where missing       data of ``"labels"``
``p = P(y = 1)``, eq. (4)         ``p``                         ``Proportions``, ``probs[1]``
``P_+^i(k)``, ``P_-^i(k)``        ``P_plus_i``, ``P_minus_i``   ``Categorical``, ``probs_i``
``eta^0``, ``eta^1``              ``eta0``, ``eta1``            ``Transition[0, 1]``, ``[1, 0]``
``alpha``, ``beta``, eq. (6)      not needed                    ``pairwise.Mixture.mix``, [1], [0]
``P_k(C(x, y))``, eq. (20)        summed over                   responsibility of the other class
``C``, ``D``, ``E``               not needed                    ``pairwise``
``z``, ``u``, ``s``, section 2.2  not needed                    ``pairwise.unlabelled``
================================  ============================  ==================================

The paper maximises the likelihood. Here each parameter has the conjugate prior of our components.
A Dirichlet or Beta concentration is one plus a pseudo-count, and the pseudo-counts are the keyword
arguments: zeros make the priors flat.

Slips in the paper, and how they are read here:

- Eq. (16): ``P^1(a) P^2(b)`` and ``P^1(a|1) P^2(b|1)`` stand in each other's place; as printed it
  does not give ``P(y = 1)``. Eq. (12) with ``beta = 1`` does: ``D / (C + D)``.
- Eq. (17): summed over all values of an attribute, as the text says, both sums are exactly zero.
  Each term is weighted by its ``C`` here.
- Algorithm 1, step 3 says that one pair of roots is admissible; ``alpha > beta`` leaves two, and of
  exact tables the one wider apart always gives admissible probabilities. Where both do, eq. (10)
  separates them: the sum of the ``C^2`` over the denominator of (18) is ``(alpha - beta)^2``.
- Eqs. (18) and (19) square ``D`` and ``E`` before they are summed, which biases them in samples.
  Summed first, eqs. (10) and (11) have one solution with ``alpha > beta``, in closed form. In
  simulations as in section 5.1, to 2000 items, its errors are about half as large: that is what
  the estimators use.
- Algorithm 3: the sums cancel where the ``u_i`` differ in sign. Values are recoded first so that
  all are positive; signs come from the value that covaries most, not from the first.
- Eq. (22) lacks the division by ``n p_{k+1}^l``.
- Section 5.2 speaks of five data sets; there are six. House Votes has 435 rows, not 433.

**References:**

    1. Denis, F., Magnan, C. N., and Ralaivola, L. (2006). "Apprentissage de classifieurs naïfs de
       Bayes à partir de données soumises à un bruit de classification conditionnel à chaque classe"
       (Efficient learning of naive Bayes classifiers under class-conditional classification noise).
    2. Geiger, D., Heckerman, D., King, H., and Meek, C. (2001). "Stratified exponential families:
       graphical models and model selection." Annals of Statistics 29, 505-529.

Examples:
    >>> import jax
    >>> import numpy as np
    >>> from nbmodels import fit
    >>> from nbmodels.papers import denis2006
    >>> y_true = np.repeat([0, 1], [80, 120])
    >>> rng = np.random.default_rng(0)
    >>> x = (rng.random((200, 8)) < 0.1 + 0.8 * y_true[:, None]).astype(int)
    >>> y = np.where(np.arange(200) % 5 == 0, 1 - y_true, y_true)  # every fifth label is wrong
    >>> model = denis2006.to_model(sizes=(2,) * 8)
    >>> fitted = fit(model, denis2006.to_data(model, x, y), key=jax.random.key(0))
    >>> found = denis2006.parameters(model, fitted.params)
    >>> {name: round(float(found[name]), 1) for name in ("p", "eta0", "eta1")}
    {'p': 0.6, 'eta0': 0.2, 'eta1': 0.2}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.pytree import register_dataclass
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Dirichlet
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import Categorical

# The paper's models -------------------------------------------------------------------------------


def _p(alpha: float) -> Array:
    return numpyro.sample("p", dist.Beta(1 + alpha, 1 + alpha))


def _P(sign: str, sizes: tuple[int, ...], alpha: float) -> list[Array]:
    return [
        numpyro.sample(f"P_{sign}_{i}", dist.Dirichlet(jnp.full(size, 1 + alpha)))
        for i, size in enumerate(sizes)
    ]


def _y_true(p: Array) -> Array:
    return numpyro.sample("y_true", dist.Bernoulli(p), infer={"enumerate": "parallel"})


def _attributes(x: Array, P_plus: list[Array], P_minus: list[Array], y_true: Array) -> None:
    for i, (plus, minus) in enumerate(zip(P_plus, P_minus, strict=True)):
        of_class = jnp.stack([minus, plus])[y_true]
        numpyro.sample(f"x_{i}", dist.Categorical(of_class), obs=x[:, i])


def class_conditional(
    x: Array,
    y: Array,
    sizes: tuple[int, ...],
    *,
    alpha_p: float = 1.0,
    alpha_P: float = 1.0,
    wrong: float = 1.0,
    right: float = 2.0,
) -> None:
    """Sections 2.1 and 3: attributes, and labels flipped at rates of their true class's own.

    Args:
        x: ``(N, m)`` attributes, the i-th in ``0..sizes[i]-1``.
        y: ``(N,)`` given labels, 0 or 1, -1 where missing.
        sizes: number of values of each attribute.
        alpha_p: pseudo-items a class.
        alpha_P: pseudo-items for each value of each attribute in each class.
        wrong, right: pseudo-labels of each kind, a true class.
    """
    p = _p(alpha_p)
    P_plus, P_minus = (_P(sign, sizes, alpha_P) for sign in ("plus", "minus"))
    eta0, eta1 = (
        numpyro.sample(name, dist.Beta(1 + wrong, 1 + right)) for name in ("eta0", "eta1")
    )
    y = jnp.asarray(y)
    seen = y >= 0
    with numpyro.plate("items", len(y)):
        y_true = _y_true(p)
        label_1 = jnp.where(y_true == 1, 1 - eta1, eta0)
        numpyro.sample("y", dist.Bernoulli(label_1).mask(seen), obs=jnp.where(seen, y, 0))
        _attributes(x, P_plus, P_minus, y_true)


def unlabelled(
    x: Array, sizes: tuple[int, ...], *, alpha_p: float = 1.0, alpha_P: float = 1.0
) -> None:
    """Section 2.2: a mixture of two product distributions.

    Args:
        x, sizes, alpha_p, alpha_P: as in :func:`class_conditional`.
    """
    p = _p(alpha_p)
    P_plus, P_minus = (_P(sign, sizes, alpha_P) for sign in ("plus", "minus"))
    with numpyro.plate("items", len(x)):
        _attributes(x, P_plus, P_minus, _y_true(p))


def positive_unlabelled(
    x: Array,
    x_positive: Array,
    sizes: tuple[int, ...],
    *,
    alpha_p: float = 1.0,
    alpha_P: float = 1.0,
) -> None:
    """Section 4.2: a sample of ``P(x)`` and one of ``P(x | y = 1)``.

    Args:
        x: ``(N, m)`` attributes of unlabelled items.
        x_positive: ``(N', m)`` attributes of positive items.
        sizes, alpha_p, alpha_P: as in :func:`class_conditional`.
    """
    p = _p(alpha_p)
    P_plus, P_minus = (_P(sign, sizes, alpha_P) for sign in ("plus", "minus"))
    with numpyro.plate("items", len(x)):
        _attributes(x, P_plus, P_minus, _y_true(p))
    with numpyro.plate("positive_items", len(x_positive)):
        for i, plus in enumerate(P_plus):
            numpyro.sample(f"x_positive_{i}", dist.Categorical(plus), obs=x_positive[:, i])


# The same models as components --------------------------------------------------------------------


def to_model(
    sizes: tuple[int, ...],
    *,
    labels: bool = True,
    alpha_p: float = 1.0,
    alpha_P: float = 1.0,
    wrong: float = 1.0,
    right: float = 2.0,
) -> dict[str, Component]:
    """Components of the same model, under the names of the table above.

    Args:
        sizes, alpha_p, alpha_P, wrong, right: as in :func:`class_conditional`.
        labels: with given labels; without, they are the components of :func:`unlabelled`.
    """
    model: dict[str, Component] = {PRIOR: Proportions.of(2, alpha_p)}
    if labels:
        model["labels"] = Transition.of(2, alpha=wrong, diagonal=right)
    model["x"] = Categorical.of(sizes, 2, alpha_P)
    return model


def positive_unlabelled_model(
    sizes: tuple[int, ...], *, alpha_P: float = 1.0
) -> dict[str, Component]:
    """Components of :func:`positive_unlabelled`: labels of which no negative item gets a 1.

    Their likelihood is also that of the labels, so it is larger by the log-probability of the two
    sample sizes. ``p`` is the share of class 1 among the items labelled 0.

    Args:
        sizes, alpha_P: as in :func:`class_conditional`.
    """
    model = to_model(sizes, alpha_p=0.0, alpha_P=alpha_P)
    never = jnp.array([[2.0, 1.0], [1.0, 1.0]])
    model["labels"] = Transition(prior=Dirichlet(never))
    return model


def to_data(model: Model, x: Any, y: Any = None) -> Data:
    """Data of :func:`to_model` from the arrays of the paper's model; ``y`` may hold -1."""
    features = model["x"]
    assert isinstance(features, Categorical)
    parts: dict[str, Any] = {PRIOR: None, "x": features.pack(x)}
    if y is not None:
        parts["labels"] = Transition.pack(y, 2)
    return Data(parts, jnp.ones(len(x)))


def parameters(model: Model, q: Any) -> dict[str, Array]:
    """A fit under rule ``"map"`` or ``"ml"`` in the paper's notation, attribute by attribute."""
    values = models.values(model, models.likelihood_params(model, q, "map"))
    out = {"p": values[PRIOR]["probs"][1]}
    if "labels" in model:
        transition = values["labels"]["transition"]
        out |= {"eta0": transition[0, 1], "eta1": transition[1, 0]}
    for i in range(len(values["x"])):
        minus, plus = values["x"][f"probs_{i}"]
        out |= {f"P_plus_{i}": plus, f"P_minus_{i}": minus}
    return out


# Section 5.1: simulated data ----------------------------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class Simulation:
    """One data set of section 5.1 and the target that it was drawn from.

    Attributes:
        x: ``(n + n_test, 10)`` zeros and ones.
        y_true: ``(n + n_test,)`` true classes.
        y: ``(n + n_test,)`` given labels; the test rows are scored against the true ones.
        p: P(y = 1).
        ones: ``(10, 2)`` P(x^i = 1 | y), columns ``y = 0, 1``.
        n: number of training rows, which come first.
    """

    x: Array
    y_true: Array
    y: Array
    p: Array
    ones: Array
    n: int = field(metadata={"static": True})


def draw_target(key: Array, m: int = 10) -> tuple[Array, Array]:
    """``(p, ones)`` of a random target, all uniform on (0, 1): the paper does not say how."""
    first, second = jax.random.split(key)
    return jax.random.uniform(first), jax.random.uniform(second, (m, 2))


def simulate(
    key: Array,
    target: tuple[Array, Array],
    n: int,
    n_test: int = 1000,
    eta: tuple[float, float] = (0.2, 0.5),
) -> Simulation:
    """Section 5.1.1; pure, jittable.

    Args:
        key: of everything but the target.
        target: from :func:`draw_target`.
        n: number of training rows.
        n_test: number of test rows.
        eta: ``(eta0, eta1)``.
    """
    p, ones = target
    first, second, third = jax.random.split(key, 3)
    y_true = jax.random.bernoulli(first, p, (n + n_test,)).astype(jnp.int32)
    x = jax.random.bernoulli(second, ones.T[y_true]).astype(jnp.int32)
    flipped = jax.random.bernoulli(third, jnp.asarray(eta)[y_true])
    y = jnp.where(flipped, 1 - y_true, y_true)
    return Simulation(x, y_true, y, p, ones, n)
