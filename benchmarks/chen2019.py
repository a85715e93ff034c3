"""Figures 1-4 of Chen et al. 2019 on Reuters and 20 Newsgroups, in numbers.

The paper prints no table, only curves of accuracy by class, and says in its text which method is
ahead on average; those sentences are checked on the mean over the classes. It does not say how it
estimates P(C_i); here the class shares have the same weights as the words.

Reuters here are its eight largest single-label topics (the paper has ten). Documents are cut into
lower-case words, rare and very common ones left out, which the paper does not describe. NB, L1, L2
and L* are the closed forms with ``t = 2``; EM sums over the classes that are not excluded. All are
smoothed by ``--alpha`` pseudo-counts; the paper has none, and without it one unseen word decides.
Brackets hold the standard error over ``--repeats`` splits.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from tqdm import tqdm

from nbmodels import PartialLabelNB
from nbmodels.papers import chen2019

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "text"
FILES = {"Reuters": "reuters_r8.parquet", "20 Newsgroups": "newsgroups20.parquet"}

#: Methods of each figure, the share of documents in S1 and in S2, and where they are scored.
FIGURES = {
    1: (("NB", "L1", "L2", "EM"), 0.1, 0.1, "test"),
    2: (("L1", "L2", "EM"), 0.0, 0.9, "test"),
    3: (("NB", "L*"), 0.1, 0.0, "test"),
    4: (("NB", "L*"), 0.1, 0.0, "training"),
}
#: What section 5 says of them: the first is at least as accurate as the second.
CLAIMS = {1: [("L1", "NB"), ("L2", "NB")], 3: [("L*", "NB")], 4: [("NB", "L*")]}
ESTIMATORS = {"NB": "L1", "L1": "L1", "L2": "L2", "L*": "star", "EM": "em"}


def read(name, folder):
    """Counts of words, and classes as codes."""
    frame = pd.read_parquet(folder / FILES[name])
    vectorizer = CountVectorizer(min_df=5, max_df=0.3, stop_words="english")
    return vectorizer.fit_transform(frame["text"]), pd.factorize(frame["label"], sort=True)[0]


def log_likelihood(true, k, n_positive, key):
    """``(n, k)`` booleans: one class possible in S1, the first documents; one excluded in S2."""
    negative = np.asarray(chen2019.draw_negative(key, np.asarray(true), k)) > 0
    possible = ~negative
    possible[:n_positive] = np.eye(k, dtype=bool)[true[:n_positive]]
    return possible


def one_split(x, true, figure, alpha, t, rng):
    """Accuracy of each method, over all documents and averaged over the classes."""
    methods, share_1, share_2, where = FIGURES[figure]
    k, order = int(true.max()) + 1, rng.permutation(len(true))
    n_1, n_2 = round(share_1 * len(true)), round(share_2 * len(true))
    train = order[: n_1 + n_2]
    scored = train if where == "training" else order[n_1 + n_2 :]
    possible = log_likelihood(true[train], k, n_1, jax.random.key(rng.integers(2**31)))
    out = {}
    for method in methods:
        rows = slice(n_1 if method == "NB" else None)
        model = PartialLabelNB(estimator=ESTIMATORS[method], t=t, alpha=alpha)
        model.fit(x[train][rows], possible[rows])
        right = model.predict(x[scored]) == true[scored]
        by_class = [right[true[scored] == i].mean() for i in range(k) if (true[scored] == i).any()]
        out[method] = 100 * right.mean(), 100 * np.mean(by_class)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the two parquet files")
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--figures", type=int, nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--documents", type=int, help="a random subset of so many")
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--t", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    for name in args.sets:
        if not (args.data / FILES[name]).exists():
            parser.exit(1, f"{FILES[name]} is not in {args.data}; say where with --data\n")
        x, true = read(name, args.data)
        if args.documents:
            some = np.random.default_rng(args.seed).permutation(len(true))[: args.documents]
            x, true = x[some], true[some]
        print(f"\n{name}: {x.shape[0]} documents, {x.shape[1]} words, {true.max() + 1} classes")
        for figure in args.figures:
            methods, share_1, share_2, where = FIGURES[figure]
            print(
                f"Figure {figure}: {100 * share_1:.0f} % in S1, {100 * share_2:.0f} % in S2, "
                f"scored on the {where} documents; accuracy %, and mean over classes"
            )
            splits = [
                one_split(
                    x, true, figure, args.alpha, args.t, np.random.default_rng((args.seed, r))
                )
                for r in tqdm(range(args.repeats), leave=False)
            ]
            mean = {}
            for method in methods:
                scores = np.array([split[method] for split in splits])
                mean[method] = scores[:, 1].mean()
                error = scores.std(0, ddof=min(1, len(scores) - 1)) / np.sqrt(len(scores))
                print(
                    f"  {method:3} {scores[:, 0].mean():6.2f} ({error[0]:.2f})"
                    f"   {scores[:, 1].mean():6.2f} ({error[1]:.2f})"
                )
            for better, worse in CLAIMS.get(figure, []):
                verdict = "holds" if mean[better] >= mean[worse] else "fails"
                print(f"  the paper's text, {better} above {worse} over the classes: {verdict}")


if __name__ == "__main__":
    main()
