"""What cannot be recorded or replayed is said before anything runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlab.core.plan import Plan, PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError
from pytest_mlab.models.recording.format import Header, file_of
from pytest_mlab.models.recording.writer import RecordingFile
from pytest_mlab.planning.recordable import check, unusable

AGENTS = (
    PlannedAgent("research", "research", "", True),
    PlannedAgent("baseline", "baseline", "", False),
)
FIRST = TrialId("guess", "research", "openai/main", 1)
CONTROL = TrialId("guess", "baseline", "", 1)


def plan(*trials: TrialId, agents: tuple[PlannedAgent, ...] = AGENTS, **settings: str) -> Plan:
    tasks = tuple(
        PlannedTask(name, "toy", "", "") for name in sorted({trial.task for trial in trials})
    )
    return Plan("run", RunSettings(**settings), tasks, agents, trials)  # type: ignore[arg-type]


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Two repeats, recorded with a model for edits."""
    folder = tmp_path / "recordings"
    for repeat in (1, 2):
        trial = TrialId("guess", "research", "openai/main", repeat)
        RecordingFile(
            file_of(folder, trial),
            Header(trial, "", "", settings={"edit_model": "openai/edit"}),
            str,
        ).end()
    return folder


def refused(found: Plan, **about: bool) -> str:
    with pytest.raises(ConfigError) as caught:
        check(found, **about)  # type: ignore[arg-type]
    return str(caught.value)


def replayed(
    recordings: Path, *trials: TrialId, edit_model: str = "openai/edit", fast_model: str = ""
) -> Plan:
    return plan(*trials, replay=str(recordings), edit_model=edit_model, fast_model=fast_model)


def test_what_is_recorded_can_be_replayed_and_controls_need_no_recording(recordings: Path) -> None:
    found = replayed(recordings, FIRST, TrialId("guess", "research", "openai/main", 2), CONTROL)
    check(found)
    assert unusable(found) == {}


def test_a_run_that_records_nothing_is_not_looked_at() -> None:
    check(plan(CONTROL, agents=AGENTS[1:]))


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (
            TrialId("guess", "research", "openai/main", 3),
            "no recording of repeat 3 of research--openai-main on guess",
        ),
        (
            TrialId("guess", "research", "openai/main", 3),
            "only of 1, 2; give --mlab-repeats=2 or record more",
        ),
        (
            TrialId("guess", "research", "openai/other", 1),
            "no recording of research--openai-other on guess",
        ),
        (TrialId("guess", "research", "openai/other", 1), "only of research--openai-main"),
        (TrialId("cifar10", "research", "openai/main", 1), "no recording of the task cifar10 in"),
        (TrialId("cifar10", "research", "openai/main", 1), "only of guess"),
    ],
)
def test_what_is_not_recorded_is_said_with_what_is(
    recordings: Path, trial: TrialId, message: str
) -> None:
    found = replayed(recordings, FIRST, trial)
    assert list(unusable(found)) == [trial.name]
    said = refused(found)
    assert said.startswith("--mlab-replay: 1 of 2 trials cannot be replayed: ")
    assert message in said


def test_trials_that_are_done_need_no_recording(recordings: Path) -> None:
    gone = TrialId("guess", "research", "openai/main", 3)
    check(replayed(recordings, FIRST, gone), done={gone})


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (
            {"edit_model": ""},
            "1.jsonl was recorded with --mlab-edit-model=openai/edit; replay it so",
        ),
        (
            {"fast_model": "openai/fast"},
            "1.jsonl was recorded without --mlab-fast-model; replay it so",
        ),
    ],
)
def test_other_models_for_edits_and_summaries(
    recordings: Path, models: dict[str, str], message: str
) -> None:
    assert message in refused(replayed(recordings, FIRST, **models))


def _empty_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda path: shutil.rmtree(path.parents[2]), "there is no folder"),
    "a file in its place": (lambda path: _empty_file(path.parents[2]), "there is no folder"),
    "no file": (lambda path: path.unlink(), "no recording of repeat 1"),
    "a folder in its place": (_folder, "cannot be read: Is a directory"),
    "another format": (
        lambda path: path.write_text('{"recording": 2, "by": "pytest-mlab 7"}\n'),
        "recording format 2",
    ),
    "no recording": (
        lambda path: path.write_text("what is this?\n"),
        "does not begin as a recording does",
    ),
    "moved": (
        lambda path: shutil.copy(path.with_name("2.jsonl"), path),
        "is the recording of guess-research-openai-main-2",
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_bad_recordings(recordings: Path, harm: str) -> None:
    HARM[harm][0](file_of(recordings, FIRST))
    assert HARM[harm][1] in refused(replayed(recordings, FIRST))


def test_many_reasons_are_cut(recordings: Path) -> None:
    trials = [TrialId("guess", "research", "openai/main", repeat) for repeat in range(1, 10)]
    said = refused(replayed(recordings, *trials))
    assert said.startswith("--mlab-replay: 7 of 9 trials cannot be replayed: ")
    assert said.endswith("; and 4 more")


def test_a_trial_is_not_recorded_twice_unless_its_run_is_resumed(recordings: Path) -> None:
    found = plan(FIRST, CONTROL, record=str(recordings))
    said = refused(found)
    assert (
        "recordings/guess/research--openai-main/1.jsonl is there already; remove it to record"
        in said
    )
    check(found, resumed=True)
    check(plan(TrialId("guess", "research", "openai/main", 3), record=str(recordings)))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused(plan(FIRST, record=str(tmp_path / "file" / "recordings")))
    assert f"{tmp_path / 'file'} is no folder that can be written to" in said


@pytest.mark.parametrize("flag", ["record", "replay"])
def test_agents_that_call_no_model(tmp_path: Path, flag: str) -> None:
    said = refused(plan(CONTROL, agents=AGENTS[1:], **{flag: str(tmp_path)}))
    assert said == f"--mlab-{flag}: none of the agents calls a model; leave it out"
