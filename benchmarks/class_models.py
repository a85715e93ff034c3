"""Classifiers of the features under noisy labels: ``python benchmarks/class_models.py``.

20 Newsgroups as TF-IDF weights with planted noise, and the live-streaming messages with the errors
that people made. The rows are logistic regression on the noisy labels as they are, ours, and
cleanlab on the same regression. Columns as in ``real_data.py``; those of live streaming are means
over random splits, four fifths to learn from, the rest new. Nothing is tuned on clean labels.
"""

import argparse
import importlib.util
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from real_data import DATA, NEWS, gap, texts
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB

from nbmodels import (
    AutoNoisyClassifier,
    NoisyBernoulliNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    Solver,
)
from nbmodels.datasets import corrupt, flip_noise, uniform_noise

STREAMS = DATA / "live_streaming.csv"


def regression():
    return LogisticRegression(max_iter=1000)


def plain(x, noisy, seed, make=regression):
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    probs = cross_val_predict(make(), x, noisy, cv=folds, method="predict_proba")
    return make().fit(x, noisy), probs, None


def cleaned(x, noisy, seed):
    from cleanlab.classification import CleanLearning

    theirs = CleanLearning(regression(), seed=seed, verbose=False).fit(x, noisy)
    k = noisy.max() + 1
    # only the given label's quality is known: the rest is shared out
    quality = theirs.get_label_issues()["label_quality"].to_numpy()
    probs = np.repeat((1 - quality)[:, None] / (k - 1), k, 1)
    probs[np.arange(len(noisy)), noisy] = quality
    return theirs, probs, np.diag(theirs.noise_matrix)


def ours(estimator, **settings):
    def fitted(x, noisy, seed):
        e = estimator(random_state=seed, solver=Solver(progress=False), **settings).fit(x, noisy)
        return e, e.label_posterior_, np.diag(e.noise_matrix_)

    return fitted


def methods(binary):
    """Methods by name; naive Bayes where features are binary."""
    found = {"logistic regression": plain}
    if binary:
        found["naive Bayes"] = partial(plain, make=BernoulliNB)
        found["NoisyBernoulliNB"] = ours(NoisyBernoulliNB)
        found["AutoNoisyClassifier"] = ours(AutoNoisyClassifier)
    for noise in ("full", "pooled", "symmetric"):
        found[f"NoisyLogisticRegression, {noise}"] = ours(NoisyLogisticRegression, noise=noise)
    found["NoisyLabelClassifier, full"] = ours(NoisyLabelClassifier, base_estimator=regression())
    if importlib.util.find_spec("cleanlab") is not None:
        found["cleanlab"] = cleaned
    return found


def rows(splits, only):
    """Means over splits ``(x, noisy, true, x_new, y_new)`` of accuracy, AUC, gap and seconds."""
    first = splits[0][0]
    binary = isinstance(first, np.ndarray) and np.isin(first, (0, 1)).all()
    for name, method in methods(binary).items():
        if only and name not in only:
            continue
        table = []
        for seed, (x, noisy, true, x_new, y_new) in enumerate(splits):
            began = time.perf_counter()
            with warnings.catch_warnings(action="ignore"):
                e, probs, diagonal = method(x, noisy, seed)
            took = time.perf_counter() - began
            auc = roc_auc_score(noisy != true, 1 - probs[np.arange(len(noisy)), noisy])
            off = np.nan if diagonal is None else gap(diagonal, noisy, true)
            table.append((np.mean(e.predict(x_new) == y_new), auc, off, took))
        yield name, *np.mean(table, 0)


def news(seed):
    """One split with each noise, by its name."""
    vocabularies, y = texts()
    x = vocabularies["largest TF-IDF"]["TF-IDF"]
    k = y.max() + 1
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    train, new = order[:15076], order[15076:]
    noises = {
        "20 % uniform": uniform_noise(k, 0.2),
        "30 % pair": flip_noise(k, {(j, (j + 1) % k): 0.3 for j in range(k)}),
    }
    for what, matrix in noises.items():
        noisy = corrupt(y[train], matrix, rng)
        yield f"20 Newsgroups, {what}", [(x[train], noisy, y[train], x[new], y[new])]


def streams(seed, n_splits):
    """Random splits of the live-streaming messages."""
    frame = pd.read_csv(STREAMS)
    y, noisy = frame.pop("true_label").to_numpy(), frame.pop("label").to_numpy()
    x = frame.to_numpy(float)
    rng = np.random.default_rng(seed)
    for _ in range(n_splits):
        order = rng.permutation(len(y))
        train, new = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
        yield x[train], noisy[train], y[train], x[new], y[new]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", choices=("news", "streams"))
    parser.add_argument("--methods", nargs="*", help="names of the rows; all by default")
    args = parser.parse_args()
    console = Console()
    table = Table("data", "method", "accuracy", "AUC", "gap", "seconds")
    data = {}
    if STREAMS.exists() and args.only != "news":
        data["live streaming"] = list(streams(args.seed, args.splits))
    if NEWS.exists() and args.only != "streams":
        data |= dict(news(args.seed))
    if not data:
        console.print("neither 20 Newsgroups nor the live-streaming messages are at hand")
        return
    for what, splits in data.items():
        for name, accuracy, auc, off, took in rows(splits, args.methods):
            off = "" if np.isnan(off) else f"{off:.3f}"
            row = what, name, f"{accuracy:.4f}", f"{auc:.4f}", off, f"{took:.1f}"
            table.add_row(*row)
            console.print(*row, style="dim")
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
