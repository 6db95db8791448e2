"""The tree of solutions that the tree agent grows, and which of them it works on next."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Stage = Literal["draft", "debug", "improve"]


@dataclass(frozen=True)
class Node:
    """A solution that was tried.

    ``files`` are all that it and those above it wrote, ``run`` is the script, ``step`` the step
    after which its workspace can be restored. ``metric`` is None when ``is_bug``."""

    index: int
    stage: Stage
    parent: Node | None
    plan: str
    files: Mapping[str, str]
    run: str
    step: int
    output: str
    ok: bool
    is_bug: bool = True
    metric: float | None = None
    lower_is_better: bool = False
    summary: str = ""

    @property
    def debug_depth(self) -> int:
        """The attempts to fix it in a row above it, itself included."""
        return 0 if self.stage != "debug" or self.parent is None else 1 + self.parent.debug_depth


class Policy(Protocol):
    """What decides the search; see the agent's settings."""

    @property
    def num_drafts(self) -> int: ...
    @property
    def debug_probability(self) -> float: ...
    @property
    def max_debug_depth(self) -> int: ...


@dataclass
class Tree:
    """All nodes in the order in which they were tried."""

    nodes: list[Node] = field(default_factory=list)

    @property
    def good(self) -> list[Node]:
        """The nodes that ran and have a metric."""
        return [node for node in self.nodes if not node.is_bug and node.metric is not None]

    @property
    def lower_is_better(self) -> bool:
        """The direction that most reviews name; the first one's when they are divided."""
        votes = [node.lower_is_better for node in self.good]
        if 2 * sum(votes) == len(votes):
            return bool(votes) and votes[0]
        return 2 * sum(votes) > len(votes)

    @property
    def best(self) -> Node | None:
        """The good node with the best metric, the earliest of equals."""
        sign = -1.0 if self.lower_is_better else 1.0
        return max(
            self.good, key=lambda node: (sign * (node.metric or 0.0), -node.index), default=None
        )

    @property
    def standing(self) -> Node | None:
        """The node whose workspace to submit: the best, else the last that ran to its end."""
        return self.best or next((node for node in reversed(self.nodes) if node.ok), None)

    def choose(self, policy: Policy, chance: random.Random) -> tuple[Stage, Node | None]:
        """The next stage and the node to start from: drafts until there are enough; then, by
        chance, a fix of a failing solution that was not worked on yet; else an improvement of the
        best one; another draft while there is none."""
        if sum(node.stage == "draft" for node in self.nodes) < policy.num_drafts:
            return "draft", None
        if chance.random() < policy.debug_probability:
            parents = {node.parent.index for node in self.nodes if node.parent is not None}
            failing = [
                node
                for node in self.nodes
                if node.is_bug
                and node.index not in parents
                and node.debug_depth < policy.max_debug_depth
            ]
            if failing:
                return "debug", chance.choice(failing)
        return ("draft", None) if self.best is None else ("improve", self.best)
