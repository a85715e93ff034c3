"""Arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

TableFile = Annotated[Path, typer.Argument(metavar="FILE", help="Table: .csv, .tsv or .parquet.")]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the given labels.")]
Text = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of texts to learn from.")]
Features = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Columns to learn from.", show_default="all usable ones"),
]

Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that names what rows belong to (a patient, a film), whose labels may share an "
        "error.",
        show_default="near copies of rows belong together",
    ),
]

Checked = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Rows checked by hand, as nbmodels audit plan wrote them, filled in or in part; once "
        "for each such file.",
    ),
]

Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        "--item",
        metavar="COLUMN",
        help="With --worker: rows are votes of several annotators, on items that this column "
        "names.",
    ),
]
Worker = Annotated[
    str | None,
    typer.Option(
        "--worker",
        "--annotator",
        metavar="COLUMN",
        help="With --task: column that names the annotator who gave the label.",
    ),
]

Grades = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Of votes: labels are grades of an ordered scale, these from the lowest to the "
        "highest, with commas between them; or numbers, where they are numbers.",
    ),
]


class EstimatorName(StrEnum):
    """Estimators of a table."""

    naive_bayes = "naive_bayes"
    auto = "auto"


Estimator = Annotated[
    EstimatorName,
    typer.Option(
        help="Naive Bayes of the columns' kinds, or the likeliest of it, a regression and a forest "
        "of randomised trees, by held-out labels (auto)."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of text files that are not UTF-8, such as cp1252.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote.")]
Seed = Annotated[int, typer.Option(help="Seed of all randomness.", min=0, max=2**32 - 1)]
Draws = Annotated[
    int | None,
    typer.Option(
        help="Posterior draws of each of the chains, for the intervals; of votes those of "
        "--report.",
        min=10,
        max=100_000,
        show_default="200",
    ),
]


def column_names(features: str | None) -> list[str] | None:
    """Names out of a list with commas."""
    return None if features is None else [n.strip() for n in features.split(",") if n.strip()]
