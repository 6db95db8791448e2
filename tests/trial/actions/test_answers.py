"""Taking a file's content out of a model's answer."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.trial.actions.answers import fence_around, unfenced

DOC = '"""Usage:\n\n```\npython doc.py\n```\n"""\nprint("bye")\n'
README = "# Title\n\n```bash\npip install x\n```\n\nMore\n\n```\nexample\n```\nEnd\n"


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ("plain\ntext", "plain\ntext\n"),
        ("```\na\n```", "a\n"),
        ("```python\na\n\nb\n```\n", "a\n\nb\n"),
        ("Sure:\n```py\nx\n```\nand\n```\nlonger\none\n```", "longer\none\n"),
        ("```python\nnever closed", "never closed\n"),
        ("~~~python\na\n```\nb\n```\n~~~", "a\n```\nb\n```\n"),
        ("1. Here:\n\n   ```python\n   a\n     b\n   ```\nDone", "a\n  b\n"),
        ("```x = 1```", "x = 1\n"),
        ("```\r\na\r\n```\r\n", "a\n"),
        ("a `b` c", "a `b` c\n"),
        ("```\n```", ""),
        ("", ""),
    ],
)
def test_code_is_taken_out_of_its_fence(reply: str, content: str) -> None:
    assert unfenced(reply) == content


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{DOC}```",
        f"```\n{DOC}```\n",
        f"Here is the file:\n\n```python\n{DOC}```\n\nIt says bye now.",
        f"I run it with\n```bash\npython doc.py\n```\nand the file is:\n```python\n{DOC}```",
        f"```python\n{DOC}```\nRun it:\n```bash\npython doc.py\n```",
        DOC,
        f"```python\n{DOC}",
        f"~~~python\n{DOC}~~~",
        f"````python\n{DOC}````",
        f"Before:\n```python\nprint('hello')\n```\nAfter:\n```python\n{DOC}```",
    ],
)
def test_the_reading_that_is_a_program_is_the_content(reply: str) -> None:
    assert unfenced(reply, fits=is_python) == DOC
    # What the file was says it too.
    before = DOC.replace("bye", "hello")
    assert unfenced(reply, before, fits=is_python) == DOC
    assert unfenced(reply, before) == DOC


@pytest.mark.parametrize(
    "reply",
    [
        f"```markdown\n{README}```",
        f"Sure:\n```md\n{README}```\nDone.",
        f"````\n{README}````",
        f"~~~\n{README}~~~\nThat is all.",
    ],
)
@pytest.mark.parametrize("before", ["", README, README.replace("example", "other")])
def test_blocks_in_a_text_are_its_own(reply: str, before: str) -> None:
    assert unfenced(reply, before) == README


def test_a_quote_of_what_is_replaced_is_not_the_content() -> None:
    reply = "Replace\n```python\nLR = 1\n```\nwith\n```python\nLR = 2\n```"
    assert unfenced(reply, "LR = 1\n") == "LR = 2\n"
    assert unfenced(reply, "LR = 1\n", fits=is_python) == "LR = 2\n"


@pytest.mark.parametrize("prose", ["", "Here are the lines:\n\n"])
def test_lines_of_a_string_are_not_judged_by_whether_they_fit(prose: str) -> None:
    def fits(text: str) -> bool:
        return is_python(f'"""Usage:\n{text}"""\n')

    before, after = "```\npython doc.py\n```\n", "```\npython doc.py --fast\n```\n"
    assert unfenced(f"{prose}```\n{after}```", before, fits=fits) == after
    assert unfenced(f"{prose}```\nnew words\n```", "words\n", fits=fits) == "new words\n"


@given(st.text(alphabet="ab \n#`~", max_size=40).filter(str.strip))
def test_any_content_in_the_asked_fence_comes_out_as_it_was(content: str) -> None:
    content = content.removesuffix("\n") + "\n"
    fence = fence_around(content)
    reply = f"Here it is:\n{fence}python\n{content}{fence}\nDone"
    assert unfenced(reply, content, fence=fence) == content
    assert unfenced(f"{fence}\n{content}{fence}", content, fence=fence) == content
