"""How a text file of cells is written: separator, decimal sign, encoding."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from nbmodels.errors import DataError

#: Separators that spreadsheets write.
_SEPARATORS = ",;\t|"

#: Rows by which the separator is recognised.
_FIRST_ROWS = 20

#: First line by which a spreadsheet knows the separator; it is no row.
_NAMED = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE | re.DOTALL)

#: First bytes of workbooks, new and old.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")

#: First bytes by which an encoding is known.
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

#: Bytes that no text has, and how many of the first ones are looked at.
_NO_TEXT, _START = rb"[\x01-\x08\x0e-\x1f]", 4096

#: Encoding of text files that are not UTF-8, as Windows writes them in Western countries.
_WINDOWS = "cp1252"

#: A number with a decimal comma, and one that may have points between thousands, too.
_COMMA = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+"
_NUMBER = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?"


@dataclass(frozen=True)
class Dialect:
    """How cells are written.

    Attributes:
        separator: sign between the cells of a row.
        decimal: sign before decimals.
        encoding: ``"utf-8"``; ``"utf-8-sig"`` or ``"utf-16"`` for a file that begins with a byte
            order mark, by which spreadsheets know it; or one that was named.
        skipped: lines before the names of the columns: one that names the separator (``sep=;``).
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    skipped: int = 0

    @classmethod
    def of_suffix(cls, suffix: str) -> Dialect:
        """What a new file is written in."""
        return cls("\t" if suffix.lower() == ".tsv" else ",")

    @classmethod
    def of_file(cls, path: Path, encoding: str = "utf-8") -> Dialect:
        """By the first rows of a file; its decimal sign is a point so far.

        The separator is the one that a first line names (``sep=;``), else that which cuts all of
        them into most cells, of equally many the usual one of such files.

        Args:
            path: of the file.
            encoding: of a file that does not begin with a byte order mark.

        Raises:
            DataError: a workbook under another name.
            UnicodeError: another encoding.
        """
        with path.open("rb") as file:
            start = file.read(4)
        if start.startswith(_WORKBOOKS):
            raise DataError(f"FILE: {path} is a workbook, not a text file; save it as CSV UTF-8")
        marked = (name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark))
        encoding = next(marked, encoding)
        with path.open(encoding=encoding, newline="") as text:
            named = _NAMED.fullmatch(text.readline())
        if named is not None:
            return cls(named[1], encoding=encoding, skipped=1)
        usual = cls.of_suffix(path.suffix).separator
        widths = {sign: _widths(path, sign, encoding) for sign in (usual, *_SEPARATORS)}
        even = {sign: found for sign, found in widths.items() if len(set(found)) == 1}
        among = even if any(found[0] > 1 for found in even.values()) else widths
        best = max(among, key=lambda sign: among[sign][0] if among[sign] else 0)
        return cls(best, encoding=encoding)


def decimal_sign(cells: pd.DataFrame, separator: str) -> str:
    """The decimal sign of a table: a comma where it separates no cells and numbers have one.

    Args:
        cells: as text.
        separator: sign between the cells of a row.
    """
    if separator == ",":
        return "."
    columns = (cells.iloc[:, j].str.strip() for j in range(cells.shape[1]))
    return "," if any(column.str.fullmatch(_COMMA).any() for column in columns) else "."


def with_decimal_commas(column: pd.Series) -> pd.Series:
    """A column that pandas read as text, with points as decimal signs where numbers had commas.

    Points between thousands go; where all known cells are numbers, it becomes one of numbers.

    Args:
        column: cells of a table with decimal commas, null where missing.
    """
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    text = column.str.strip()
    if not text.str.fullmatch(_COMMA).any():
        return column
    plain = text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    found = column.where(~text.str.fullmatch(_NUMBER).fillna(False).astype(bool), plain)
    numbers = pd.to_numeric(found, errors="coerce")
    return found if (numbers.isna() & found.notna()).any() else numbers


def check_encoding(name: str) -> None:
    """Raises: DataError: no encoding of text has this name."""
    try:
        "a".encode(name)
    except LookupError as error:
        raise DataError(
            f"encoding: there is no encoding {name!r}; usual ones are cp1252, latin-1 and utf-16"
        ) from error


def other_encoding(path: Path) -> str:
    """What is wrong with a file that is not UTF-8, and what to do, by its first such word."""
    content = path.read_bytes()
    if re.search(_NO_TEXT, content[:_START]):
        return "is not a table: it holds no text"
    for number, line in enumerate(content.splitlines(), 1):
        if b"\x00" in line:
            return (
                "is not in UTF-8; it may be UTF-16: add --encoding utf-16-le, or save it as CSV "
                "UTF-8"
            )
        word = _not_utf_8(line)
        if word is None:
            continue
        save = "by --encoding, or save it as CSV UTF-8"
        try:
            read = word.decode(_WINDOWS)
        except UnicodeDecodeError:
            return f"is not in UTF-8; line {number} has {word!r}; name its encoding {save}"
        return (
            f"is not in UTF-8; line {number} would have {read!r} in the encoding of Windows in "
            f"Western countries: if that is right, add --encoding {_WINDOWS}, else name another "
            f"encoding {save}"
        )
    return "is not in UTF-8; save it as CSV UTF-8"


def _not_utf_8(line: bytes) -> bytes | None:
    """The first word that is not UTF-8."""
    for word in re.split(rb"[,;\t|\s]", line):
        try:
            word.decode("utf-8")
        except UnicodeDecodeError:
            return word
    return None


def _widths(path: Path, separator: str, encoding: str) -> list[int]:
    """Cells of the first rows, without empty ones."""
    with path.open(encoding=encoding, newline="") as file:
        try:
            rows = csv.reader(file, delimiter=separator)
            return [len(row) for row in itertools.islice(rows, _FIRST_ROWS) if row]
        except csv.Error:
            return []
