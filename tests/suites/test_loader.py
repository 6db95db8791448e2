"""task.toml and its folder → Task: what is read, what is refused and in which words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_mlab.core.task import Direction, Source, Threshold
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites import loader
from pytest_mlab.suites.loader import load_task
from tests.suites.folders import edit, toy_task


def message(folder: Path) -> str:
    with pytest.raises(SuiteError) as caught:
        load_task(folder, "lab")
    return str(caught.value)


def test_a_right_task_is_read_whole(tmp_path: Path) -> None:
    task = load_task(toy_task(tmp_path), "lab")
    assert (task.name, task.suite, task.version, task.modality) == ("toy", "lab", "1", "tabular")
    assert task.folder == tmp_path / "toy"
    assert task.metric.direction is Direction.MAXIMIZE
    assert (task.metric.low, task.metric.high) == (0.0, 1.0)
    assert task.submission.columns == ("id", "y")
    assert task.budget.max_seconds == 5400.0
    assert task.threshold == Threshold(0.10, None)
    assert task.description.startswith("Predict y.")
    assert task.read_only == ("train.csv",)
    mini, full = task.variants["mini"], task.variants["full"]
    assert mini.sources == (Source("embedded", "raw/points.csv", licence="public domain"),)
    assert mini.baseline is not None
    assert (mini.baseline.n, mini.baseline.mean, mini.baseline.machine) == (2, 0.55, "a desk")
    assert full.sources[0].size_mb == 1.5
    assert full.baseline is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'direction = "maximize"',
            'direction = "minimise"',
            ':12: metric.direction: "minimise" found, must be one of: minimize',
        ),
        (
            'direction = "maximize"',
            'directon = "maximize"',
            ":12: metric.directon: unknown key; nearest: direction; keys of [metric]",
        ),
        (
            'summary = "',
            'read_only = []\nsummary = "',
            "'read_only' belongs to the top of the file, before the first [table]",
        ),
        ('name = "accuracy"\n', "", ":10: metric.name: is missing"),
        ("[metric]", "[metrics]", ":10: metrics: unknown key; nearest: metric"),
        ('version = "1"', "version = 1", ":6: task.version: 1 found, must be text in quotes"),
        (
            'name = "toy"',
            'name = "toys"',
            '.toml:5: task.name: "toys" found, must be the folder\'s name "toy"',
        ),
        (
            'modality = "tabular"',
            'modality = "Tab ular"',
            'task.modality: "Tab ular" found, must be lower-case letters',
        ),
        ("high = 1.0", "high = -1.0", "metric.high: -1.0 found, must be above low = 0.0"),
        (
            'path = "submission.csv"',
            'path = "../submission.csv"',
            'submission.path: "../submission.csv" found, must be a relative path',
        ),
        ('kind = "csv"', 'kind = "script"', "submission.columns: only a csv has columns"),
        (
            'max_time = "1h30m"',
            'max_time = "soon"',
            ":22: budget.max_time: \"soon\" found, 'soon' is not a duration",
        ),
        (
            'kind = "embedded"',
            'kind = "embeded"',
            ':25: data.mini.source[0].kind: "embeded" found, must be one of: embedded',
        ),
        (
            'ref = "raw/points.csv"',
            'ref = "raw/nothing.csv"',
            ':26: data.mini.source[0].ref: "raw/nothing.csv" found, but there is no such',
        ),
        (
            'licence = "public domain"\n\n',
            "\n",
            "data.mini.source[0].licence: a source of kind embedded needs a licence",
        ),
        (
            "size_mb = 1.5",
            "size_mb = 0",
            "data.full.source[0].size_mb: 0.0 found: a source of kind http needs its size",
        ),
        ('sha256 = "e3', 'sha256 = "zz', 'data.full.source[0].sha256: "zz'),
        (
            "mean = 0.55",
            "mean = 0.56",
            "data.mini.baseline.mean: 0.56 found, the mean of the scores is 0.55",
        ),
        (
            "std = 0.0707107",
            "std = 0.05",
            "data.mini.baseline.std: 0.05 found, the standard deviation (ddof=1)",
        ),
        ("scores = [0.5, 0.6]", "scores = []", "data.mini.baseline.scores: must not be empty"),
        (
            "scores = [0.5, 0.6]\nmean = 0.55\nstd = 0.0707107",
            "scores = [1.6]\nmean = 1.6\nstd = 0",
            "scores: 1.6 lies outside the metric's range",
        ),
        (
            'measured = "starter"',
            'measured = "filled-starter"',
            "but the task has no folder baseline/",
        ),
        (
            'requirements = ["numpy>=1.26"]',
            'requirements = ["numpy>>1"]',
            '.toml:2: requirements[0]: "numpy>>1" is no requirement',
        ),
        (
            "[budget]",
            "[threshold]\nimprovement = 0.1\nabsolute = 0.9\n[budget]",
            "threshold.absolute: give improvement or absolute, not both",
        ),
        (
            "[budget]",
            "[resources]\ncpus = 0\n[budget]",
            "resources.cpus: 0 found, must be at least 1",
        ),
        (
            "[budget]",
            "[resources]\ncpus = true\n[budget]",
            "resources.cpus: true found, must be a whole number",
        ),
    ],
)
def test_one_wrong_value_is_named_with_line_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", old, new)
    text = message(folder)
    assert expected in text
    assert str(folder / "task.toml") in text


def test_every_problem_is_listed_in_a_line_of_its_own(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", 'direction = "maximize"', 'direction = "up"')
    edit(folder / "task.toml", 'version = "1"', "version = 1")
    assert len(message(folder).splitlines()) == 2


def test_a_syntax_error_names_line_and_column(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", 'modality = "tabular"', "modality = tabular")
    assert "task.toml:8: not valid TOML:" in message(folder)


@pytest.mark.parametrize(
    "name", ["description.md", "data.py", "evaluator.py", "reference/actions.toml", "env/train.py"]
)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = toy_task(tmp_path)
    (folder / name).unlink()
    assert name in message(folder)


def test_a_folder_without_task_toml_says_so(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (folder / "task.toml").unlink()
    assert "a task folder needs one" in message(folder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "description.md is empty"),
        (
            "The metric is F1; higher is better.",
            ':11: metric.name: description.md does not say "accuracy"',
        ),
        (
            "The metric is accuracy.",
            ':12: metric.direction: "maximize": description.md must say "higher is better"',
        ),
        ("Accuracy: lower is better.", 'must say "higher is better"'),
    ],
)
def test_the_description_must_state_metric_and_direction(
    tmp_path: Path, text: str, expected: str
) -> None:
    folder = toy_task(tmp_path)
    (folder / "description.md").write_text(text)
    assert expected in message(folder)


def test_a_description_may_break_the_line_inside_the_words(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (folder / "description.md").write_text("Metric: ACCURACY. Higher is\nbetter.")
    assert load_task(folder, "lab").name == "toy"


@pytest.mark.parametrize("placeholder", ["1e10", "1e-10", "-1e9"])
def test_a_placeholder_is_no_baseline(tmp_path: Path, placeholder: str) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", "low = 0.0\nhigh = 1.0\n", "")
    edit(
        folder / "task.toml",
        "scores = [0.5, 0.6]\nmean = 0.55\nstd = 0.0707107",
        f"scores = [{placeholder}]\nmean = {placeholder}\nstd = 0.0",
    )
    assert "is a placeholder, no measured score" in message(folder)


def test_a_baseline_of_zero_needs_an_absolute_threshold(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    edit(
        folder / "task.toml",
        "scores = [0.5, 0.6]\nmean = 0.55\nstd = 0.0707107",
        "scores = [0.0]\nmean = 0.0\nstd = 0.0",
    )
    assert (
        "data.mini.baseline.mean: 0.0 found: no share of a baseline of 0 or below; set"
        " threshold.absolute" in message(folder)
    )
    edit(folder / "task.toml", "[budget]", "[threshold]\nabsolute = 0.2\n[budget]")
    assert load_task(folder, "lab").threshold.absolute == 0.2


def test_a_task_with_a_filled_baseline_must_measure_that(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (folder / "baseline").mkdir()
    assert "a folder baseline/ without actions.toml" in message(folder)
    assert '"filled-starter" is what is run' in message(folder)


def test_the_digest_changes_with_content_and_name_but_not_with_junk(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    first = load_task(folder, "lab").digest
    for junk in ("__pycache__/evaluator.pyc", ".swap", "env/train.py~", "env/.ipynb_checkpoints/x"):
        (folder / junk).parent.mkdir(exist_ok=True)
        (folder / junk).write_text("junk")
    assert load_task(folder, "lab").digest == first
    (folder / "env" / "train.py").write_text("print('other')\n")
    second = load_task(folder, "lab").digest
    (folder / "raw" / "points.csv").rename(folder / "raw" / "dots.csv")
    edit(folder / "task.toml", "raw/points.csv", "raw/dots.csv")
    third = load_task(folder, "lab").digest
    assert len({first, second, third}) == 3


def test_a_copy_of_the_folder_has_the_same_digest(tmp_path: Path) -> None:
    assert (
        load_task(toy_task(tmp_path / "a"), "lab").digest
        == load_task(toy_task(tmp_path / "b"), "lab").digest
    )


def test_an_unchanged_folder_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_task(tmp_path)
    first = load_task(folder, "lab")
    monkeypatch.setattr(loader, "digest_of_files", lambda *_: pytest.fail("read again"))
    assert load_task(folder, "lab") is first


def test_a_change_of_the_same_size_is_seen(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    first = load_task(folder, "lab").digest
    file = folder / "env" / "train.py"
    before = file.stat()
    file.write_text("print('brain')\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert load_task(folder, "lab").digest != first


KAGGLE = """kind = "kaggle"
ref = "REF"
consent = "https://www.kaggle.com/c/x/rules"
"""


@pytest.mark.parametrize(
    "ref", ["competitions/home-data", "datasets/me/points", "datasets/me/points/versions/3"]
)
def test_kaggle_sources_are_competitions_or_datasets(tmp_path: Path, ref: str) -> None:
    folder = toy_task(tmp_path)
    edit(
        folder / "task.toml",
        'kind = "http"\nref = "https://data.invalid/points.csv"\n',
        KAGGLE.replace("REF", ref),
    )
    assert load_task(folder, "lab").variants["full"].sources[0].ref == ref


@pytest.mark.parametrize(
    "ref", ["", "home-data", "datasets/points", "competitions/a/b", "datasets/me/p/versions/x"]
)
def test_other_kaggle_references_are_refused(tmp_path: Path, ref: str) -> None:
    folder = toy_task(tmp_path)
    edit(
        folder / "task.toml",
        'kind = "http"\nref = "https://data.invalid/points.csv"\n',
        KAGGLE.replace("REF", ref),
    )
    assert f'data.full.source[0].ref: "{ref}" found, must be "competitions/<slug>"' in message(
        folder
    )


def test_kaggle_sources_need_the_address_of_their_rules(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    edit(
        folder / "task.toml",
        'kind = "http"\nref = "https://data.invalid/points.csv"',
        'kind = "kaggle"\nref = "competitions/x"',
    )
    assert (
        "data.full.source[0].consent: a source of kind kaggle needs the address of the rules"
        in message(folder)
    )


COMMIT = "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"
HUGGINGFACE = """kind = "huggingface"
ref = "REF"
sha256 = "SHA"
"""


def huggingface_task(tmp_path: Path, ref: str, sha256: str = "") -> Path:
    folder = toy_task(tmp_path)
    text = (folder / "task.toml").read_text()
    head, _, tail = text.partition('kind = "http"\n')
    rest = tail.partition("size_mb")[2]
    source = HUGGINGFACE.replace("REF", ref).replace("SHA", sha256)
    (folder / "task.toml").write_text(f"{head}{source}size_mb{rest}")
    return folder


@pytest.mark.parametrize(
    "ref",
    [
        f"datasets/stanfordnlp/imdb@{COMMIT}:plain_text/train.parquet,plain_text/test.parquet",
        f"models/gpt2@{COMMIT}",
        f"models/me/small-1.5_b@{COMMIT}:*.json,model.safetensors",
    ],
)
def test_huggingface_sources_name_a_commit(tmp_path: Path, ref: str) -> None:
    assert load_task(huggingface_task(tmp_path, ref), "lab").variants["full"].sources[0].ref == ref


@pytest.mark.parametrize(
    "ref", ["", "imdb", "datasets/me/imdb", "datasets/me/imdb@main", f"spaces/me/x@{COMMIT}"]
)
def test_other_huggingface_references_are_refused(tmp_path: Path, ref: str) -> None:
    folder = huggingface_task(tmp_path, ref)
    assert (
        f'data.full.source[0].ref: "{ref}" found, must be "datasets/<owner>/<name>@<commit>'
        in message(folder)
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("train.json", "annotations/train.json", ""),
        (
            "train.json",
            "../train.json",
            "must be the path of a COCO file (.json) that a source before it brings",
        ),
        (
            "train.json",
            "train.csv",
            "must be the path of a COCO file (.json) that a source before it brings",
        ),
        ("size_mb = 1.0", "size_mb = 0.0", "a source of kind coco-images needs its size"),
        (
            'sha256 = ""',
            f'sha256 = "{"1" * 64}"',
            "a source of kind coco-images has none: it is many files",
        ),
    ],
)
def test_sources_of_images_name_a_list(tmp_path: Path, old: str, new: str, expected: str) -> None:
    folder = toy_task(tmp_path)
    source = (
        '[[data.full.source]]\nkind = "coco-images"\nref = "train.json"\nsha256 = ""\nsize_mb ='
        ' 1.0\nlicence = "CC0"\n'
    )
    assert old in source
    with (folder / "task.toml").open("a") as file:
        file.write("\n" + source.replace(old, new))
    if not expected:
        assert load_task(folder, "lab").variants["full"].sources[-1].kind == "coco-images"
    else:
        assert expected in message(folder)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("my_bucket/a/*", "my_bucket/a/b-00000", ""),
        ("my_bucket/a/*", "gs://my_bucket/a/*", 'must be "<bucket>/<pattern of names>"'),
        ("my_bucket/a/*", "my_bucket", 'must be "<bucket>/<pattern of names>"'),
        ("size_mb = 1.0", "size_mb = 0.0", "a source of kind gcs needs its size"),
        (
            'sha256 = ""',
            f'sha256 = "{"1" * 64}"',
            "a source of kind gcs has none: the bucket's list has checksums",
        ),
    ],
)
def test_sources_in_buckets_name_objects(tmp_path: Path, old: str, new: str, expected: str) -> None:
    folder = toy_task(tmp_path)
    source = (
        '[[data.full.source]]\nkind = "gcs"\nref = "my_bucket/a/*"\nsha256 = ""\nsize_mb ='
        ' 1.0\nlicence = "CC0"\n'
    )
    assert old in source
    with (folder / "task.toml").open("a") as file:
        file.write("\n" + source.replace(old, new))
    if not expected:
        assert load_task(folder, "lab").variants["full"].sources[-1].kind == "gcs"
    else:
        assert expected in message(folder)


@pytest.mark.parametrize(
    ("paths", "right"), [(":a.csv", True), (":a.csv,b.csv", False), (":*.csv", False), ("", False)]
)
def test_only_one_file_has_a_sha256(tmp_path: Path, paths: str, right: bool) -> None:
    folder = huggingface_task(tmp_path, f"datasets/me/points@{COMMIT}{paths}", "1" * 64)
    if right:
        assert load_task(folder, "lab").variants["full"].sources[0].sha256 == "1" * 64
    else:
        assert "only a source of kind huggingface that names one file has a sha256" in message(
            folder
        )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'ref = "https://data.invalid/points.csv"',
            'ref = "ftp://x/y"',
            "must be an address that begins with https://",
        ),
        (
            'sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"\n',
            "",
            "needs the sha256 of its file",
        ),
        ('kind = "embedded"', 'kind = "generator"', "must be empty (data.py is the generator) or "),
        (
            'ref = "raw/points.csv"',
            'ref = "raw"\nsha256 = "' + "0" * 64 + '"',
            "a folder has no sha256",
        ),
    ],
)
def test_each_kind_of_source_has_its_own_needs(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", old, new)
    assert expected in message(folder)


def test_an_embedded_source_may_not_leave_the_task_by_a_link(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (tmp_path / "secret.csv").write_text("x")
    (folder / "raw" / "points.csv").unlink()
    (folder / "raw" / "points.csv").symlink_to(tmp_path / "secret.csv")
    assert "must lie inside the task folder" in message(folder)
