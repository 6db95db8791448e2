"""The research agent with its long-term memory switched on."""

from __future__ import annotations

from .research import ResearchAgent, ResearchSettings


class ResearchRetrievalAgent(ResearchAgent):
    """Keeps a research log and reads in it before each step."""

    def __init__(self) -> None:
        super().__init__(ResearchSettings(retrieval=True))
