"""The research agent with its long-term memory switched on."""

from __future__ import annotations

from pydantic import Field

from .research import ResearchAgent, ResearchSettings


class RetrievalSettings(ResearchSettings, frozen=True, extra="forbid"):
    """The same settings, with another default."""

    retrieval: bool = Field(
        default=True, description="keep a research log and read in it before each step"
    )


class ResearchRetrievalAgent(ResearchAgent):
    """Keeps a research log and reads in it before each step."""

    Settings = RetrievalSettings
