"""Taking code out of what models answer."""

from __future__ import annotations

import pytest

from pytest_mlab import extract_code

CODE = "import os\n\n\ndef f():\n    return os.name\n"
QUOTING = f"DOC = '''\n```\nan example\n```\n'''\n{CODE}"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (CODE, CODE),
        (f"```python\n{CODE}```", CODE),
        (f"Sure! Here is train.py:\n\n```python\n{CODE}```\n\nIt prints nothing.", CODE),
        (f"Here:\n\n~~~py\n{CODE}~~~", CODE),
        (f"Cut off:\n\n```python\n{CODE}", CODE),
        (f"```python\n{QUOTING}```\nI hope this helps!", QUOTING),
        (f"```bash\npip install a b c d e f && pip list\n```\n\n```python\n{CODE}```\n", CODE),
        (f"First\n```python\nimport os\n```\nthen all of it:\n```python\n{CODE}```\n", CODE),
        ("```python\r\nx = 1\r\n```", "x = 1\n"),
        ("1. step\n\n   ```python\n   if x:\n       y = 1\n   ```\n", "if x:\n    y = 1\n"),
        ("", ""),
    ],
)
def test_code_is_taken_out_of_an_answer(answer: str, code: str) -> None:
    assert extract_code(answer) == code
