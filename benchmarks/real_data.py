"""Noise models where naive Bayes does not hold: ``python benchmarks/real_data.py``.

20 Newsgroups with planted noise, in two vocabularies of 7,302 words and three codings. The rows are
naive Bayes on the noisy labels as they are, its joint noise model (plain EM), ours on its defaults
(every setting chosen by held-out noisy labels), and cleanlab on the same classifier. All but ours
are given a smoothing that suits the coding. Accuracy is of new items with true labels; AUC of
finding the wrong labels among the given ones; precision that of the most suspect labels, as many
as hold the share of the wrong ones that cleanlab flags (its recall); the gap is the mean error of
the noise matrix's diagonal. Nothing is tuned on clean labels.
"""

import argparse
import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from nbmodels import NoisyBernoulliNB, NoisyMultinomialNB, Solver
from nbmodels.datasets import corrupt, flip_noise, uniform_noise

DATA = Path(__file__).parents[2] / "shared" / "data"
NEWS = DATA / "text" / "newsgroups20.parquet"


def texts():
    """Counts in two vocabularies, TF-IDF weights of the same words, classes."""
    frame = pd.read_parquet(NEWS)
    counts = sparse.csr_matrix(CountVectorizer(stop_words="english").fit_transform(frame["text"]))
    weights = sparse.csr_matrix(TfidfTransformer().fit_transform(counts))
    most = {
        "largest TF-IDF": weights.max(0).toarray().ravel(),
        "summed TF-IDF": np.asarray(weights.sum(0)).ravel(),
    }
    y = pd.factorize(frame["label"], sort=True)[0]
    found = {}
    for vocabulary, value in most.items():
        chosen = np.sort(np.argsort(-value, kind="stable")[:7302])
        found[vocabulary] = {
            "binary": (counts[:, chosen] > 0).astype(float),
            "counts": counts[:, chosen].astype(float),
            "TF-IDF": weights[:, chosen],
        }
    return found, y


def classifiers(coding):
    """scikit-learn's and ours, with the same smoothing."""
    alpha = 0.01 if coding == "TF-IDF" else 0.1
    if coding == "binary":
        return BernoulliNB(alpha=alpha), NoisyBernoulliNB, alpha
    return MultinomialNB(alpha=alpha), NoisyMultinomialNB, alpha


def precision_at(recall, suspicion, wrong):
    """Share of wrong labels among the most suspect ones that hold ``recall`` of all wrong ones."""
    found = np.cumsum(wrong[np.argsort(-suspicion, kind="stable")])
    n = np.searchsorted(found, recall * wrong.sum()) + 1
    return found[n - 1] / n


def gap(diagonal, noisy, true):
    """Mean error of a noise matrix's diagonal."""
    counts = np.zeros((len(diagonal),) * 2)
    np.add.at(counts, (true, noisy), 1)
    return np.abs(diagonal - np.diag(counts) / counts.sum(1)).mean()


def fits(x, noisy, coding, x_new, joint):
    """Of each method: its name, its word on new items, how suspect each label is to it, the
    diagonal of its noise matrix, the labels that it flags itself, and seconds.
    """
    plain, ours, alpha = classifiers(coding)
    item = np.arange(len(noisy))
    began = time.perf_counter()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probs = cross_val_predict(plain, x, noisy, cv=folds, method="predict_proba")
    predicted = plain.fit(x, noisy).predict(x_new)
    took = time.perf_counter() - began
    yield "naive Bayes", predicted, 1 - probs[item, noisy], None, None, took
    quiet = {"random_state": 0, "solver": Solver(progress=False)}
    models = {"ours": ours(**quiet)}
    if joint:
        models["joint"] = ours.published(alpha=alpha, **quiet)
    for name, e in models.items():
        began = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            e.fit(x, noisy)
        took = time.perf_counter() - began
        suspicion = 1 - e.label_posterior_[item, noisy]
        yield name, e.predict(x_new), suspicion, np.diag(e.noise_matrix_), None, took
    if importlib.util.find_spec("cleanlab") is None:
        return
    from cleanlab.classification import CleanLearning

    theirs = CleanLearning(classifiers(coding)[0], seed=0, verbose=False)
    began = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        theirs.fit(x, noisy)
    took = time.perf_counter() - began
    issues = theirs.get_label_issues()
    suspicion = 1 - issues["label_quality"].to_numpy()
    flagged = issues["is_label_issue"].to_numpy()
    yield "cleanlab", theirs.predict(x_new), suspicion, np.diag(theirs.noise_matrix), flagged, took


def rows(found, noisy, true, y_new):
    """Columns of the table, of each method."""
    wrong = noisy != true
    flagged = next((f[4] for f in found if f[4] is not None), None)
    recall = None if flagged is None else np.mean(flagged[wrong])
    for name, said, suspicion, diagonal, own, took in found:
        precision = None if recall is None else precision_at(recall, suspicion, wrong)
        if own is not None:
            precision = np.mean(wrong[own])
        yield (
            name,
            f"{np.mean(said == y_new):.4f}",
            f"{roc_auc_score(wrong, suspicion):.4f}",
            "" if precision is None else f"{precision:.3f}",
            "" if diagonal is None else f"{gap(diagonal, noisy, true):.3f}",
            f"{took:.1f}",
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-joint", action="store_true", help="leave the slow joint model out")
    args = parser.parse_args()
    console = Console()
    if not NEWS.exists():
        console.print("20 Newsgroups are not at hand")
        return
    vocabularies, y = texts()
    k = y.max() + 1
    rng = np.random.default_rng(args.seed)
    order = rng.permutation(len(y))
    train, new = order[:15076], order[15076:]
    noises = {
        "20 % uniform": uniform_noise(k, 0.2),
        "40 % uniform": uniform_noise(k, 0.4),
        "30 % pair": flip_noise(k, {(j, (j + 1) % k): 0.3 for j in range(k)}),
    }
    measures = ("accuracy", "AUC", "precision", "gap", "seconds")
    table = Table("noise", "words", "coding", "method", *measures)
    for what, matrix in noises.items():
        noisy = corrupt(y[train], matrix, rng)
        for words, codings in vocabularies.items():
            for coding, x in codings.items():
                found = list(fits(x[train], noisy, coding, x[new], not args.no_joint))
                for row in rows(found, noisy, y[train], y[new]):
                    table.add_row(what, words, coding, *row)
                    console.print(what, words, coding, *row, style="dim")
                table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
