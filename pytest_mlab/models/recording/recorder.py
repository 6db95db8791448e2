"""A model client that records another client's answers, and the texts that must not be recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_mlab.core.model_api import ModelClient, ModelFacts, ModelReply, ModelRequest
from pytest_mlab.errors import ModelError, StoreError
from pytest_mlab.models.recording.format import RecordedError
from pytest_mlab.models.recording.writer import RecordingFile

WORKSPACE = "<mlab:workspace>"
"""What stands in a recording for the folder that the agent's code sees as its own, which differs
from run to run."""


@dataclass(frozen=True)
class RecordingClient:
    """Implements :class:`pytest_mlab.core.model_api.ModelClient`: passes every call to ``client``
    and writes it to ``file``, failed ones with their error."""

    client: ModelClient
    file: RecordingFile

    def complete(self, request: ModelRequest) -> ModelReply:
        """The other client's answer. Raises its errors, and StoreError when a call cannot be
        written."""
        begin = time.monotonic()
        try:
            reply = self.client.complete(request)
        except ModelError as error:
            failed = RecordedError(
                type(error).__name__, str(error), error.retries, round(error.waited, 3)
            )
            self._add(request, failed, time.monotonic() - begin)
            raise
        self._add(request, reply, reply.seconds)
        return reply

    def facts(self, model: str) -> ModelFacts:
        """What the other client knows of ``model``."""
        return self.client.facts(model)

    def _add(
        self, request: ModelRequest, outcome: ModelReply | RecordedError, seconds: float
    ) -> None:
        try:
            self.file.add(request, outcome, seconds)
        except OSError as error:
            raise StoreError(
                f"the recording takes no more calls ({error}); free the disk and resume the run"
                " with --mlab-retry=infra"
            ) from error


def cleaner(redact: Callable[[str], str], workspaces: Iterable[str]) -> Callable[[str], str]:
    """The function that cleans every text of a recording: ``redact`` takes the secrets out, and the
    paths of the workspace become :data:`WORKSPACE`."""
    paths = sorted({path for path in workspaces if len(path) > 1}, key=len, reverse=True)

    def clean(text: str) -> str:
        text = redact(text)
        for path in paths:
            text = text.replace(path, WORKSPACE)
        return text

    return clean
