from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_mlab import cli, commands

FAKE = """
    raised = {raised}
    HELP = "Do a {name} thing."

    def add_arguments(parser):
        parser.add_argument("word")
        parser.add_argument("--status", type=int, default=0)

    def run(args):
        if raised is not None:
            raise raised
        print("word", args.word)
        return args.status
"""


@pytest.fixture
def fake_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three commands: ``good``; ``wrong`` and ``stopped``, which raise."""
    package = tmp_path / "fakes"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name, raised in (
        ("good", "None"),
        (
            "wrong",
            "__import__('pytest_mlab.errors').errors.ConfigError('no such run; name another')",
        ),
        ("stopped", "KeyboardInterrupt()"),
    ):
        (package / f"{name}.py").write_text(dedent(FAKE.format(name=name, raised=raised)))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cli, "COMMANDS", {n: f"fakes.{n}" for n in ("good", "wrong", "stopped")})


@pytest.mark.usefixtures("fake_commands")
def test_a_command_gets_its_arguments_and_gives_the_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["good", "hello", "--status", "1"]) == 1
    assert capsys.readouterr().out == "word hello\n"


@pytest.mark.usefixtures("fake_commands")
def test_an_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["wrong", "x"]) == 2
    assert capsys.readouterr() == ("", "mlab: error: no such run; name another\n")


@pytest.mark.usefixtures("fake_commands")
def test_ctrl_c_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stopped", "x"]) == 130
    assert capsys.readouterr().err == "mlab: interrupted\n"


@pytest.mark.usefixtures("fake_commands")
def test_wrong_arguments_are_told_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["good"]) == 2
    assert "usage: mlab good" in capsys.readouterr().err
    assert cli.main(["good", "x", "--stat", "1"]) == 2
    assert "--stat" in capsys.readouterr().err


@pytest.mark.usefixtures("fake_commands")
def test_a_commands_help_shows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["good", "--help"]) == 0
    assert "Do a good thing." in capsys.readouterr().out


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reprot"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "mlab: error: unknown command 'reprot'; did you mean 'report'? commands: report,"
    )


def test_help_lists_every_command_with_its_line_and_imports_none() -> None:
    code = (
        "import sys; from pytest_mlab.cli import main; main(['--help']); print([m for m in"
        " sys.modules if m.startswith('pytest_mlab.commands.') or m.split('.')[0] in ('pytest',"
        " '_pytest', 'pydantic', 'scipy', 'numpy', 'litellm', 'torch', 'docker')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for name in cli.COMMANDS:
        assert any(line.split()[:1] == [name] and len(line.split()) > 2 for line in lines), name
    assert lines[-1] == "[]"
    assert max(map(len, lines)) <= 80


def test_every_module_of_commands_is_a_command() -> None:
    (folder,) = commands.__path__
    modules = {p.stem for p in Path(folder).glob("[!_]*.py")}
    assert {f"pytest_mlab.commands.{m}" for m in modules} == set(cli.COMMANDS.values())


def test_no_arguments_show_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "usage: mlab COMMAND" in capsys.readouterr().out


def test_python_dash_m_is_mlab() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_mlab", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("pytest-mlab 0.")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    code = (
        "import sys; from pytest_mlab import cli; import pytest_mlab.commands as c, types; m ="
        " types.ModuleType('many'); m.HELP = 'x'; m.add_arguments = lambda p: None; m.run = lambda"
        " a: [print('line' * 100) for _ in range(10000)] and 0; sys.modules['many'] = m;"
        " cli.COMMANDS['many'] = 'many'; sys.exit(cli.main(['many']))"
    )
    done = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert done.stdout is not None
    assert done.stderr is not None
    done.stdout.readline()
    done.stdout.close()
    error = done.stderr.read()
    done.stderr.close()
    assert (done.wait(), error) == (141, b"")


def test_an_ascii_terminal_is_no_error() -> None:
    code = (
        "import sys; from pytest_mlab import cli; import types; m = types.ModuleType('odd'); m.HELP"
        " = 'x'; m.add_arguments = lambda p: None; m.run = lambda a: print('\\xe9\\udc80') or 0;"
        " sys.modules['odd'] = m; cli.COMMANDS['odd'] = 'odd'; sys.exit(cli.main(['odd']))"
    )
    environment = {"PYTHONIOENCODING": "ascii", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "\\xe9\\udc80\n")
