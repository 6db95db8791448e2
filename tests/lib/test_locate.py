"""Where suites and agents are found."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib import locate
from tests.support.foreign_suite import foreign_task


def test_a_source_checkout_has_its_top_level_folders() -> None:
    top = Path(locate.__file__).resolve().parents[2]
    assert locate.builtin("task_suites") == top / "task_suites"
    assert locate.builtin("agents") == top / "agents"


def test_a_wheel_has_package_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "pytest_mlab"
    (package / "_builtin" / "agents").mkdir(parents=True)
    (tmp_path / "site" / "agents").mkdir()
    monkeypatch.setattr(locate, "_PACKAGE", package)
    assert locate.builtin("agents") == package / "_builtin" / "agents"
    with pytest.raises(ConfigError, match="no built-in task_suites"):
        locate.builtin("task_suites")


def test_the_users_own_folder_comes_first(tmp_path: Path) -> None:
    shipped = locate.builtin("task_suites")
    assert locate.search_path(tmp_path, "task_suites") == (shipped,)
    (tmp_path / "task_suites").mkdir()
    assert locate.search_path(tmp_path, "task_suites") == (tmp_path / "task_suites", shipped)


def test_in_the_checkout_itself_the_folder_is_named_once() -> None:
    shipped = locate.builtin("task_suites")
    assert locate.search_path(shipped.parent, "task_suites") == (shipped,)


def _install(site: Path, value: str) -> None:
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_mlab.suites]\ndemo-lab = {value}\n")


def test_an_installed_package_offers_a_suite_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "demo_suite_package")
    (tmp_path / "demo_suite_package").mkdir()
    (tmp_path / "demo_suite_package" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate.entry_point_suites()["demo-lab"] == tmp_path / "demo_suite_package"
    assert "demo_suite_package" not in sys.modules


@pytest.mark.parametrize("value", ["no_such_package", "no_such.package", "json.decoder"])
def test_an_entry_point_that_names_no_package_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    _install(tmp_path, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        ConfigError, match=f"'demo-lab' of group pytest_mlab.suites names '{value}'"
    ):
        locate.entry_point_suites()


PROBE = """
import os, platformdirs, pwd
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.locate import default_cache_dir, writable_cache
os.setgid(54321)  # after the imports: the account may not be allowed to read the interpreter
os.setuid(54321)
try:
    print(writable_cache(default_cache_dir()))
except ConfigError as error:
    print("refused:", error)
"""


def in_an_account_without_entry(**environment: str) -> str:
    """What the cache is for a user id that the password database does not know."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.skipif(os.getuid() != 0, reason="needs to change the user id")
def test_without_a_home_folder_the_message_names_the_options() -> None:
    refused = in_an_account_without_entry()
    assert refused.startswith("refused: there is no home folder for the cache")
    assert "pytest --mlab-cache-dir=DIR, or with mlab prepare --cache-dir DIR" in refused
    refused = in_an_account_without_entry(MLAB_CACHE_DIR="~/cache")
    assert "write the path without ~" in refused
    refused = in_an_account_without_entry(HOME="/")
    assert "the cache /.cache/pytest-mlab cannot be written (/ is not" in refused
    assert "--mlab-cache-dir=DIR" in refused
    place = f"{tempfile.gettempdir()}/mlab-cache"
    assert in_an_account_without_entry(MLAB_CACHE_DIR=place) == place


def test_a_cache_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--mlab-cache-dir=DIR"):
        locate.writable_cache(tmp_path / "file" / "cache")
    assert locate.writable_cache(tmp_path / "new" / "cache") == tmp_path / "new" / "cache"


# What the password database says of a user id that it does not know.
NOBODY = """
import pwd, sys
def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = unknown
"""


def nobody(code: str, **environment: str) -> tuple[int, str]:
    """Status and output of ``code`` without a home folder, unless ``environment`` names one."""
    done = subprocess.run(
        [sys.executable, "-c", NOBODY + code],
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("home", [{}, {"HOME": os.devnull}], ids=["none", "unwritable"])
def test_without_a_cache_every_command_ends_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        ["prepare", "house-price"],
        ["measure", "house-price"],
        ["validate", "mlagentbench/house-price"],
        ["plan", "--mlab-agent=baseline"],
        ["tasks", "--suite", str(foreign_task(tmp_path / "suite" / "task").parent)],
        ["tasks"],  # which reads no cache
    ]
    code = (
        "import pytest\nfrom pytest_mlab.cli import main\n"
        f"print([*map(main, {words!r}), int(pytest.main(['--mlab-agent=baseline']))])"
    )
    status, said = nobody(code, **home)
    assert (status, "Traceback" in said) == (0, False), said
    assert "[2, 2, 2, 2, 2, 0, 4]" in said
    assert said.count("--mlab-cache-dir=DIR, or with mlab prepare --cache-dir DIR") == 6
