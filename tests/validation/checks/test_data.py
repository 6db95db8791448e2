from __future__ import annotations

from pathlib import Path

from tests.support.toy_suite import DATA
from tests.validation.tasks import finding, sound_task

RANDOM = DATA.replace("import csv", "import csv, random").replace(
    '(f"b{i}", 7 * i % 100', '(f"b{i}", random.randrange(100)'
)


def test_the_same_data_twice(tmp_path: Path) -> None:
    assert finding("data", sound_task(tmp_path / "toy")).status == "ok"


def test_random_data_are_found(tmp_path: Path) -> None:
    found = finding("data", sound_task(tmp_path / "toy", data=RANDOM))
    assert found.status == "fail"
    assert found.facts["changed"] == ["test.csv"]


def test_a_download_is_not_made_twice(tmp_path: Path) -> None:
    task = sound_task(
        tmp_path / "toy",
        extra_toml='[[data.full.source]]\nkind = "http"\nref = "http://data.invalid/x"\n'
        f'sha256 = "{"0" * 64}"\nsize_mb = 1.0\nlicence = "MIT"\n',
    )
    assert finding("data", task, variant="full").status == "not_applicable"
