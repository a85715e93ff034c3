"""Noise models where naive Bayes does not hold: ``python benchmarks/real_data.py``.

20 Newsgroups with planted noise, in two vocabularies of 7,302 words and three codings. The rows are
naive Bayes on the noisy labels as they are, its joint noise model (plain EM), ours on its defaults
(every setting chosen by held-out noisy labels), and cleanlab on the same classifier. All but ours
are given a smoothing that suits the coding. Accuracy is of new items with true labels; AUC of
finding the wrong labels among the given ones; the gap is the mean error of the noise matrix's
diagonal. Nothing is tuned on clean labels.
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

from nbmodels import NoisyBernoulliNB, NoisyMultinomialNB
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


def measured(resp, noisy, true, diagonal):
    """AUC of wrong labels, and the mean error of the diagonal."""
    wrong = noisy != true
    transition = np.zeros((resp.shape[1],) * 2)
    np.add.at(transition, (true, noisy), 1)
    actual = np.diag(transition) / transition.sum(1)
    auc = roc_auc_score(wrong, 1 - resp[np.arange(len(noisy)), noisy])
    return auc, np.nan if diagonal is None else np.abs(diagonal - actual).mean()


def rows(x, noisy, true, x_new, y_new, coding, joint):
    plain, ours, alpha = classifiers(coding)
    began = time.perf_counter()
    probs = cross_val_predict(
        plain, x, noisy, cv=StratifiedKFold(5, shuffle=True, random_state=0), method="predict_proba"
    )
    accuracy = np.mean(plain.fit(x, noisy).predict(x_new) == y_new)
    yield "naive Bayes", accuracy, *measured(probs, noisy, true, None), time.perf_counter() - began
    models = {"ours": ours(random_state=0, progress=False)}
    if joint:
        models["joint"] = ours.published(alpha=alpha, random_state=0, progress=False)
    for name, e in models.items():
        began = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            e.fit(x, noisy)
        took = time.perf_counter() - began
        found = measured(e.label_posterior_, noisy, true, np.diag(e.noise_matrix_))
        yield name, np.mean(e.predict(x_new) == y_new), *found, took
    if importlib.util.find_spec("cleanlab") is None:
        return
    from cleanlab.classification import CleanLearning

    began = time.perf_counter()
    theirs = CleanLearning(classifiers(coding)[0], seed=0, verbose=False)
    with warnings.catch_warnings(action="ignore"):
        theirs.fit(x, noisy)
    took = time.perf_counter() - began
    quality = theirs.get_label_issues()["label_quality"].to_numpy()
    diagonal = np.diag(theirs.noise_matrix)
    found = measured(probs, noisy, true, diagonal)
    auc = roc_auc_score(noisy != true, 1 - quality)
    yield "cleanlab", np.mean(theirs.predict(x_new) == y_new), auc, found[1], took


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
    columns = ("noise", "words", "coding", "method", "accuracy", "AUC", "gap", "seconds")
    table = Table(*columns)
    for what, matrix in noises.items():
        noisy = corrupt(y[train], matrix, rng)
        for words, codings in vocabularies.items():
            for coding, x in codings.items():
                for method, accuracy, auc, gap, took in rows(
                    x[train], noisy, y[train], x[new], y[new], coding, not args.no_joint
                ):
                    table.add_row(
                        what,
                        words,
                        coding,
                        method,
                        f"{accuracy:.4f}",
                        f"{auc:.4f}",
                        "" if np.isnan(gap) else f"{gap:.3f}",
                        f"{took:.1f}",
                    )
                table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
