from __future__ import annotations

from pytest_mlab.core.task import Resources
from pytest_mlab.sandboxes import variables as environment


def test_nothing_of_the_harness_but_what_describes_the_machine() -> None:
    host = {
        "OPENAI_API_KEY": "sk-1",
        "PYTEST_CURRENT_TEST": "x",
        "PYTHONPATH": "/p",
        "PATH": "/host/bin",
        "HOME": "/home/me",
        "HTTPS_PROXY": "http://user:secret@proxy",
        "OPENBLAS_CORETYPE": "Haswell",
    }
    env = environment.inside(Resources(), home="/tmp", path="/usr/bin", host=host)
    assert (env["HOME"], env["TMPDIR"], env["PATH"]) == ("/tmp", "/tmp", "/usr/bin")
    assert env["OPENBLAS_CORETYPE"] == "Haswell"
    assert set(env) & set(host) == {"PATH", "HOME", "OPENBLAS_CORETYPE"}


def test_threads_follow_the_tasks_cpus() -> None:
    env = environment.inside(Resources(cpus=3), home="/tmp", host={})
    assert {env[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")} == {"3"}


def test_gpus_are_seen_only_when_the_task_has_some() -> None:
    host = {"CUDA_VISIBLE_DEVICES": "1,2"}
    assert environment.inside(Resources(), home="/tmp", host=host)["CUDA_VISIBLE_DEVICES"] == ""
    assert (
        environment.inside(Resources(gpus=1), home="/tmp", host=host)["CUDA_VISIBLE_DEVICES"]
        == "1,2"
    )
    assert "CUDA_VISIBLE_DEVICES" not in environment.inside(Resources(gpus=1), home="/tmp", host={})


def test_a_containers_image_keeps_its_own_path() -> None:
    assert "PATH" not in environment.inside(Resources(), home="/tmp", host={"PATH": "/host/bin"})
