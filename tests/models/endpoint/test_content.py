"""Contents of all kinds, by example."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.models.endpoint.body import Refused
from pytest_mlab.models.endpoint.content import instead, read_content

DATA = "data:image/png;base64,QUJD"
BASE64 = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}
WEB = {"url": "https://example.com/a.png"}


@pytest.mark.parametrize(
    ("block", "part", "text"),
    [
        ({"type": "image", "source": BASE64}, {"url": DATA}, "[image/png, 3 bytes]"),
        ({"type": "image_url", "image_url": {"url": DATA}}, {"url": DATA}, "[image/png, 3 bytes]"),
        ({"type": "image_url", "image_url": DATA}, {"url": DATA}, "[image/png, 3 bytes]"),
        (
            {"type": "input_image", "image_url": DATA, "detail": "low"},
            {"url": DATA, "detail": "low"},
            "[image/png, 3 bytes]",
        ),
        ({"type": "image", "source": {"type": "url", **WEB}}, WEB, f"[image at {WEB['url']}]"),
        ({"type": "input_image", "file_id": "f_1"}, {"url": "f_1"}, "[image at f_1]"),
        ({"type": "computer_screenshot", "image_url": DATA}, {"url": DATA}, "[image/png, 3 bytes]"),
        (
            {"type": "document", "source": PDF, "title": "a.pdf"},
            {"file_data": "data:application/pdf;base64,QUJD", "filename": "a.pdf"},
            "[a.pdf, application/pdf, 3 bytes]",
        ),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;,QUJD"},
            {"file_data": "data:application/pdf;,QUJD", "filename": "a.pdf"},
            "[a.pdf, application/pdf, 3 bytes]",
        ),
        ({"type": "file", "file": {"file_id": "f"}}, {"file_id": "f"}, "[document at f]"),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            {"data": "QUJD", "format": "wav"},
            "[audio/wav, 3 bytes]",
        ),
    ],
)
def test_media(block: dict[str, Any], part: dict[str, Any], text: str) -> None:
    found = read_content([{"type": "text", "text": "see"}, block], "m")
    (kind,) = found.parts[1].keys() - {"type"}
    assert found.parts[1][kind] == part
    assert found.text == f"see\n{text}"
    assert found.blocks == found.parts
    assert found.places == ("m[0]", "m[1]")
    assert instead(found.parts[1]).startswith(f"{text[:-1]}: this model takes no ")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "input_text", "text": "a"}, "a"),
        ({"type": "refusal", "refusal": "no"}, "no"),
        ({"type": "document", "source": {"type": "text", "data": "a"}}, "a"),
        (
            {
                "type": "document",
                "title": "t",
                "source": {"type": "content", "content": [{"type": "text", "text": "a"}]},
            },
            "t\na",
        ),
        (
            {
                "type": "search_result",
                "source": "s",
                "title": "t",
                "content": [{"type": "text", "text": "a"}],
            },
            "t\na",
        ),
        ({"type": "tool_reference", "tool_name": "x"}, '[tool_reference {"tool_name": "x"}]'),
        ({"type": "of_next_year"}, "[of_next_year]"),
    ],
)
def test_all_else_becomes_text(block: dict[str, Any], text: str) -> None:
    found = read_content([block], "m")
    assert (found.text, found.blocks) == (text, ())


def test_marks_are_kept_and_plain_text_has_no_blocks() -> None:
    mark = {"type": "ephemeral"}
    assert read_content("a", "m").blocks == ()
    found = read_content([{"type": "text", "text": "a", "cache_control": mark}], "m")
    assert found.blocks == ({"type": "text", "text": "a", "cache_control": mark},)
    assert read_content("a", "m").marked(mark).blocks == found.blocks
    assert read_content("", "m").marked(mark).blocks == ()


def test_nesting_without_an_end_is_cut() -> None:
    block: dict[str, Any] = {"type": "text", "text": "a"}
    for _ in range(500):
        block = {"type": "x", "content": [block]}
    assert read_content([block], "m").text == "[x]"


def test_what_is_no_content() -> None:
    with pytest.raises(Refused, match="'m' must be a list of objects"):
        read_content(["a"], "m")
