"""Reading and writing of files: input cells are kept as they are, outputs are whole or absent."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbmodels.cli.dialect import (
    Dialect,
    check_encoding,
    decimal_sign,
    other_encoding,
    with_decimal_commas,
)
from nbmodels.errors import DataError

if TYPE_CHECKING:
    from nbmodels.cli.draws import Noise
    from nbmodels.diagnostics.confident_learning import SecondOpinion

#: Cells with one of these are missing. "None" is not among them: it may be the name of a class.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")

#: Kinds of tables.
SUFFIXES = (".csv", ".tsv", ".parquet")

#: Kinds of workbooks, which are not read.
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")

#: Files of a report, beside the corrected table.
REPORT = ("noise_matrix.csv", "noise_matrix.png", "posterior.nc")

#: Files of a report of annotators.
REPORT_OF_VOTES = (
    "annotators.csv",
    "annotators.png",
    "noise_matrices.csv",
    "noise_matrix.png",
    "posterior.nc",
)

#: The noise matrix by confident learning, where there are rows enough.
SECOND_OPINION = "second_opinion.csv"

#: All files that folders may get.
_FOLDERS = {*REPORT, *REPORT_OF_VOTES, SECOND_OPINION}


@dataclass(frozen=True)
class Table:
    """A table as it stands in a file.

    Attributes:
        path: where it came from.
        frame: its values, typed, null where missing.
        raw: what is written back: cells as text for CSV, an Arrow table for Parquet.
        dialect: how a text file is written; None for others.
    """

    path: Path
    frame: pd.DataFrame
    raw: Any
    dialect: Dialect | None = None

    @property
    def cells(self) -> pd.DataFrame:
        """What is written as CSV: cells as they stand there, or the values of Parquet."""
        return self.raw if isinstance(self.raw, pd.DataFrame) else self.frame

    def dialect_of(self, path: Path) -> Dialect:
        """How a file beside the table is written: as the table where that is a file of its kind."""
        own = self.dialect is not None and path.suffix.lower() == self.path.suffix.lower()
        return self.dialect if own and self.dialect else Dialect.of_suffix(path.suffix)

    def with_labels(self, *columns: str | None) -> tuple[Table, int]:
        """Columns of labels as they are spelt in the file, without blanks around them.

        Types would make 1 of ``01`` and True of ``true``; where they lose nothing, they stay.

        Args:
            columns: their names; those that are not there are left to others to refuse.

        Returns:
            the table, and how many of the labels have blanks around them.
        """
        frame, blanks = self.frame.copy(deep=False), 0
        for column in columns:
            if column in frame.columns:
                frame[column], count = _labels(self.raw[column], frame[column])
                blanks += count
        return replace(self, frame=frame), blanks

    def classes(self, column: str) -> set[str]:
        """Labels in a column, as text; none where there is no such column."""
        from nbmodels.data.labels import as_text

        found = as_text(self.frame[column]) if column in self.frame else ()
        return {name for name in found if name is not None}


def _labels(raw: Any, typed: pd.Series) -> tuple[pd.Series, int]:
    """A column of labels, and how many of its cells have blanks around them.

    Args:
        raw: the column as text of CSV, or of Parquet.
        typed: its values.
    """
    from nbmodels.data.labels import as_text

    of_text = isinstance(raw, pd.Series)
    column = raw if of_text else raw.to_pandas()
    cells = column.astype(object)
    bare = cells.map(lambda v: v.strip() if isinstance(v, str) else v)
    blanks = int((bare != cells)[cells.notna()].sum())
    if not of_text:
        return bare if blanks else column, blanks
    bare = bare.where(~bare.isin(MISSING), None)
    return (typed if np.array_equal(as_text(typed), as_text(bare)) else bare), blanks


def read_table(path: Path, encoding: str | None = None) -> Table:
    """Read a CSV, TSV or Parquet file.

    Args:
        path: of the file.
        encoding: of a text file that is not UTF-8.

    Raises:
        DataError: it is not there, or not such a table.
    """
    if encoding is not None:
        check_encoding(encoding)
    if not path.exists():
        raise DataError(f"FILE: there is no file {path}")
    if not path.is_file():
        raise DataError(f"FILE: {path} is not a file")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        save = "; save a workbook as CSV UTF-8" if suffix in _WORKBOOKS else ""
        raise DataError(f"FILE: {path} is neither .csv, .tsv nor .parquet{save}")
    try:
        table = _read_parquet(path) if suffix == ".parquet" else _read_text(path, encoding)
    except OSError as error:
        raise DataError(f"FILE: {path} cannot be read: {error.strerror or error}") from error
    if not len(table.frame):
        raise DataError(f"FILE: {path} has no rows")
    return table


def _read_text(path: Path, encoding: str | None) -> Table:
    """A text file: in UTF-8 where its bytes are, else in the encoding that is named."""
    try:
        return _read_csv(path, "utf-8")
    except UnicodeError as error:
        if encoding is None:
            raise DataError(f"FILE: {path} {other_encoding(path)}") from error
    try:
        return _read_csv(path, encoding)
    except UnicodeError as error:
        raise DataError(f"encoding: {path} is not in {encoding}: {error}") from error


def _read_csv(path: Path, encoding: str) -> Table:
    try:
        dialect = Dialect.of_file(path, encoding)
        options: dict[str, Any] = {
            "sep": dialect.separator,
            "index_col": False,
            "keep_default_na": False,
            "encoding": dialect.encoding,
            "skiprows": dialect.skipped,
        }
        # cells of a row longer than the header would be dropped
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            header = pd.read_csv(path, dtype=str, header=None, nrows=1, **options).iloc[0]
            raw = pd.read_csv(path, dtype=str, **options)
            dialect = replace(dialect, decimal=decimal_sign(raw, dialect.separator))
            options |= {"na_values": list(MISSING), "decimal": dialect.decimal}
            frame = pd.read_csv(path, low_memory=False, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"FILE: {path} is not a table: {reason}") from error
    _check_names(path, [name.strip() for name in header if name.strip()])
    if dialect.decimal == ",":
        frame = frame.apply(with_decimal_commas)
    names = raw.columns.str.strip()
    return Table(path, frame.set_axis(names, axis=1), raw.set_axis(names, axis=1), dialect)


def _read_parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        raw = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise DataError(f"FILE: {path} is not a Parquet table") from error
    _check_names(path, raw.column_names)
    typed = raw
    for j, column in enumerate(raw.schema):
        # as Python's objects they would be taken for categories
        if pyarrow.types.is_decimal(column.type):
            typed = typed.set_column(j, column.name, raw.column(j).cast(pyarrow.float64()))
    return Table(path, typed.to_pandas(ignore_metadata=True), raw)


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Raises: DataError: two columns of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"FILE: {path} has two columns of the name {twice[0]!r}")


def check_output(
    path: Path,
    *,
    overwrite: bool,
    name: str = "--out",
    folder: bool = False,
    others: Mapping[str, Path | None] | None = None,
) -> None:
    """Refuse, before any work, an output that exists or cannot be written.

    Args:
        path: of the output.
        overwrite: whether it may replace what is there.
        name: of the argument, for messages.
        folder: whether the output is a folder.
        others: other files of the command by what they are; none of them is ever overwritten.

    Raises:
        DataError: the message names the argument.
    """
    parts = [path / part for part in _FOLDERS] if folder else []
    for what, other in (others or {}).items():
        for one in (path, *parts):
            if other is not None and _same(one, other):
                raise DataError(f"{name}: {one} is {what}; choose another name")
    if path.exists() and path.is_dir() != folder:
        found, expected = ("file", "folder") if folder else ("folder", "file")
        raise DataError(f"{name}: {path} is a {found}; expected a {expected}")
    if path.exists() and not overwrite:
        raise DataError(f"{name}: {path} exists; choose another, or add --overwrite")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise DataError(f"{name}: there is no directory {parent}")
    try:
        # the only sure way to know; permissions do not reveal full or read-only disks
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise DataError(f"{name}: cannot write to {parent}: {error.strerror}") from error


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever name."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` if all goes well, and is gone if not."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp's files are private; give the mode that an ordinary new file would have
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(
    frame: pd.DataFrame, path: Path, dialect: Dialect, *, index: bool = False, **options: Any
) -> None:
    """Write a frame as a text file of cells, with options of pandas' ``to_csv``."""
    sep, decimal, encoding = dialect.separator, dialect.decimal, dialect.encoding
    frame.to_csv(path, index=index, sep=sep, decimal=decimal, encoding=encoding, **options)


def write_table(table: Table, added: pd.DataFrame, path: Path) -> None:
    """Write the input's rows and columns, unchanged, and then the new columns.

    Args:
        table: the input.
        added: the new columns, one row for each row of the input.
        path: of the output.
    """
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix != ".parquet":
            both = pd.concat([table.cells, added.set_axis(table.cells.index)], axis=1)
            write_csv(both, temporary, table.dialect_of(path))
            return
        import pyarrow
        import pyarrow.parquet

        arrow = table.raw
        if isinstance(arrow, pd.DataFrame):
            arrow = pyarrow.Table.from_pandas(table.frame, preserve_index=False)
        for name in added:
            column = pyarrow.Array.from_pandas(added[name])
            arrow = arrow.append_column(str(name), column)
        pyarrow.parquet.write_table(arrow, temporary)


@contextlib.contextmanager
def replacing_files(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files move into ``folder`` if all goes well, and are gone if not.

    Args:
        folder: where they are to be; made if it is not there.
    """
    parent = folder.absolute().parent
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{folder.name}-") as name:
        made = Path(name) / "report"
        made.mkdir()
        yield made
        if not folder.exists():
            made.rename(folder)
            return
        for one in made.iterdir():
            one.replace(folder / one.name)


def write_report(
    folder: Path,
    noise: Noise,
    posterior: Any,
    *,
    corrected: pd.DataFrame | None = None,
    second: SecondOpinion | None = None,
    dialect: Dialect | None = None,
) -> None:
    """Write all files of a report, or none.

    Args:
        folder: of the report; made if it is not there.
        noise: the noise matrix with intervals.
        posterior: ArviZ ``DataTree``.
        corrected: table of corrected labels.
        second: the noise matrix by confident learning.
        dialect: how its tables are written; as ``.csv`` usually is by default.
    """
    from nbmodels.posterior.plots import noise_heat_map

    write = partial(write_csv, dialect=dialect or Dialect(), float_format="%.6f")
    with replacing_files(folder) as made:
        figure, cells = noise_heat_map(noise.mean, noise.low, noise.high, noise.names)
        write(cells, made / "noise_matrix.csv")
        figure.savefig(made / "noise_matrix.png", dpi=150, bbox_inches="tight")
        posterior.to_netcdf(made / "posterior.nc")
        if corrected is not None:
            write(corrected, made / "corrected.csv")
        if second is not None:
            write(second.theirs, made / SECOND_OPINION, index=True)


def write_report_of_votes(
    folder: Path, workers: pd.DataFrame, posterior: Any, dialect: Dialect
) -> None:
    """Write all files of a report of annotators, or none.

    Args:
        folder: of the report; made if it is not there.
        workers: the annotators' report, see :meth:`nbmodels.DawidSkene.worker_report`.
        posterior: ArviZ ``DataTree``.
        dialect: how its tables are written.
    """
    from nbmodels.cli.draws import annotators_matrices
    from nbmodels.posterior import plots

    write = partial(write_csv, dialect=dialect, float_format="%.6f")
    with replacing_files(folder) as made:
        joined = workers["copies"].map(lambda names: "; ".join(map(str, names)))
        listed = workers.assign(copies=joined)
        write(listed, made / "annotators.csv")
        figure, _ = plots.annotators_reported(workers)  # the same numbers as in the table
        figure.savefig(made / "annotators.png", dpi=150, bbox_inches="tight")
        write(annotators_matrices(posterior), made / "noise_matrices.csv")
        figure, _ = plots.noise_matrix(posterior)
        figure.savefig(made / "noise_matrix.png", dpi=150, bbox_inches="tight")
        posterior.to_netcdf(made / "posterior.nc")
