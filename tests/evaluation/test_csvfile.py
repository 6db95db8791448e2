"""Reading a submission: every kind of bad file gives a reason that a person can act on."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlab.evaluation import (
    InvalidSubmission,
    NoSubmission,
    boolean,
    number,
    number_within,
    read_answers,
    read_submission,
    text,
)
from pytest_mlab.evaluation.csvfile import Row, normal_id

IDS = ["1461", "1462", "1463", "1464"]
GOOD = "Id,SalePrice\n1461,1.5\n1462,2\n1463,3e5\n1464,-4\n"


def read(path: Path, **changes: object) -> dict[str, Row]:
    options: dict[str, object] = {
        "key": "Id",
        "columns": {"SalePrice": number},
        "ids": IDS,
        "max_mb": 1,
    }
    return read_submission(path, **{**options, **changes})  # type: ignore[arg-type]


@pytest.fixture
def submission(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "submission.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "Id,SalePrice\r\n1464,-4\r\n1461,1.5\r\n1463,300000\r\n1462,2.0",
        '"Id","SalePrice"\n"1463","3e5"\n1464.0, -4\n 01461 ,1.5\n\n+1462,2\n\n',
        "SalePrice, Id\n1.5,1461\n2,1462\n3e5,1463\n-4,1464\n",
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r"),
        GOOD.replace("1461,", '"1461\n",'),
        GOOD.replace("1.5", "1.5\u00a0"),
    ],
    ids=[
        "as expected",
        "another order, CRLF",
        "quotes, blanks, 1464.0, blank lines",
        "columns swapped",
        "byte order mark",
        "CR alone",
        "a line break in quotes",
        "a no-break space",
    ],
)
def test_good_files_read_alike(
    submission: Callable[[str | bytes], Path], content: str | bytes
) -> None:
    assert read(submission(content)) == {
        "1461": {"SalePrice": 1.5},
        "1462": {"SalePrice": 2.0},
        "1463": {"SalePrice": 300000.0},
        "1464": {"SalePrice": -4.0},
    }


BAD: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "submission.csv is empty"),
    "blank": (" \n\n", "submission.csv is empty"),
    "header only": ("Id,SalePrice\n", "has a header but no rows"),
    "no header": (
        "1461,1\n1462,2\n",
        "has no column Id, SalePrice: found 1461, 1; expected the columns Id, SalePrice",
    ),
    "column missing": ("Id,Price\n1461,1\n", "has no column SalePrice: found Id, Price"),
    "column twice": (
        "Id,SalePrice,SalePrice\n1461,1,1\n",
        "has the column SalePrice more than once",
    ),
    "index": (
        ",Id,SalePrice\n0,1461,1\n",
        "has the unexpected column '' (no name) (an index? pandas writes none",
    ),
    "extra column": (
        "Id,SalePrice,Note\n1461,1,x\n",
        "has the unexpected column Note; expected the columns Id,",
    ),
    "semicolons": (GOOD.replace(",", ";"), "is separated by ';'; expected commas"),
    "tabs": (GOOD.replace(",", "\t"), r"is separated by '\t'; expected commas"),
    "ragged": (GOOD + "1465\n1466,1,2\n", "row 5 has 1, row 6 has 3; expected 2 values"),
    "duplicate ids": (
        GOOD + "1461.0,7\n1462,8\n1461,9\n",
        "duplicate ids in column Id: '1461' (3 times), '1462' (2 times)",
    ),
    "missing ids": (
        "Id,SalePrice\n1462,1\n",
        "lacks ids in column Id: '1461', '1463', '1464' (1 rows found, 4 expected)",
    ),
    "extra ids": (
        GOOD + "1465,1\nx,2\n",
        "has unknown ids in column Id: '1465' in row 5, 'x' in row 6 (6 rows found, 4",
    ),
    "other ids": (
        "Id,SalePrice\n1,1\n2,1\n3,1\n4,1\n",
        (
            "lacks ids in column Id: '1461', '1462', '1463' and 1 more; unknown ids: '1' in row 1,"
            " '2' in row 2, '3' in row 3 and 1 more (4 rows found, 4 expected)"
        ),
    ),
    "nan": (
        GOOD.replace("1.5", "nan"),
        "bad values in column SalePrice: 'nan' in row 1 (Id 1461); expected a finite number",
    ),
    "infinite": (GOOD.replace("-4", "-inf"), "'-inf' in row 4 (Id 1464)"),
    "too large": (GOOD.replace("-4", "1e999"), "'1e999' in row 4"),
    "missing value": (GOOD.replace("1.5", ""), "'' in row 1"),
    "words": (
        "Id,SalePrice\n1461,a\n1462,$2\n1463,1_0\n1464,'4'\n",
        (
            "'a' in row 1 (Id 1461), '$2' in row 2 (Id 1462), '1_0' in row 3 (Id 1463) and 1 more;"
            " expected a finite"
        ),
    ),
    "latin-1": (GOOD.encode() + b"caf\xe9,1\n", "is not UTF-8 text: byte 0xe9 in line 6"),
    "binary": (b"\x80\x04\x95" + bytes(100), "is not UTF-8 text: byte 0x80 in line 1"),
    "zeros": (b"Id,SalePrice\n" + bytes(100), "is binary: a NUL byte in line 2"),
    "open quote": (
        'Id,SalePrice\n1461,"1\n1462,2\n',
        "is not a csv file: line 3: unexpected end of data",
    ),
    "long field": (
        "Id,SalePrice\n1461," + "9" * 200_000 + "\n",
        "is not a csv file: line 2: field larger than",
    ),
    "no ASCII": (
        "Id,SalePrice\n1461,\u0665\u2013\n1462,2\n1463,3\n1464,4\n",
        r"'\u0665\u2013' in row 1",
    ),
    "UTF-16": (GOOD.encode("utf-16"), "is not UTF-8 text: byte 0xff in line 1"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "is binary: a NUL byte in line 1"),
    "compressed": (gzip.compress(GOOD.encode()), "is not UTF-8 text: byte 0x8b in line 1"),
    "JSON": ('{"Id": [1461]}', "has a header but no rows"),
    "a page": ("<html><body>x</body></html>", "has a header but no rows"),
    "a table of Markdown": (f"|{GOOD.replace(',', '|')}|", "is separated by '|'"),
    "a comment": (f"# made by hand\n{GOOD}", "has no column Id, SalePrice: found # made"),
    "two headers": (f"Id,SalePrice\n{GOOD}", "unknown ids in column Id: 'Id' in row 1"),
    "mark and semicolons": ("\ufeff" + GOOD.replace(",", ";"), "is separated by ';'"),
    "another case": (GOOD.replace("Id", "ID"), "has no column Id: found ID, SalePrice"),
    "a last comma": (GOOD.replace("\n", ",\n"), "has the unexpected column '' (no name)"),
    "thousands": (GOOD.replace("3e5", '"300,000"'), "'300,000' in row 3 (Id 1463)"),
    "a decimal comma": (GOOD.replace("1.5", '"1,5"'), "'1,5' in row 1"),
    "a percentage": (GOOD.replace("2\n", "2%\n"), "'2%' in row 2"),
    "hexadecimal": (GOOD.replace("2\n", "0x2\n"), "'0x2' in row 2"),
    "a boolean": (GOOD.replace("2\n", "True\n"), "'True' in row 2"),
    "a typographic minus": (GOOD.replace("-4", "\u22124"), r"'\u22124' in row 4"),
    "form feeds": (GOOD.replace("\n", "\n\f"), "row 5 has 1; expected 2 values"),
    "half a character": (GOOD.encode() + b"\xed\xa0\x80,1\n", "byte 0xed in line 6"),
    "long value": (GOOD.replace("1.5", "x" * 300), "'" + "x" * 37 + "...' in row 1"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_invalid(submission: Callable[[str | bytes], Path], kind: str) -> None:
    content, reason = BAD[kind]
    with pytest.raises(InvalidSubmission) as caught:
        read(submission(content))
    assert reason in str(caught.value)
    assert str(caught.value).isascii()
    assert "\n" not in str(caught.value)


def test_no_file_is_no_submission(tmp_path: Path) -> None:
    with pytest.raises(NoSubmission, match=r"submission\.csv is missing"):
        read(tmp_path / "submission.csv")
    (tmp_path / "file").touch()
    with pytest.raises(NoSubmission):
        read(tmp_path / "file" / "submission.csv")


@pytest.mark.parametrize("target", ["secret.csv", "nowhere"])
def test_a_link_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret.csv").write_text(GOOD)
    (tmp_path / "submission.csv").symlink_to(target)
    with pytest.raises(InvalidSubmission, match="is a symbolic link; expected a regular file"):
        read(tmp_path / "submission.csv")


def test_a_directory_or_pipe_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "submission.csv").mkdir()
    with pytest.raises(InvalidSubmission, match="is a directory; expected a regular file"):
        read(tmp_path / "submission.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidSubmission, match="is a pipe, socket or device"):
        read(tmp_path / "pipe")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(InvalidSubmission, match=r"has 1073\.7 MB; expected at most 100 MB"):
        read(path, max_mb=100)


def test_a_nameless_index_can_be_the_key(submission: Callable[[str | bytes], Path]) -> None:
    rows = read(
        submission(",0,1\n1,0.25,0.75\n0,1,0\n"),
        key="",
        columns={"0": number, "1": number},
        ids=["0", "1"],
    )
    assert list(rows.items()) == [("0", {"0": 1.0, "1": 0.0}), ("1", {"0": 0.25, "1": 0.75})]
    with pytest.raises(InvalidSubmission, match=r"lacks ids in column '' \(no name\): '2'"):
        read(submission(",0\n1,0.25\n0,1\n"), key="", columns={"0": number}, ids=["0", "1", "2"])


@pytest.mark.parametrize(
    ("found", "normal"),
    [
        ("1461", "1461"),
        ("1461.0", "1461"),
        ("1461.", "1461"),
        (" 0012 ", "12"),
        ("000", "0"),
        ("-0", "0"),
        ("-3.0", "-3"),
        ("0013_01", "0013_01"),
        ("1e3", "1e3"),
        ("1.5", "1.5"),
        ("image.png", "image.png"),
    ],
)
def test_ids_are_normalised(found: str, normal: str) -> None:
    assert normal_id(found) == normal


@pytest.mark.parametrize("word", ["True", "true", "TRUE", "1", "1.0", " True "])
def test_words_for_true(word: str) -> None:
    assert boolean(word) is True


@pytest.mark.parametrize("word", ["False", "false", "0", "0.0"])
def test_words_for_false(word: str) -> None:
    assert boolean(word) is False


@pytest.mark.parametrize("word", ["", "yes", "2", "nan", "0.9", "None"])
def test_no_words_for_booleans(submission: Callable[[str | bytes], Path], word: str) -> None:
    with pytest.raises(InvalidSubmission, match=r"in row 1 .*; expected True or False"):
        read(submission(GOOD.replace("1.5", word)), columns={"SalePrice": boolean})


def test_a_range_of_numbers(submission: Callable[[str | bytes], Path]) -> None:
    assert (
        read(submission(GOOD), columns={"SalePrice": number_within(-4, 3e5)})["1464"]["SalePrice"]
        == -4
    )
    with pytest.raises(
        InvalidSubmission, match=r"'3e5' in row 3 .*; expected a finite number from -4 to 100"
    ):
        read(submission(GOOD), columns={"SalePrice": number_within(-4, 100)})


def test_text_is_not_blank(submission: Callable[[str | bytes], Path]) -> None:
    assert read(submission(GOOD), columns={"SalePrice": text})["1461"]["SalePrice"] == "1.5"
    with pytest.raises(InvalidSubmission, match="expected some text"):
        read(submission(GOOD.replace("1.5", "  ")), columns={"SalePrice": text})


def test_answers_keep_ids_and_blame_the_task(
    submission: Callable[[str | bytes], Path], tmp_path: Path
) -> None:
    answers = read_answers(submission("Id,label\n007,1\n8,0\n"), key="Id", columns={"label": int})
    assert answers == {"007": {"label": 1}, "8": {"label": 0}}
    assert read_submission(
        submission("Id,label\n8.0,5\n7,6\n"), key="Id", columns={"label": int}, ids=answers
    ) == {"007": {"label": 6}, "8": {"label": 5}}
    with pytest.raises(ValueError, match=r"answers: submission\.csv has duplicate ids"):
        read_answers(submission("Id,label\n7,1\n7,0\n"), key="Id", columns={"label": int})
    with pytest.raises(ValueError, match=r"answers: nothing\.csv is missing"):
        read_answers(tmp_path / "nothing.csv", key="Id", columns={"label": int})
