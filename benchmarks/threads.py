"""A real user-item graph that hides in 20 Newsgroups: authors, threads, and the threads' groups.

Source: K. Lang, "NewsWeeder: Learning to filter netnews", ICML 1995; 20 Newsgroups, by-date split,
free for research (http://qwone.com/~jason/20Newsgroups/; ``sklearn.datasets.fetch_20newsgroups``
fetches it, ``remove=()`` keeps the headers that are read here).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.errors import DataError

_REPLY = re.compile(r"^\s*re\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Threads:
    """A graph of authors and threads.

    Attributes:
        edges: ``(threads, authors)`` ones where an author posted in a thread.
        classes: ``(threads,)`` true group of each thread, 0 to 19.
        names: ``(20,)`` names of the groups.
        authors: ids of the users.
        threads: ids of the items, group and subject.
    """

    edges: sparse.csr_array
    classes: np.ndarray
    names: np.ndarray
    authors: np.ndarray
    threads: np.ndarray

    @property
    def degree(self) -> np.ndarray:
        """``(threads,)`` number of authors of each thread."""
        return np.diff(self.edges.indptr)


def author_threads(source: Any) -> Threads:
    """Users are authors (``From:``), items are threads (``Subject:`` without ``Re:``) in a group.

    Args:
        source: path of a Parquet or CSV table, or a data frame, with columns ``text`` (a message
            with its headers) and ``label`` (its group).

    Raises:
        DataError: no such columns.
    """
    if isinstance(source, pd.DataFrame):
        frame = source
    else:
        path = Path(source)
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    lacking = {"text", "label"} - set(frame.columns)
    if lacking:
        raise DataError(f"source: the table lacks the columns {sorted(lacking)}")
    author = [_header(text, "From") for text in frame["text"]]
    subject = [_subject(_header(text, "Subject")) for text in frame["text"]]
    thread = [f"{group}|{words}" for group, words in zip(frame["label"], subject, strict=True)]
    authors, user = np.unique(author, return_inverse=True)
    threads, first, item = np.unique(thread, return_index=True, return_inverse=True)
    edges = sparse.coo_array((np.ones(len(item)), (item, user)), shape=(len(threads), len(authors)))
    once = edges.tocsr()
    once.data[:] = 1
    names, classes = np.unique(frame["label"].to_numpy()[first].astype(str), return_inverse=True)
    return Threads(once, classes, names, authors, threads)


def _header(text: str, name: str) -> str:
    found = re.search(rf"^{name}:(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _subject(words: str) -> str:
    while (shorter := _REPLY.sub("", words)) != words:
        words = shorter
    return words.strip().lower()
