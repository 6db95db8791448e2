from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.budget import Ledger
from pytest_mlab.core.trial import EndedBy, Outcome
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store.events import AgentEnded, Note, StepDone
from pytest_mlab.store.journal import read_events
from pytest_mlab.trial.redacted import RedactedJournal

KEY = "sk-0123456789abcdef"


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    step = StepDone(
        t=1.0,
        index=1,
        action="Write File",
        args={"content": f"key = {KEY}", "lines": [1, KEY]},
        observation=f"wrote {KEY}",
        ok=True,
        seconds=0.1,
        snapshot="",
        set={f"{KEY}.txt": "0" * 64},
        ledger=Ledger(steps=1),
    )
    end = AgentEnded(
        t=2.0,
        ended_by=EndedBy.ERROR,
        outcome=Outcome.AGENT_ERROR,
        reason=KEY,
        ledger=Ledger(steps=1),
    )
    with RedactedJournal(path, Redactor({"OPENAI_API_KEY": KEY})) as journal:
        journal.write(step)
        journal.write(end)
    assert KEY not in path.read_text()
    found = list(read_events(path))
    assert found[1] == end.model_copy(update={"reason": "[OPENAI_API_KEY]"})
    assert isinstance(found[0], StepDone)
    assert found[0].args == {"content": "key = [OPENAI_API_KEY]", "lines": [1, "[OPENAI_API_KEY]"]}
    assert found[0].ledger == Ledger(steps=1)


def test_events_without_secrets_are_written_as_they_are(tmp_path: Path) -> None:
    note = Note(t=1.0, kind="plan", data={"a": [1, None, "x"]})
    for number, environ in enumerate(({}, {"OPENAI_API_KEY": KEY})):
        path = tmp_path / str(number)
        with RedactedJournal(path, Redactor(environ)) as journal:
            journal.write(note)
        assert list(read_events(path)) == [note]
