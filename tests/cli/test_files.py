"""Tables, text and planted noise: the pieces of the command line."""

import os
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbmodels.cli.dialect import Dialect
from nbmodels.cli.files import read_table, replacing, write_table
from nbmodels.cli.wording import worded
from nbmodels.data.labels import LabelColumn, spelt_as
from nbmodels.data.text import text_features
from nbmodels.datasets import corrupt, flip_noise, noisy_digits, uniform_noise
from nbmodels.diagnostics.checks import remedies
from nbmodels.errors import DataError


def half_way(target):
    with replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half way")


def test_a_write_that_fails_leaves_nothing(here):
    target = here / "new.csv"
    with pytest.raises(RuntimeError, match="half way"):
        half_way(target)
    assert os.listdir() == ["animals.csv"]
    target.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        half_way(target)
    assert target.read_text() == "old"
    assert sorted(os.listdir()) == ["animals.csv", "new.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_come_back_as_they_were(here, suffix):
    text = 'a,b,c\n007,1.10,x y\n,NA,"q,\nr"\n'
    Path("in.csv").write_text(text)
    table = read_table(Path("in.csv"))
    assert table.frame["b"].isna().tolist() == [False, True]
    added = pd.DataFrame({"new": [1, 2]})
    write_table(table, added, Path(f"out{suffix}"))
    back = read_table(Path(f"out{suffix}"))
    assert list(back.frame.columns) == ["a", "b", "c", "new"]
    if suffix != ".parquet":
        assert back.raw["a"].tolist() == ["007", ""]
        assert back.raw["b"].tolist() == ["1.10", "NA"]
        assert back.raw["c"].tolist() == ["x y", "q,\nr"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["01", "2", "", "10"], ["01", "2", None, "10"]),
        (["true", " false", "unsure ", "NA"], ["true", "false", "unsure", None]),
        (["true", "false", "true", ""], ["true", "false", "true", None]),
        (["1.50", "2", "10", "9"], ["1.50", "2", "10", "9"]),
        (["1", "2", "", "10"], [1.0, 2.0, None, 10.0]),  # types lose nothing here
    ],
)
def test_labels_are_read_as_they_are_spelt(here, cells, expected):
    pd.DataFrame({"a": 1, "label": cells}).to_csv("in.csv", index=False)
    table, blanks = read_table(Path("in.csv")).with_labels("label", None, "gone")
    found = table.frame["label"].astype(object)
    assert [None if pd.isna(v) else v for v in found] == expected
    assert blanks == sum(v != v.strip() for v in cells)
    assert table.cells["label"].tolist() == cells


def test_labels_of_parquet_keep_their_types(here):
    frame = pd.DataFrame(
        {
            "number": pd.array([3, None, 10], "Int32"),
            "price": [Decimal("1.50"), None, Decimal("2.00")],
            "kind": pd.Categorical(["b", "a", "b"], categories=["b", "a"]),
            "text": ["b ", None, "01"],
        }
    )
    frame.to_parquet("in.parquet")
    table, blanks = read_table(Path("in.parquet")).with_labels(*frame.columns)
    assert read_table(Path("in.parquet")).frame["price"].dtype == float
    assert table.frame["number"].dropna().tolist() == [3, 10]
    assert table.frame["price"].tolist() == frame["price"].tolist()
    assert list(table.frame["kind"].cat.categories) == ["b", "a"]
    assert table.frame["text"].dropna().tolist() == ["b", "01"]
    assert blanks == 1


def test_classes_in_text_are_sorted_as_numbers():
    numbers = LabelColumn.of(pd.Series(["10", "9", "01", None, "01", "9", "10"]), "label")
    assert numbers.names.tolist() == ["01", "9", "10"]
    assert numbers.codes.tolist() == [2, 1, 0, -1, 0, 1, 2]
    text = LabelColumn.of(pd.Series(["b", "10", "9", "b", "10", "9"]), "label")
    assert text.names.tolist() == ["10", "9", "b"]


def test_labels_in_the_spelling_of_the_classes():
    text = np.array(["1", "2.0", "TRUE", "x", None, "X", "7"], object)
    found = spelt_as(text, np.array(["01", "2", "true", "x", "7", "07"]))
    assert found.tolist() == ["01", "2", "true", "x", None, "X", "7"]
    # neither 07 nor 7.0 is meant for sure
    assert spelt_as(np.array(["7."], object), np.array(["07", "7.0"])).tolist() == ["7."]


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("the chains have not mixed; take more draws and warm-up", "ask for more draws of each"),
        ("as few as 62 effective ones; take more draws, or thin", "of each chain (--draws)"),
        ("check it, or give partial=True if the last rows", "or give --partial if the last"),
        (f"Try {remedies.AUDIT}, or {remedies.CROSS_FIT}.", ", or --training cross_fit."),
        (
            "Add trusted labels, or a stronger prior on the diagonal of the noise matrix",
            "Check some rows by hand (--checked)",
        ),
        (f"compare {remedies.AUTO}", "compare --estimator auto"),
        (f"Try {remedies.AUDIT}.", "(nbmodels audit plan), which --checked then takes."),
        ("drop it, or give it as groups= where", "as --groups where"),
    ],
)
def test_advice_names_options(sentence, shown):
    assert shown in worded(sentence)
    assert not re.search("=|take more", worded(sentence))


def test_planted_noise_is_what_was_asked_for():
    rng = np.random.default_rng(0)
    matrix = flip_noise(4, {(0, 1): 0.3, (2, 3): 0.1}, rate=0.06)
    np.testing.assert_allclose(matrix.sum(0), 1)
    assert matrix[1, 0] == pytest.approx(0.3 + 0.7 * 0.02)
    y = rng.integers(0, 4, 40_000)
    counts = np.zeros((4, 4))
    np.add.at(counts, (corrupt(y, matrix, rng), y), 1)
    np.testing.assert_allclose(counts / counts.sum(0), matrix, atol=0.015)
    np.testing.assert_array_equal(corrupt(y, np.eye(4), rng), y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: corrupt([0, 4], np.eye(4), r), "y: row 1 is 4"),
        (lambda r: corrupt([0, 1], np.ones((2, 2)), r), "matrix"),
        (lambda r: corrupt([0.5, 1], np.eye(2), r), "y: expected"),
        (lambda r: flip_noise(3, {(1, 1): 0.2}), "flips"),
        (lambda r: flip_noise(3, {(1, 0): 0.7, (1, 2): 0.7}), "add up to 1.4"),
        (lambda r: uniform_noise(3, 1.5), "rate"),
    ],
)
def test_noise_refuses(call, words):
    with pytest.raises(DataError, match=words):
        call(np.random.default_rng(0))


def test_digits_are_split_and_named():
    data = noisy_digits(3)
    assert len(data.x) + len(data.x_test) == 1797
    assert 0.1 < (data.given != data.truth).mean() < 0.2
    again = noisy_digits(3)
    np.testing.assert_array_equal(data.given, again.given)
    assert (noisy_digits(4).given != data.given).any()


def test_text_features():
    found = text_features(["a tale of cats", None, "cats and dogs"])
    assert found.x.shape[0] == 3
    assert found.x[1].nnz == 0
    assert "cats" in set(found.words)
    with pytest.raises(DataError, match="text: row 1 is 3"):
        text_features(["a", 3])
    with pytest.raises(DataError, match="no words"):
        text_features(["", None])


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_separators_and_decimal_commas_of_spreadsheets_are_read(tmp_path, sign):
    path = tmp_path / "table.csv"
    cells = [
        ["Name, Vorname", " Größe", "Preis", "Fläche", "Alter", "Text", "Note"],
        ["Müller, Eva", "1,5", "1.250,50", "?", "7", '"a; b\n""c"""', "1,0"],
        ["Groß, Jan", "2,25", "999,5", "3,5", "8", '"zwei\n\nZeilen"', "2,0"],
        ["", "", "2.000", "4,25", "", "", ""],
    ]
    text = "\r\n".join(map(sign.join, cells)) + "\r\n\r\n"
    path.write_text(text, encoding="utf-8-sig", newline="")
    table, _ = read_table(path).with_labels("Note")
    assert table.dialect == Dialect(sign, ",", "utf-8-sig")
    frame = table.frame
    assert list(frame) == ["Name, Vorname", "Größe", "Preis", "Fläche", "Alter", "Text", "Note"]
    assert frame["Größe"].dropna().tolist() == [1.5, 2.25]
    assert frame["Preis"].tolist() == [1250.5, 999.5, 2000]
    assert frame["Fläche"].tolist() == ["?", "3.5", "4.25"]  # a marker is judged where it is used
    assert frame["Text"].dropna().tolist() == ['a; b\n"c"', "zwei\n\nZeilen"]
    assert frame["Note"].dropna().tolist() == ["1,0", "2,0"]  # labels as they are spelt

    # and written so, for the spreadsheet that wrote it
    out = tmp_path / "out.csv"
    write_table(table, pd.DataFrame({"p": [0.25, 0.5, 1.0]}), out)
    again = read_table(out)
    assert again.dialect == table.dialect
    assert again.frame["p"].tolist() == [0.25, 0.5, 1.0]
    assert again.raw["Preis"].tolist() == table.raw["Preis"].tolist()
    write_table(table, pd.DataFrame({"p": [0.25, 0.5, 1.0]}), tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().splitlines()[-1].endswith("\t1.0")


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_line_that_names_the_separator_is_no_row(tmp_path, first, encoding):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\na;label\n1,5;x\n2;y\n", encoding=encoding, newline="")
    table = read_table(path)
    assert list(table.frame) == ["a", "label"]
    assert table.frame["a"].tolist() == [1.5, 2]
    assert table.dialect.separator == ";"


def test_points_stay_decimal_signs_where_no_number_has_a_comma(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size;seen;label\n1.250;31.05.2024;a\n2.5;01.06.2024;b\n")
    frame = read_table(path).frame
    assert frame["size"].tolist() == [1.25, 2.5]
    assert frame["seen"].tolist() == ["31.05.2024", "01.06.2024"]
    path.write_text("size;seen;label\n1,250;31.05.2024;a\n2,5;01.06.2024;b\n")
    frame = read_table(path).frame
    assert frame["size"].tolist() == [1.25, 2.5]
    assert frame["seen"].tolist() == ["31.05.2024", "01.06.2024"]


def test_commas_between_cells_are_no_decimal_signs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('text,size,label\n"a;b","1,5",a\n"c;d","2,5",b\n')
    table = read_table(path)
    assert table.dialect == Dialect()
    assert table.frame["size"].tolist() == ["1,5", "2,5"]


def test_a_workbook_under_another_name_is_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(DataError, match="is a workbook, not a text file; save it as CSV UTF-8"):
        read_table(path)
    path.rename(tmp_path / "table.xlsx")
    with pytest.raises(DataError, match="save a workbook as CSV UTF-8"):
        read_table(tmp_path / "table.xlsx")


CELLS = "Größe;label\n1,5;mäßig\n2;groß\n"


@pytest.mark.parametrize(
    ("encoding", "advice"),
    [
        ("cp1252", "line 1 would have 'Größe' .* add --encoding cp1252, else .* CSV UTF-8"),
        ("utf-16-le", "it may be UTF-16: add --encoding utf-16-le, or save it as CSV UTF-8"),
        ("cp437", "name another encoding by --encoding, or save it as CSV UTF-8"),
        ("mac_roman", "name another encoding by --encoding|name its encoding by --encoding"),
    ],
)
def test_a_table_in_another_encoding_is_read_once_it_is_named(tmp_path, encoding, advice):
    path, out = tmp_path / "table.csv", tmp_path / "out.csv"
    path.write_bytes(CELLS.encode(encoding))
    with pytest.raises(DataError, match=rf"is not in UTF-8; .*{advice}"):
        read_table(path)
    table = read_table(path, encoding)
    assert table.dialect == Dialect(";", ",", encoding)
    assert list(table.frame) == ["Größe", "label"]
    assert table.frame["label"].tolist() == ["mäßig", "groß"]
    write_table(table, table.frame.iloc[:, :0], out)  # as it was read
    assert out.read_bytes() == path.read_bytes().replace(b"\r", b"")


def test_a_byte_order_mark_and_utf_8_are_known_by_themselves(tmp_path):
    path = tmp_path / "table.csv"
    for own, read in (("utf-16", "utf-16"), ("utf-8-sig", "utf-8-sig"), ("utf-8", "utf-8")):
        path.write_text(CELLS, encoding=own)
        for named in (None, "cp1252"):
            table = read_table(path, named)
            assert table.frame["label"].tolist() == ["mäßig", "groß"]
            assert table.dialect is not None
            assert table.dialect.encoding == read


def test_encodings_that_are_none_or_not_the_right_one_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(CELLS, encoding="cp1252")
    for name in ("cp1552", "rot13"):
        with pytest.raises(DataError, match=f"encoding: there is no encoding '{name}'; usual"):
            read_table(path, name)
    with pytest.raises(DataError, match=r"encoding: .* is not in ascii: 'ascii' codec"):
        read_table(path, "ascii")


@pytest.mark.parametrize("marker", ["n/a", "#N/A", "<NA>"])
def test_usual_markers_of_missing_cells_are_missing(tmp_path, marker):
    path = tmp_path / "table.csv"
    path.write_text(f"age,label\n1.5,a\n{marker},b\n")
    ages = read_table(path).frame["age"]
    assert ages.dtype == float
    assert ages.isna().tolist() == [False, True]
