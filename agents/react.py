"""ReAct: a thought before every action, and all that came of the earlier ones in the prompt."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from .act import ActAgent
from .research_parsing import ACTION, INPUT, THOUGHT


class ReactAgent(ActAgent):
    """The act agent, thinking aloud."""

    fields: ClassVar[tuple[str, ...]] = (THOUGHT, ACTION, INPUT)
    prompt: ClassVar[Path] = Path(__file__).with_name("react_prompt.md")
