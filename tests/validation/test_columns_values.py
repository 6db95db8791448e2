"""Comparing by value: columns of many kinds of files, dependence of columns, runs as bytes."""

from __future__ import annotations

import io
import pickle
import random
import struct

import numpy as np
import pytest

from pytest_mlab.validation.columns import columns_in
from pytest_mlab.validation.dependence import bits, normal, rank_correlation, saved
from pytest_mlab.validation.needles import column_needles, pieces, runs


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", b"\xef\xbb\xbfid,x\n1,a\n2\n3,b\n", [{"id": ["1", "3"], "x": ["a", "b"]}]),
        ("a.tsv", b"id\tx\n1\ta\n", [{"id": ["1"], "x": ["a"]}]),
        ("a.json", b'[{"a": 1, "b": [1]}, {"a": 2, "b": [2]}]', [{"a": ["1", "2"]}]),
        ("a.json", b'{"x": 1, "y": "z"}', [{"key": ["x", "y"], "value": ["1", "z"]}]),
        ("a.json", b'{"rows": [{"a": 1}], "list": [1, 2]}', [{"a": ["1"]}, {"value": ["1", "2"]}]),
        ("a.json", b"[" * 100_000, []),
        ("a.jsonl", b'{"a": 1}\n{"a": 2}\n', [{"a": ["1", "2"]}]),
        ("a.txt", b"x\ny\n", [{"line": ["x", "y"]}]),
        ("a.py", b"x\ny\n", []),
        ("a.csv", b"\xff\xfe", []),
        ("a.csv", b"only a header\n", []),
    ],
)
def test_columns_of_text(name: str, content: bytes, columns: list[dict[str, list[str]]]) -> None:
    assert [
        {key: list(v) for key, v in found.columns.items()} for found in columns_in(name, content)
    ] == columns


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_columns_of_arrays() -> None:
    (found,) = columns_in("a.npy", npy(np.array([1, 2])))
    assert found.columns == {"value": ["1", "2"]}
    (found,) = columns_in("a.npy", npy(np.array([[1.5, 2], [3, 4]])))
    assert found.columns == {"column 0": ["1.5", "3.0"], "column 1": ["2.0", "4.0"]}
    assert columns_in("image.npy", npy(np.zeros((2, 100)))) == []
    assert columns_in("objects.npy", npy(np.array([{}], dtype=object))) == []
    assert columns_in("torn.npy", npy(np.array([1, 2]))[:-3]) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [("01", "1.0"), ("True", "true"), (" a ", "A"), ("0.30000000000000004", ".3")],
)
def test_values_that_are_the_same(left: str, right: str) -> None:
    assert normal(left) == normal(right)
    assert normal("12") != normal("13")


def test_what_knowing_a_column_saves() -> None:
    answers = ["yes", "no", "yes", "yes"] * 10
    assert saved(answers, answers) == 1.0
    assert saved([{"yes": "b", "no": "a"}[a] for a in answers], answers) == 1.0
    assert saved([str(n) for n in range(40)], answers) == 0.0, "ids tell nothing"
    assert saved(["same"] * 40, answers) == 0.0
    assert saved(answers, ["same"] * 40) == 0.0
    half = [a if n % 8 else "no" for n, a in enumerate(answers)]
    assert 0 < saved(half, answers) < 1


def test_noise_saves_nothing() -> None:
    rng = random.Random(0)
    for _ in range(50):
        answers = [rng.choice("ab") for _ in range(30)]
        assert saved([str(rng.randrange(15)) for _ in range(30)], answers) < 0.9


def test_ranks() -> None:
    numbers = [str(n * n) for n in range(30)]
    assert rank_correlation([str(-n) for n in range(30)], numbers) == pytest.approx(1.0)
    assert rank_correlation(["a"] * 30, numbers) == 0.0
    assert rank_correlation(["1", "2"] * 15, numbers) == 0.0


def test_information() -> None:
    assert bits("aaaa") == 0.0
    assert bits("abab") == pytest.approx(4.0)
    assert bits(range(8)) == pytest.approx(24.0)


def test_runs_are_as_short_as_they_may_be() -> None:
    values = [str(n % 2) for n in range(300)]
    assert [len(run) for run in runs(values, 64.0)] == [64, 64, 64]
    assert runs(["0"] * 1000, 64.0) == []
    assert runs(values[:20], 64.0) == []


@pytest.mark.parametrize(
    "encode",
    [
        lambda n: bytes(n),
        lambda n: np.array(n, dtype="int64").tobytes(),
        lambda n: np.array(n, dtype="float32").tobytes(),
        lambda n: pickle.dumps(n, protocol=2),
        lambda n: pickle.dumps([float(v) for v in n]),
        lambda n: pickle.dumps(n, protocol=4),
        lambda n: struct.pack(f"<{len(n)}h", *n),
        lambda n: str(n).encode(),
        lambda n: "\n".join(map(str, n)).encode(),
    ],
)
def test_a_column_is_found_however_it_is_written(encode: object) -> None:
    rng = random.Random(0)
    numbers = [rng.randrange(10) for _ in range(200)]
    assert callable(encode)
    content = b"before" + encode(numbers) + b"after"
    assert any(needle in content for needle in column_needles([str(n) for n in numbers], 64.0))
    other = b"before" + encode([rng.randrange(10) for _ in range(200)]) + b"after"
    assert not any(needle in other for needle in column_needles([str(n) for n in numbers], 64.0))


def test_words_are_found_as_numbers() -> None:
    words = [random.Random(n).choice(["cat", "dog", "eel"]) for n in range(200)]
    content = bytes(["cat", "dog", "eel"].index(word) for word in words)
    assert any(needle in content for needle in column_needles(words, 64.0))


def test_pieces_of_an_opaque_file() -> None:
    content = random.Random(0).randbytes(10_000)
    found = pieces(content, 64.0)
    assert len(found) == 16
    assert all(len(piece) == 64 and piece in content for piece in found)
    assert pieces(bytes(10_000), 64.0) == []
    sparse = bytes(n % 97 == 0 for n in range(10_000))
    assert min(map(len, pieces(sparse, 64.0))) > 64
