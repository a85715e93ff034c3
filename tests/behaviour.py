"""Results of every estimator on three small data sets, recorded before a change and compared after.

    python tests/behaviour.py record before.pkl
    python tests/behaviour.py compare before.pkl

No test: a tool for changes that must not change results. Compared are the noise matrix, the label
posterior, the predicted probabilities (to 1e-8) and what was chosen.
"""

import pickle
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

# the folder of this file has one named like the package
sys.path[0] = str(Path(__file__).parents[1])
import nbmodels as nb  # noqa: E402

TOLERANCE = 1e-8


def flipped(y, rng, share=0.2):
    """Labels of which a share is moved to another class, evenly."""
    k = y.max() + 1
    wrong = rng.random(len(y)) < share
    return np.where(wrong, (y + rng.integers(1, k, len(y))) % k, y)


def sets():
    """Three tables of real numbers with noisy labels."""
    digits = load_digits(n_class=3)
    keep = np.arange(0, len(digits.target), 3)
    loaded = {
        "iris": (load_iris().data, load_iris().target),
        "wine": (load_wine().data, load_wine().target),
        "digits": (digits.data[keep][:, 10:40], digits.target[keep]),
    }
    for i, (name, (x, y)) in enumerate(loaded.items()):
        yield name, x, y, flipped(y, np.random.default_rng(i))


def graph(y, rng):
    """Users who mostly touch items of one class."""
    users = np.arange(60)
    likes = users % (y.max() + 1)
    p = np.where(y[None, :] == likes[:, None], 0.12, 0.02)
    return sparse.csr_array((rng.random(p.shape) < p).astype(float))


def votes(y, rng):
    """Three votes an item by six workers."""
    rows = []
    for task, true in enumerate(y):
        for worker in rng.choice(6, 3, replace=False):
            wrong = rng.random() < 0.1 + 0.08 * worker
            rows.append(
                (task, worker, (true + wrong * rng.integers(1, y.max() + 1)) % (y.max() + 1))
            )
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def cases():
    """Name, constructor, arguments of fit, argument of predict_proba."""
    seed = {"random_state": 0}
    for name, x, true, y in sets():
        rng = np.random.default_rng(7)
        binary = (x > np.median(x, 0)).astype(float)
        counts = np.round(4 * (x - x.min(0)) / np.ptp(x, 0).clip(1e-9))
        symbols = counts.astype(int).astype(str)
        kept = x[:, x.std(0) > 0]
        mixed = pd.DataFrame(kept[:, :3], columns=["a", "b", "c"]).assign(
            d=symbols[:, 0], e=binary[:, 1] > 0
        )
        tables = {
            "NoisyBernoulliNB": (nb.NoisyBernoulliNB, binary),
            "NoisyMultinomialNB": (nb.NoisyMultinomialNB, counts),
            "NoisyCategoricalNB": (nb.NoisyCategoricalNB, symbols),
            "NoisyGaussianNB": (nb.NoisyGaussianNB, kept),
            "RobustNDA": (nb.RobustNDA, kept[:, :5]),
            "NoisyMixedNB": (nb.NoisyMixedNB, mixed),
        }
        for label, (cls, table) in tables.items():
            yield f"{name} {label}", lambda cls=cls: cls(**seed), (table, y), table
            yield (
                f"{name} {label} published",
                lambda cls=cls: cls.published(**seed),
                (table, y),
                table,
            )
        z = (kept - kept.mean(0)) / kept.std(0)
        yield (
            f"{name} NoisyLogisticRegression",
            lambda: nb.NoisyLogisticRegression(**seed),
            (z, y),
            z,
        )
        tree = DecisionTreeClassifier(max_depth=3, random_state=0)
        yield (
            f"{name} NoisyLabelClassifier",
            lambda tree=tree: nb.NoisyLabelClassifier(tree, **seed),
            (z, y),
            z,
        )
        yield f"{name} AutoNoisyClassifier", lambda: nb.AutoNoisyClassifier(**seed), (kept, y), kept
        yield f"{name} DawidSkene", lambda: nb.DawidSkene(**seed), (votes(true, rng),), None
        yield (
            f"{name} DawidSkene pooling",
            lambda: nb.DawidSkene(pooling=True, **seed),
            (votes(true, rng),),
            None,
        )
        edges = graph(true, rng)
        yield (
            f"{name} CollaborativeClassifier",
            lambda: nb.CollaborativeClassifier(**seed),
            (edges, y),
            edges,
        )
        yield (
            f"{name} CollaborativeClassifier published",
            lambda: nb.CollaborativeClassifier.published(3, **seed),
            (edges, y),
            edges,
        )
        partial = [{int(a), int(b)} for a, b in zip(true, y, strict=True)]
        yield (
            f"{name} PartialLabelNB",
            lambda: nb.PartialLabelNB(classes=[0, 1, 2], **seed),
            (counts, partial),
            counts,
        )
        yield (
            f"{name} PartialLabelNB star",
            lambda: nb.PartialLabelNB(estimator="star", classes=[0, 1, 2], **seed),
            (counts, y),
            counts,
        )
        two = true < 2
        few = symbols[two][:, :4]
        yield (
            f"{name} ClassConditionalNB",
            lambda: nb.ClassConditionalNB(**seed),
            (few, y[two] == 1),
            few,
        )
        yield (
            f"{name} PositiveUnlabelledNB",
            lambda: nb.PositiveUnlabelledNB(positive=True, **seed),
            (few, (true[two] == 1) & (rng.random(two.sum()) < 0.6)),
            few,
        )
        yield f"{name} UnlabelledNB", lambda: nb.UnlabelledNB(**seed), (few,), few
        sources = {
            "x": lambda: nb.NoisyGaussianNB(),
            "users": lambda: nb.CollaborativeClassifier(alpha=0.1, weight=1.0),
            "crowd": lambda: nb.DawidSkene(),
        }
        evidence = {"x": kept, "users": edges, "crowd": votes(true, rng)}
        yield (
            f"{name} JointNB",
            lambda s=sources: nb.JointNB({n: make() for n, make in s.items()}, **seed),
            (evidence, y),
            {"x": kept},
        )


def results(model, about):
    """What is compared of a fitted model."""
    out = {"label_posterior": model.label_posterior_}
    if hasattr(model, "noise_matrix_"):
        out["noise_matrix"] = np.asarray(model.noise_matrix_)
    out["predict_proba"] = np.asarray(
        model.predict_proba() if about is None else model.predict_proba(about)
    )
    if hasattr(model, "chosen_"):
        out["chosen"] = dict(model.chosen_)
    return out


def run():
    """All results, by case."""
    out = {}
    for name, make, args, about in cases():
        began = time.perf_counter()
        with warnings.catch_warnings(record=True, action="always") as caught:
            out[name] = results(make().fit(*args), about)
        out[name]["warned"] = sorted({w.category.__name__ for w in caught})
        print(f"{time.perf_counter() - began:6.1f} s  {name}", flush=True)
    return out


def compare(before, after):
    """Print where two runs differ; the number of cases that do."""
    worse = 0
    for name in before:
        for what, old in before[name].items():
            new = after.get(name, {}).get(what)
            if isinstance(old, np.ndarray):
                same = new is not None and old.shape == new.shape
                gap = np.max(np.abs(old - new)) if same else np.inf
                differs = not gap <= TOLERANCE
            else:
                gap, differs = f"{old} / {new}", old != new
            if differs:
                worse += 1
                print(f"{name}: {what}: {gap}")
    print(f"{worse} differences in {len(before)} cases")
    return worse


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    verb, path = sys.argv[1:]
    found = run()
    if verb == "record":
        with open(path, "wb") as file:
            pickle.dump(found, file)
    else:
        with open(path, "rb") as file:
            sys.exit(compare(pickle.load(file), found) > 0)
