"""Posterior draws of a fitted model, as an ArviZ ``DataTree`` with class names for coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from tqdm.auto import tqdm

from inference import gibbs as sampler
from inference.nuts import nuts
from nbmodels import model as models
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.fit import Fit
from nbmodels.identify import confused_classes
from nbmodels.model import PRIOR, Data
from nbmodels.program import program

if TYPE_CHECKING:
    from xarray import DataTree

#: Parameters with more numbers than this in one draw are left out unless asked for.
_SMALL = 5_000

#: Parameters that are shown as noise matrices instead.
_READ_OUT = ("transition", "epsilon")

#: Largest R-hat that is passed over in silence.
_RHAT = 1.05

#: A parameter whose draws spread less is a known one.
_CONSTANT = 1e-12


def gibbs_sweep(natural: Any, context: tuple[Any, Data], key: Array) -> tuple[Any, Any, Array]:
    """One sweep of data augmentation: classes given parameters, parameters given classes.

    The state is what the likelihoods read. Private latents (the missing cells of a full Gaussian)
    are drawn as well. Stored: the state; summed: the ``(N, K)`` responsibilities.
    """
    model, data = context
    first, second, third = jax.random.split(key, 3)
    table = models.evidence(model, natural, data).table
    y = jax.random.categorical(first, table)
    drawn = jax.nn.one_hot(y, table.shape[1], dtype=table.dtype)
    stats = models.stats(model, natural, drawn, data, second)
    following = models.natural(model, models.update(model, stats, "draw"), "draw", third)
    return following, following, jax.nn.softmax(table)


def gibbs_draws(
    fit: Fit, data: Data, key: Array, **options: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """Draws of what the likelihoods read, ``(chains, draws, ...)``, and the mean label posterior.

    Raises:
        DataError: row weights other than 0 and 1, which draws of single labels cannot honour.
    """
    weights = np.asarray(data.weights)
    if not np.isin(weights, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(weights, (0, 1)))[0])
        raise DataError(
            f"sample_weight: row {row} weighs {weights[row]}; Gibbs sampling draws one class a row "
            "and needs weights of 0 or 1; repeat rows instead, or use method='nuts'"
        )
    model = jax.tree.map(jnp.asarray, fit.model)
    first, second = jax.random.split(key)
    state = models.natural(model, jax.tree.map(jnp.asarray, fit.params), "draw", first)
    out = sampler.sample(gibbs_sweep, state, (model, data), second, **options)
    return out.stored, out.mean


def nuts_draws(
    fit: Fit, data: Data, key: Array, **options: Any
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """NUTS on the model's NumPyro program, from the fit: values by component, and statistics."""
    model = jax.tree.map(jnp.asarray, fit.model)
    centre = {
        f"{name}_{part}": jnp.asarray(value)
        for name, values in models.values(model, fit.point).items()
        for part, value in values.items()
    }
    samples, statistics = nuts(program(model, data), key, start=_inside(centre), **options)
    values: dict[str, dict[str, np.ndarray]] = {name: {} for name in model}
    for name in model:
        for site, draws in samples.items():
            if site.startswith(f"{name}_"):
                values[name][site.removeprefix(f"{name}_")] = draws
    return values, statistics


def _inside(values: Mapping[str, Array]) -> dict[str, Array]:
    """Starting values off the boundary, where a mode may lie but a sampler may not begin."""
    out = {}
    for name, value in values.items():
        if name.endswith(("probs", "transition")) or "_probs_" in name:
            lifted = jnp.clip(value, 1e-4, 1 - 1e-4)
            simplex = jnp.allclose(value.sum(-1), 1, atol=1e-3)
            out[name] = lifted / lifted.sum(-1, keepdims=True) if simplex else lifted
        elif name.endswith("epsilon"):
            out[name] = jnp.clip(value, 1e-4, 1 - 1e-4)
        else:
            out[name] = value
    return out


def sample(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    method: Literal["gibbs", "nuts"] = "gibbs",
    draws: int = 500,
    warmup: int | None = None,
    chains: int = 4,
    thin: int = 1,
    keep: Literal["small", "all"] = "small",
    names: Any = None,
    features: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> DataTree:
    """Posterior draws of a fitted model.

    Args:
        fit: from :func:`nbmodels.fit.fit`; chains begin at a draw around it.
        data: what it was fitted to.
        key: JAX random key.
        method: ``"gibbs"`` on the fast core, or ``"nuts"`` on the NumPyro program (small data).
        draws: kept draws of each chain.
        warmup: sweeps or adaptation steps thrown away; 200 for Gibbs, 500 for NUTS.
        chains: number of chains.
        thin: Gibbs sweeps to each kept draw.
        keep: ``"small"`` leaves out parameters of more than 5,000 numbers a draw.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
        progress: show a bar; None to show one after a few seconds.

    Returns:
        ``DataTree`` with group ``posterior``: ``class_prior`` (``true_class``), ``noise_matrix``
        (``observed_class``, ``true_class``; P(observed | true)), and ``{emission}_{parameter}``;
        with ``sample_stats`` for NUTS; for Gibbs with ``label_posterior`` (``item``,
        ``true_class``), averaged over the draws.

    Warns:
        PosteriorWarning: R-hat above 1.05, divergences, or a noise matrix whose diagonal does not
            dominate, said in words.
    """
    if method not in ("gibbs", "nuts"):
        raise DataError(f"method: expected 'gibbs' or 'nuts', got {method!r}")
    model = fit.model
    statistics: dict[str, np.ndarray] = {}
    groups: dict[str, dict[str, np.ndarray]] = {}
    if method == "gibbs":
        warmup = 200 if warmup is None else warmup
        total = chains * (warmup + draws * thin)
        with tqdm(
            desc="sampling",
            unit="sweep",
            total=total,
            delay=0.0 if progress else 3.0,
            disable=progress is False,
            leave=False,
        ) as bar:
            natural, resp = gibbs_draws(
                fit,
                data,
                key,
                draws=draws,
                warmup=warmup,
                chains=chains,
                thin=thin,
                report=bar.update,
            )
        read = jax.jit(jax.vmap(jax.vmap(partial(models.values, model))))
        values = jax.tree.map(np.asarray, read(natural))
        groups["label_posterior"] = {"p": resp[np.asarray(data.weights) > 0]}
    else:
        warmup = 500 if warmup is None else warmup
        values, statistics = nuts_draws(
            fit, data, key, draws=draws, warmup=warmup, chains=chains, progress=bool(progress)
        )
    each = jax.vmap(jax.vmap(partial(models.transitions, model)))
    transitions = jax.tree.map(np.asarray, each(values))
    posterior: dict[str, np.ndarray] = {}
    dims: dict[str, list[str]] = {}
    for name, component in model.items():
        here = dict(values.get(name, {}))
        if units and name in units:
            here = units[name](here)
        for part, draw in here.items():
            if name == PRIOR and part == "probs":
                posterior["class_prior"], dims["class_prior"] = draw, ["true_class"]
            elif part not in _READ_OUT and (keep == "all" or draw[0, 0].size <= _SMALL):
                label = f"{name}_{part}"
                posterior[label] = draw
                dims[label] = [_qualified(d, name) for d in component.dims()[part]]
    for name, drawn in transitions.items():
        draw = np.broadcast_to(drawn, (chains, draws, *drawn.shape[-2:]))
        label = "noise_matrix" if name == "labels" else f"{name}_noise_matrix"
        posterior[label] = np.swapaxes(draw, -1, -2)
        dims[label] = ["observed_class", "true_class"]
    return _tree(posterior, statistics, groups, dims, names, features, fit.resp.shape[1])


def _qualified(dim: str, name: str) -> str:
    return dim if dim in ("true_class", "observed_class") else f"{name}_{dim}"


def _tree(
    posterior: dict[str, np.ndarray],
    statistics: dict[str, np.ndarray],
    groups: dict[str, dict[str, np.ndarray]],
    dims: dict[str, list[str]],
    names: Any,
    features: Mapping[str, Any] | None,
    n_classes: int,
) -> DataTree:
    import arviz_base

    labels = np.arange(n_classes) if names is None else np.asarray(names)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    coords: dict[str, Any] = {"true_class": labels, "observed_class": labels}
    for name, columns in (features or {}).items():
        coords[f"{name}_feature"] = coords[f"{name}_other_feature"] = np.asarray(columns, str)
    used = {d for label in dims.values() for d in label}
    tree = arviz_base.from_dict(
        {"posterior": posterior, **({"sample_stats": statistics} if statistics else {})},
        coords={k: v for k, v in coords.items() if k in used},
        dims=dims,
    )
    for group, arrays in groups.items():
        import xarray

        tree[group] = xarray.DataTree(
            xarray.Dataset(
                {k: (("item", "true_class"), v) for k, v in arrays.items()},
                coords={"true_class": labels},
            )
        )
    for sentence in complaints(tree):
        warnings.warn(sentence, PosteriorWarning, stacklevel=3)
    return tree


def complaints(tree: DataTree) -> list[str]:
    """What speaks against trusting the draws, in words; empty if nothing does."""
    import arviz_stats

    out = []
    draws = tree["posterior"]
    # what is known does not vary, and has nothing to mix
    small = [
        name
        for name in ("class_prior", "noise_matrix")
        if name in draws and float(draws[name].std(("chain", "draw")).max()) > _CONSTANT
    ]
    if tree["posterior"].sizes["chain"] > 1 and small:
        with np.errstate(invalid="ignore", divide="ignore"):  # single cells may be known
            rhat = arviz_stats.rhat(tree, var_names=small)
        worst = max(float(np.nanmax(rhat[name].values)) for name in small)
        if worst > _RHAT:
            out.append(
                f"the chains have not mixed: R-hat of {' and '.join(small)} reaches {worst:.2f} "
                f"(at most {_RHAT} is usual); take more draws and warm-up"
            )
    if "sample_stats" in tree.children and "diverging" in tree["sample_stats"]:
        count = int(tree["sample_stats"]["diverging"].sum())
        if count:
            out.append(f"{count} draws diverged; their region of the posterior is not explored")
    if "noise_matrix" in tree["posterior"]:
        mean = tree["posterior"]["noise_matrix"].mean(("chain", "draw")).to_numpy()
        confused = confused_classes(mean.T)
        if confused:
            names = tree["posterior"]["true_class"].to_numpy()
            pairs = ", ".join(f"{names[k]} as {names[j]}" for k, j in confused[:10])
            out.append(f"the posterior noise matrix is not diagonally dominant: {pairs}")
    return out
