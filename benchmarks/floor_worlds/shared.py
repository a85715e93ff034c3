"""Worlds of the sets that stand beside the checkout; they are left out where these are absent."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from real_data import DATA
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from threads import author_threads

from floor_worlds.base import AbsentError, Items, Setting, world
from floor_worlds.bundled import Source, cells, split
from floor_worlds.crowds import majority
from floor_worlds.graphs import with_hidden

#: Of a set of texts, so many words, those of most documents: a fit takes seconds then.
_WORDS = 3000

#: What Denis et al. 2006 say of their sets, beside the figures that tests know.
_ABOUT_UCI = Path(__file__).parents[2] / "tests" / "papers" / "expected" / "denis2006_table3.json"


def _at_hand(name: str) -> Any:
    path = DATA / name
    if not path.exists():
        raise AbsentError(f"{name} is not at hand")
    return path


@cache
def _streams() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    frame = pd.read_csv(_at_hand("live_streaming.csv"))
    true, given = frame.pop("true_label").to_numpy(), frame.pop("label").to_numpy()
    return frame.to_numpy(float), true, given


@world("live streaming", "binary", (Setting(1132, 13, errors="own", share=0.194),))
def streams(setting: Setting, rng: np.random.Generator) -> Items:
    """Messages with the errors that people made."""
    x, true, given = _streams()
    order = rng.permutation(len(true))
    train, new = order[: setting.n], order[setting.n :]
    return Items(x[train], true[train], x[new], true[new], given=given[train])


@cache
def _texts(file: str) -> tuple[Any, np.ndarray]:
    frame = pd.read_parquet(_at_hand(f"text/{file}"))
    vectorizer = CountVectorizer(min_df=5, max_df=0.3, stop_words="english")
    counts = sparse.csr_matrix(vectorizer.fit_transform(frame["text"]))
    y = pd.factorize(frame["label"], sort=True)[0]
    most = np.argsort(-np.asarray((counts > 0).sum(0)).ravel(), kind="stable")[:_WORDS]
    return counts[:, np.sort(most)].astype(float), y


@cache
def _uci(name: str) -> tuple[np.ndarray, np.ndarray]:
    """An indicator a value of each column: what Denis et al. 2006 take for attributes."""
    frame = pd.read_csv(_at_hand(f"uci/{name}.csv"))
    rows = json.loads(_ABOUT_UCI.read_text())["rows"]
    row = next(r for r in rows if r["file"] == f"{name}.csv")
    frame = frame[~frame["label"].isin(row.get("left_out", []))]
    y = (frame.pop("label") == row["positive"]).to_numpy(int)
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]) and frame[column].nunique() > 10:
            frame[column] = pd.qcut(frame[column], 10, labels=False, duplicates="drop")
    known = frame.notna().any(axis=1)  # one representative voted on nothing
    return pd.get_dummies(frame[known].astype("category")).to_numpy(float), y[known]


@cache
def _crowd(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Votes and true classes, -1 where unknown; tasks and workers by their position."""
    votes = pd.read_csv(_at_hand(f"crowd/{name}_labels.csv"))
    truth = pd.read_csv(_at_hand(f"crowd/{name}_truth.csv")).set_index("task")["true_label"]
    task, tasks = pd.factorize(votes["task"], sort=True)
    worker = pd.factorize(votes["worker"], sort=True)[0]
    table = pd.DataFrame({"task": task, "worker": worker, "label": votes["label"]})
    return table, truth.reindex(tasks).fillna(-1).to_numpy(int)


def _voted(name: str, setting: Setting, rng: np.random.Generator) -> Items:
    votes, true = _crowd(name)
    return Items(votes, true, given=majority(votes, setting.k))


@cache
def _threads() -> Any:
    return author_threads(_at_hand("text/newsgroups20.parquet"))


@world("graph, authors and threads", "graph", cells(8429, 20))
def threads(setting: Setting, rng: np.random.Generator) -> Items:
    """Authors and threads in 20 Newsgroups."""
    found = _threads()
    return with_hidden(found.edges, found.classes, setting.k, rng)


#: Sets that are read alike: name, kind, training items, classes, source.
_TABLES: tuple[tuple[str, str, int, int, Source], ...] = (
    ("Reuters", "counts", 3000, 8, partial(_texts, "reuters_r8.parquet")),
    ("20 Newsgroups", "counts", 3000, 20, partial(_texts, "newsgroups20.parquet")),
    ("House Votes", "binary", 300, 2, partial(_uci, "house_votes")),
    ("Tic Tac Toe", "binary", 600, 2, partial(_uci, "tic_tac_toe")),
    ("Hepatitis", "binary", 100, 2, partial(_uci, "hepatitis")),
    ("Breast Cancer, recurrence", "binary", 200, 2, partial(_uci, "breast_cancer")),
    ("Breast Cancer, Wisconsin", "binary", 400, 2, partial(_uci, "breast_cancer_wisconsin")),
    ("Balance Scale", "binary", 400, 2, partial(_uci, "balance_scale")),
)
#: Crowds: name, tasks, classes.
_CROWDS = (
    ("weather_amt", 300, 5),
    ("sentiment_amt", 500, 2),
    ("entities_in", 2040, 2),
    ("entailment", 800, 2),
    ("relevance_trec", 19033, 2),
    ("relevance_5", 20232, 4),
    ("web_search", 2665, 5),
    ("sentiment_products", 1000, 2),
    ("adult", 11040, 4),
    ("faces", 584, 4),
    ("dogs", 807, 4),
)

for _name, _kind, _n, _k, _source in _TABLES:
    world(_name, _kind, cells(_n, _k))(partial(split, _source))
for _name, _n, _k in _CROWDS:
    world(f"crowd {_name}", "votes", (Setting(_n, _k, errors="own", share=0.0),))(
        partial(_voted, _name)
    )
