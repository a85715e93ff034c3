"""EM and CAVI of one model: starts, the driver, and a check that classes kept their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference import Result, Status, solve
from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.consistency import check_components, check_numbers, check_rule
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import kept_programs
from nbmodels.core.model import Data, Model
from nbmodels.core.roles import Emission, LabelChannel
from nbmodels.errors import (
    DataError,
    Interrupted,
    issue,
)
from nbmodels.fitting.batched import fit_batch
from nbmodels.fitting.checked_rows import named_by_checks
from nbmodels.fitting.fit import Fit, ReadOut, log_likelihoods, with_arrays
from nbmodels.fitting.identifiability import diagnose
from nbmodels.fitting.iterations import Iteration, Point, iteration

#: Most random starts of a fit, each with its parameters, and accepted points, each with its trace.
MOST_RESTARTS, MOST_STEPS = 1_000, 1_000_000

#: Parameters of a component up to which its point estimate is kept, and numbers of all components'
#: log-likelihoods of the items up to which these are.
_FEW_PARAMETERS, _SMALL_TABLES = 1_000_000, 1_000_000

#: Share of the labels' weight in a random start; the rest of it is chance.
_RESTART_SHARE = 0.1


def em(
    model: Model,
    data: Data,
    *,
    rule: Rule = "map",
    max_iter: int = 500,
    tol: Any = 1e-6,
    accelerate: bool = True,
) -> Result:
    """EM or CAVI begun at the labels; pure, so that it may be put under ``jit`` and ``vmap``.

    Args:
        model: components by name.
        data: encoded data with labels.
        rule: ``"ml"`` and ``"map"`` for EM, ``"vb"`` for CAVI.
        max_iter: largest number of accepted points.
        tol: gain in nats per unit of row weight below which it has converged.
        accelerate: try monotone SQUAREM extrapolations.

    Returns:
        A :class:`inference.Result`; its objective lacks :func:`nbmodels.core.model.constant`.

    Raises:
        DataError: no class prior, or components of several numbers of classes; parts that are
            missing, unknown to the model, not of their component, or of another number of rows than
            the weights; no labels to start from; an unknown ``rule``.

    Examples:
        >>> from dataclasses import replace
        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import em
        >>> from nbmodels.papers import zeng2022
        >>> truth = np.repeat([0, 1], 20)
        >>> given = np.where(np.arange(40) < 4, 1, truth)  # a fifth of class 0 are labelled 1
        >>> model = zeng2022.to_model(K=2, d=3)
        >>> data = zeng2022.to_data(model, given, np.stack([truth, truth, truth], 1))
        >>> # 50 bootstrap fits in one program
        >>> weights = jax.random.poisson(jax.random.key(0), 1.0, (50, 40)).astype(float)
        >>> @jax.jit
        ... @jax.vmap
        ... def estimate(w):
        ...     return zeng2022.parameters(model, em(model, replace(data, weights=w)).params)["rho"]
        >>> rho = estimate(weights)
        >>> print(rho.shape)
        (50, 2, 2)
        >>> print(rho.mean(0).round(1))
        [[0.8 0. ]
         [0.2 1. ]]
    """
    check_rule(rule)
    check_components(model, data)
    resp = models.initial_responsibilities(model, data)
    if resp is None:
        raise DataError("data: no labels to start from; give a starting point to inference.solve")
    # a GPU would round factors of float32 to 11 bits
    with jax.default_matmul_precision("highest"):
        return solve(
            models.step(rule),
            models.start(model, resp, data, rule),
            (model, data),
            max_steps=max_iter,
            tol=tol * jnp.sum(data.weights),
            accelerate=accelerate,
            coordinates=models.coordinates(rule),
        )


def _from_labels(model: Model, data: Data, key: Array, rule: Rule) -> Point:
    resp = models.initial_responsibilities(model, data)
    if resp is None:
        k = _n_classes(model)
        resp = jax.random.dirichlet(key, jnp.ones(k), data.weights.shape)
    return Point(resp, models.start(model, resp, data, rule))


@partial(host_jit, static_argnames=("n_starts", "how"))
def _start(model: Model, data: Data, key: Array, n_starts: int, how: Iteration) -> Any:
    """The start from the labels, by the first of the starts' keys where there is none."""
    return how.pick(_from_labels(model, data, jax.random.split(key, n_starts)[0], how.rule))


@partial(host_jit, static_argnames="how")
def _random_start(model: Model, data: Data, key: Array, how: Iteration) -> Any:
    """A random start: parameters drawn from a posterior given a tenth of the labels' weight.

    The draw is of parameters, not of items' classes, so that repeated rows and weighted rows agree.
    """
    resp = models.initial_responsibilities(model, data)
    if resp is None:
        return how.pick(_from_labels(model, data, key, how.rule))
    few = models.start(model, _RESTART_SHARE * resp, data, "map")
    drawn = models.likelihood_params(model, few, "draw", key)
    resp = models.posterior(model, drawn, data).resp
    counts = models.stats(model, drawn, resp, data)
    return how.pick(Point(resp, models.update(model, counts, how.rule)))


class _Finished(NamedTuple):
    """What is read at the end of a fit.

    Attributes:
        resp: ``(N, K)`` responsibilities.
        log_likelihood: ``(N,)`` log-densities.
        constant: of the objective.
        transitions: noise matrices by channel, by the rule of the fit.
        kept: what the fit keeps of it.
    """

    resp: Array
    log_likelihood: Array
    constant: Array
    transitions: dict[str, Array]
    kept: ReadOut


@partial(host_jit, static_argnames=("rule", "tables"))
def _finish(model: Model, q: Any, data: Data, rule: Rule, tables: bool = False) -> _Finished:
    read = models.likelihood_params(model, q, rule)
    resp, lik = models.posterior(model, read, data)
    few = {name: c for name, c in model.items() if _size(q[name]) <= _FEW_PARAMETERS}
    wanted = tables and resp.size * len(model) <= _SMALL_TABLES
    constant = models.constant(model, data, rule).value
    about = resp, lik + models.base_measure(model, data), constant
    transitions = models.transitions(model, models.values(model, read))
    channels = models.with_role(model, LabelChannel)
    own = {name: q[name] for name in channels}
    again = models.likelihood_params(channels, own, models.reported(rule))
    noise = models.transitions(channels, models.values(channels, again))
    kept = ReadOut(
        noise,
        points=models.point(few, q, rule),
        tables=log_likelihoods(model, q, data, rule) if wanted else {},
        params={},
    )
    return _Finished(*about, transitions, kept)


def _size(tree: Any) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(tree))


_objective = host_jit(models.objective, static_argnames="rule")

#: Parameters of components from responsibilities, see :func:`nbmodels.core.model.start`.
started = host_jit(models.start, static_argnames="rule")


def emissions_started(model: Model, resp: np.ndarray, data: Data, rule: Rule) -> dict[str, Any]:
    """Parameters of a model's emissions, by one program whatever other components there are.

    Args:
        model: components by name, emissions among them.
        resp: ``(n, K)`` responsibilities, with the padding of the data.
        data: encoded data.
        rule: of the fit.
    """
    emissions = with_arrays(models.with_role(model, Emission))
    own = replace(data, parts={name: data.parts[name] for name in emissions})
    return started(emissions, on_device(resp, own.weights.dtype), own, rule)


def _to_host(tree: Any) -> Any:
    """Arrays in host memory; a bare number stays one, or the next fit would be compiled anew."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "dtype") else leaf, tree)


def _kept(finished: _Finished, params: dict[str, Any]) -> ReadOut:
    """What a fit keeps of its last program, in host memory, with the parameters it was read of."""
    host: ReadOut = _to_host(finished.kept)
    return host._replace(params=params)


def evaluate(model: Model, params: Any, data: Data, *, rule: Rule = "map") -> Fit:
    """Given parameters, such as those of a closed form, as a fit of which nothing was iterated."""
    read = _finish(model, params, data, rule)
    objective, params = float(_objective(model, params, data, rule)), _to_host(params)
    return Fit(
        model=_to_host(model),
        params=params,
        rule=rule,
        resp=np.asarray(read.resp),
        log_likelihood=np.asarray(read.log_likelihood),
        objective=objective,
        trace=np.array([objective]),
        n_iter=1,
        n_evaluations=1,
        status=Status.CONVERGED,
        restarts=(objective,),
        renamed=None,
        confused=(),
        read=_kept(read, params),
    )


def responsibilities(fitted: Fit, data: Data) -> Array:
    """``(n, K)`` responsibilities of items under parameters of a fit to others.

    Args:
        fitted: of the labels' model.
        data: encoded data of the items.
    """
    model = with_arrays(models.at_fixed_priors(fitted.model))
    params = jax.tree.map(on_device, fitted.params)
    return _finish(model, params, data, fitted.rule).resp


def _n_classes(model: Model) -> int:
    prior = model[models.PRIOR]
    return prior.log_likelihood(prior.likelihood_params(prior.prior, "vb"), None).table.shape[-1]


def fit(
    model: Model,
    data: Data,
    *,
    rule: Rule = "map",
    key: Array,
    n_restarts: int = 0,
    max_iter: int = 500,
    tol: float = 1e-6,
    accelerate: bool = True,
    stride: int = 1,
    names: Any = None,
    report: Callable[[int, float], None] | None = None,
    start: Any = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
) -> Fit:
    """Fit from the host: several starts, progress, Ctrl-C, and a check of the classes' names.

    Args:
        model: components by name, the class prior called ``"class_prior"``.
        data: encoded data.
        rule: ``"ml"`` and ``"map"`` for EM, ``"vb"`` for CAVI.
        key: JAX random key; each restart gets its own.
        n_restarts: random starts tried beside the one from the labels; the best objective wins.
        max_iter: largest number of accepted points of each start.
        tol: gain in nats per unit of row weight below which it has converged.
        accelerate: try monotone SQUAREM extrapolations.
        stride: steps to each look at the objective, where there is no acceleration.
        names: ``(K,)`` names of the classes, for warnings.
        report: called with (accepted points, objective) a few times a second.
        start: parameters of all components to begin from, instead of the labels.
        on_interrupt: after Ctrl-C, ``"raise"`` :class:`nbmodels.errors.Interrupted`, which holds
            the best fit so far, or ``"keep"`` that fit as the result.

    Raises:
        DataError: ``n_restarts`` is out of range; no class prior, or components of several numbers
            of classes; parts that are missing, unknown to the model, not of their component, or of
            another number of rows than the weights; an unknown ``rule``; a weight that is negative
            or not finite, or NaN in a part.
        Interrupted: Ctrl-C, unless ``on_interrupt="keep"``.

    Warns:
        IdentifiabilityWarning: the noise matrix is not diagonally dominant.
        NotConvergedWarning: the iteration ended in another way than by converging.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition
        >>> from nbmodels.class_priors import Proportions
        >>> from nbmodels.emissions import Bernoulli
        >>> names = np.array(["ant", "bee"])
        >>> truth = np.repeat([0, 1], 20)
        >>> given = np.where(np.arange(40) < 3, 1, truth)  # three ants are labelled as bees
        >>> wings = np.stack([truth, truth, truth], 1)
        >>> model = {"class_prior": Proportions.of(2), "labels": Transition.of(2)}
        >>> model["wings"] = Bernoulli.of(3, 2)
        >>> parts = {"labels": Transition.pack(given, 2), "wings": Bernoulli.pack(wings)}
        >>> data = Data({"class_prior": None, **parts}, weights=jnp.ones(40))
        >>> fitted = fit(model, data, key=jax.random.key(0), names=names)
        >>> print(names[fitted.resp[:4].argmax(1)], "labelled as", names[given[:4]])
        ['ant' 'ant' 'ant' 'ant'] labelled as ['bee' 'bee' 'bee' 'ant']
    """
    check_rule(rule)
    check_components(model, data)
    check_numbers(data)
    with kept_programs():
        (fitted,) = fit_many(
            [model],
            [data],
            rule=rule,
            key=key,
            n_restarts=n_restarts,
            max_iter=max_iter,
            tol=tol,
            accelerate=accelerate,
            stride=stride,
            report=report,
            starts=None if start is None else [start],
        )
    if fitted.status == Status.INTERRUPTED and on_interrupt == "raise":
        raise Interrupted(fitted)
    issue(fitted.cautions(names))
    return fitted


def fit_many(
    models_: Sequence[Model],
    data: Sequence[Data],
    *,
    rule: Rule = "map",
    key: Array,
    n_restarts: int = 0,
    max_iter: int = 500,
    tol: float = 1e-6,
    accelerate: bool = True,
    stride: int = 1,
    report: Callable[[int, float], None] | None = None,
    starts: Sequence[Any] | None = None,
    tables: bool = False,
) -> list[Fit]:
    """:func:`fit` of each model to its data, by one compiled program where shapes agree.

    Candidates, folds and replicates are such fits. Arrays that are the same object in several of
    them are held once. No warning is issued: see a fit's ``confused`` and ``status``.

    Args:
        models_: models.
        data: encoded data of each.
        starts: parameters of each to begin from, instead of the labels.
        tables: whether log-likelihoods by component are kept, where there are few items; see
            :func:`nbmodels.fitting.fit.log_likelihoods_of`.
        rule, n_restarts, max_iter, tol, accelerate, stride, report: as for :func:`fit`.
        key: JAX random key; each restart gets its own, the same in every model.
    """
    if not 0 <= n_restarts <= MOST_RESTARTS:
        raise DataError(f"n_restarts: expected 0 to {MOST_RESTARTS}; got {n_restarts!r}")
    slack = [tol * float(np.sum(np.asarray(one.weights))) for one in data]
    fixed = map(models.at_fixed_priors, models_)
    learned_from = [models.untempered(*pair) for pair in zip(models_, data, strict=True)]
    pairs = list(zip(map(with_arrays, fixed), learned_from, strict=True))
    how = iteration([model for model, _ in pairs], learned_from, rule, not accelerate)
    fit_from = partial(
        fit_batch,
        iteration=how,
        max_iter=max_iter,
        accelerate=accelerate,
        stride=1 if accelerate else stride,
        report=report,
    )
    own = [how.context(*pair) for pair in pairs]
    if starts is None:
        given = [_start(*pair, key, 1 + n_restarts, how) for pair in pairs]
        begun = [how.begin(*one) for one in zip(given, own, strict=True)]
    else:
        begun = [how.resume(*one) for one in zip(starts, own, strict=True)]
    for one in jax.random.split(key, 1 + n_restarts)[1:] if n_restarts else ():
        drawn = [_random_start(*pair, one, how) for pair in pairs]
        begun += [how.begin(*one) for one in zip(drawn, own, strict=True)]
    results = fit_from(begun, own * (1 + n_restarts), slack * (1 + n_restarts))
    finish = partial(_finish, rule=rule, tables=tables)
    fits = [
        _checked(*pair, own[i], results[i :: len(pairs)], slack[i], how, fit_from, finish)
        for i, pair in enumerate(pairs)
    ]
    read = zip(fits, models_, data, strict=True)
    return [replace(_tempered(one, whole, finish), model=_to_host(m)) for one, m, whole in read]


def _tempered(fitted: Fit, data: Data, finish: Callable[..., _Finished]) -> Fit:
    """With responsibilities and densities under the powers of the label channels."""
    model = with_arrays(models.at_fixed_priors(fitted.model))
    if models.untempered(model, data) is data:
        return fitted
    read = finish(model, jax.tree.map(on_device, fitted.params), data)
    resp, lik = np.asarray(read.resp), np.asarray(read.log_likelihood)
    return replace(fitted, resp=resp, log_likelihood=lik, read=_kept(read, fitted.params))


def _checked(
    model: Model,
    data: Data,
    context: Any,
    results: Sequence[Result],
    slack: float,
    how: Iteration,
    fit_from: Callable[..., list[Result]],
    finish: Callable[..., _Finished],
) -> Fit:
    """The best of several results, its classes renamed where the noise matrix asks for it."""
    reached = np.array([float(r.objective) for r in results])
    best = results[int(np.nanargmax(np.where(np.isfinite(reached), reached, -np.inf)))]
    rule, params = how.rule, how.params(best.params, context)
    read = finish(model, params, data)
    # Ctrl-C was meant for the whole fit, whichever start it met
    interrupted = any(int(r.status) == Status.INTERRUPTED for r in results)
    renamed: np.ndarray | None = None
    confused: tuple[tuple[int, int], ...] = ()
    for transition in map(np.asarray, read.transitions.values()):
        if transition.shape[0] != transition.shape[1]:
            continue
        named = named_by_checks(model, data, len(transition))
        diagnosis = diagnose(transition, named)
        confused += diagnosis.confused
        if diagnosis.renames and not interrupted:
            relabelled = how.relabel(best.params, model, on_device(diagnosis.order))
            (again,) = fit_from([relabelled], [context], [slack])
            interrupted = int(again.status) == Status.INTERRUPTED
            moved = how.params(again.params, context)
            after = finish(model, moved, data)
            left = [diagnose(np.asarray(t), named).confused for t in after.transitions.values()]
            # trusted labels, or known noise, may contradict the new names
            loss = float(best.objective) - float(again.objective)
            if not any(left) and loss <= slack:
                renamed, confused, best, params = diagnosis.order, (), again, moved
                read = after
                break
    n_iter, params, constant = int(best.n_iter), _to_host(params), float(read.constant)
    return Fit(
        _to_host(model),
        params,
        rule,
        np.asarray(read.resp),
        np.asarray(read.log_likelihood),
        float(best.objective) + float(best.remainder) + constant,
        np.asarray(best.trace, float)[:n_iter] + constant,
        n_iter,
        int(best.n_evaluations),
        Status.INTERRUPTED if interrupted else Status(int(best.status)),
        tuple(reached + constant),
        renamed,
        tuple(dict.fromkeys(confused)),
        read=_kept(read, params),
    )
