"""Which log-likelihood of NB-CCCN Denis et al. 2006 print in Table 3: a search over readings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import logsumexp

from benchmarks.reproduce.data import printed
from benchmarks.reproduce.denis_fits import CLOSED, LEAST, indicators
from benchmarks.reproduce.denis_sets import prepare
from benchmarks.reproduce.results import Result, Table, Target, claim
from benchmarks.reproduce.targets import denis2006_table3 as table3
from nbmodels.fitting import init_pairwise as pairwise

#: Of what the log-likelihood of the training rows may be.
READINGS = (
    "attributes and given labels, with the noise",
    "attributes alone",
    "attributes and true classes",
    "attributes and given labels, taken for true",
    "attributes and the likelier class",
)
SUMS = {"NB-CCCN": "as printed", "NB-CCCN'": "taken first"}


@dataclass(frozen=True)
class Scale:
    """Draws of the noise, and sets."""

    repeats: int
    sets: int = 6


@partial(jax.jit, static_argnames=("sizes", "smoothed"))
def likelihoods(
    weights: Array, labels: Array, true: Array, codes: Array, sizes: Any, smoothed: bool
) -> dict[str, Array]:
    """``(folds, readings)`` log-likelihoods of the training rows, by closed form."""
    onehot = indicators(codes, sizes)
    member = np.repeat(np.eye(len(sizes)), sizes, axis=1)
    each = jnp.arange(len(true))

    def one(args: tuple[Array, Array]) -> dict[str, Array]:
        training, given = args
        tables = pairwise.tables(onehot, jax.nn.one_hot(given, 2) * training[:, None], sizes)
        out = {}
        for name, closed in CLOSED.items():
            found = closed(tables)
            p = jnp.clip(found.share, LEAST, 1 - LEAST)
            share = jnp.stack([1 - p, p])
            eta0, eta1 = jnp.clip(found.flip_rates(tables.share), 0, 1)
            noise = jnp.stack([jnp.stack([1 - eta0, eta0]), jnp.stack([eta1, 1 - eta1])])
            probs = found.probs
            if smoothed:
                counts = jnp.clip(probs, 0, 1) * share * jnp.sum(training) + table3.ALPHA
                probs = counts / (member.T @ (member @ counts))
            joint = jnp.log(share) + onehot @ jnp.log(jnp.clip(probs, LEAST, 1))
            seen = logsumexp(joint + jnp.log(jnp.maximum(noise.T[given], 1e-12)), 1)
            alone = logsumexp(joint, 1)
            rows = [seen, alone, joint[each, true], joint[each, given], jnp.max(joint, 1)]
            out[name] = jnp.stack([training @ row for row in rows])
        return out

    return lax.map(one, (weights, labels))


def run(scale: Scale) -> Result:
    ways = tuple(product(SUMS, (True, False)))
    gaps: dict[Any, list[np.ndarray]] = {way: [] for way in ways}
    for row in printed("denis2006_table3")["rows"][: scale.sets]:
        found = prepare(row, table3.CUT, table3.MISSING)
        for noise, there in row["noise"].items():
            weights, labels = table3.folds(found, np.array(json.loads(noise)), scale.repeats)
            args = (weights.astype(float), labels, found.y, found.codes)
            for smoothed in (True, False):
                each = likelihoods(*map(jnp.asarray, args), found.sizes, smoothed)
                for name, values in each.items():
                    ours = np.asarray(values).mean(0)
                    gaps[name, smoothed].append(np.abs(ours / there["lk"]["NB-CCCN"] - 1))
    rows, within = [], []
    for (name, smoothed), off in gaps.items():
        for reading, values in zip(READINGS, np.array(off).T, strict=True):
            near = int(np.sum(values <= 0.005))
            within.append(2 * near <= len(values))
            how = "Laplace" if smoothed else "none"
            share = f"{near} of {len(values)}"
            rows.append((SUMS[name], how, reading, f"{100 * values.mean():.1f}", share))
    rows.sort(key=lambda row: float(row[3]))
    columns = ("sums", "smoothing", "log-likelihood of", "mean difference, %", "within 0.5 %")
    found_claims = (
        claim("no reading meets more than half of the figures within 0.5 %", within, ours=True),
    )
    title = "Readings by how far they are from the printed log-likelihoods"
    return Result(claims=found_claims, tables=(Table(title, columns, tuple(rows)),))


TARGET = Target(
    name="why-denis2006-likelihoods",
    paper="Denis et al. 2006",
    title="Why, Table 3: log-likelihoods of NB-CCCN",
    about="""What the printed log-likelihoods of NB-CCCN may be of: five readings, each with the
sums of the closed form as printed and taken first, with and without smoothing, compared with all
twelve figures.""",
    run=run,
    scales={"toy": Scale(1, 1), "quick": Scale(1), "full": Scale(10)},
    needs=tuple(f"uci/{name}.csv" for name in table3.NAMES),
    why="""None of the twenty readings meets the printed figures: the nearest is 5 % off on
average. On Wisconsin and Hepatitis without noise the printed ones are 8 and 22 % below any of
ours, below naive Bayes on the same rows, although the closed form then differs little from naive
Bayes if it joins its pairs of attributes by either rule. So the paper's NB-CCCN had other
parameters, and not only another likelihood: its rule for joining pairs is neither of the two. The
same holds of its accuracies and flip rates, which come from these parameters. Where NB-CCCN-EM
began matters [on one set only](#why-table-3-nb-cccn-em-with-noise).""",
)
