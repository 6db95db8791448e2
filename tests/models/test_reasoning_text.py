"""Reasoning in tags: what belongs to it, and what is content."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.models.reasoning_text import split_reasoning

ANSWER = 'Action: List Files\nAction Input: {"dir_path": "."}'


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        (f"<think>hm</think>{ANSWER}", ["hm"], ANSWER),
        (f"\n <think>\nhm\n</think>\n\n{ANSWER}", ["hm"], ANSWER),
        (f"<thinking>hm</thinking>\n{ANSWER}", ["hm"], ANSWER),
        (f"<Reasoning>hm</Reasoning>\n{ANSWER}", ["hm"], ANSWER),
        (f"[THINK]hm[/THINK]{ANSWER}", ["hm"], ANSWER),
        (f"◁think▷hm◁/think▷{ANSWER}", ["hm"], ANSWER),
        (f"<|START_THINKING|>hm<|END_THINKING|>{ANSWER}", ["hm"], ANSWER),
        (f"Sure. <think>\n{ANSWER}\n</think>\n{ANSWER}", [ANSWER], f"Sure. \n{ANSWER}"),
        # only the closing tag: the opening one stood in the prompt
        (f"Action: Final Answer\n</think>\n{ANSWER}", ["Action: Final Answer"], ANSWER),
        (f"I call \"Final Answer\"</think>{ANSWER}", ['I call "Final Answer"'], ANSWER),
        (f"draft:\n```py\n1\n```\nfine</think>{ANSWER}", ["draft:\n```py\n1\n```\nfine"], ANSWER),
        ("a draft:\n```py\n1\n</think>\n```py\n2\n```", ["a draft:\n```py\n1"], "```py\n2\n```"),
        (f"```py\n1\n</think>\n{ANSWER}", ["```py\n1"], ANSWER),
        (f'{{"name": "Final Answer"}}\n</think>\n{ANSWER}', ['{"name": "Final Answer"}'], ANSWER),
        # only the opening tag, or none of the answer: cut off
        (f"<think>\n{ANSWER}", [ANSWER], ""),
        (f"<think>hm</think>\n<think>\n{ANSWER}", ["hm", ANSWER], ""),
        ("<think></think>", [], ""),
        # nested, several
        (f"<think>a<think>b</think>c</think>{ANSWER}", ["a<think>b</think>c"], ANSWER),
        (f"<think>a <think> b</think>\n{ANSWER}", ["a <think> b"], ANSWER),
        (f"<think>a</think>b</think>{ANSWER}", ["a", "b"], ANSWER),
        ("<think>a</think>x\n<think>b</think>\ny", ["a", "b"], "x\n\ny"),
        # messages of gpt-oss, as they come without a parser
        (
            "<|channel|>analysis<|message|>Action: Final Answer<|end|><|start|>assistant<|channel|>"
            f"final<|message|>{ANSWER}<|return|>",
            ["Action: Final Answer"],
            ANSWER,
        ),
        ("<|channel|>analysis<|message|>We need", ["We need"], ""),
        ("<|channel|>analysis<|message|>We<|end|>ok", ["We"], "ok"),
        # the indent of code stays
        ("<think>hm</think>\n\n    return x\n", ["hm"], "    return x"),
    ],
)  # fmt: skip
def test_reasoning_is_taken_out(text: str, reasoning: list[str], answer: str) -> None:
    assert split_reasoning(text) == (tuple(reasoning), answer)


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        "",
        "The parser:\n```python\nOPEN = '<think>'\ntext.split('</think>')\n```\n",
        "```\n<think>\nhm\n</think>\n```",
        "~~~~\n```\n</think>\n```\n~~~~\n",
        'Action Input: {"content": "<think>a</think>\\n</think>", "n": 1}',
        '<tool_call>\n{"name": "Write File", "arguments": {"content": "\n<think>x"}}\n</tool_call>',
        "I take the text after `</think>`.",
        'Split it at "</think>" and keep the rest.',
        "A <think> tag opens it, </think> closes it.",
        'S = "{\\"content\\": \\"</think>\\""',
        "<|channel|>final with no message",
        "List<thinking_cap> and <thinker> are no tags </ think>",
    ],
)
def test_content_stays_as_it_is(text: str) -> None:
    assert split_reasoning(text) == ((), text)


def test_a_cut_answer_has_no_end_of_reasoning_by_guess() -> None:
    assert split_reasoning("<think>a<think>b</think>c", cut=True) == (("a<think>b</think>c",), "")
    assert split_reasoning("<think>a<think>b</think>c") == (("a<think>b",), "c")


words = st.text("ab \n.", max_size=12)
tags = st.sampled_from(["<think>", "</think>", "<THINKING>", "</reasoning>"])


@settings(max_examples=100)
@given(words, words, st.booleans())
def test_no_word_of_reasoning_is_in_the_answer(inside: str, after: str, opened: bool) -> None:
    text = f"{'<think>' if opened else ''}SECRET{inside}</think>\n{after}"
    reasoning, answer = split_reasoning(text)
    assert "SECRET" not in answer
    assert answer.strip() == after.strip()
    assert reasoning == (f"SECRET{inside}".strip(),)


@settings(max_examples=100)
@given(st.lists(st.one_of(words, tags, st.just("```\n"), st.just('{"a": "')), max_size=9))
def test_nothing_is_lost_or_invented(parts: list[str]) -> None:
    text = "".join(parts)
    reasoning, answer = split_reasoning(text)

    def letters(text: str) -> list[str]:
        return sorted(c for c in re.sub("<[^>]*>", "", text) if c in "ab.{}`")

    assert letters("".join((*reasoning, answer))) == letters(text)
    assert split_reasoning(answer)[1] == answer or "<" in answer
