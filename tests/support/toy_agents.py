"""Agents as users write them, one a file, each well-behaved or bad in one way. For the task of
toy_suite.py."""

from __future__ import annotations

from pathlib import Path

_TALKING = """\
import os
import sys

from pytest_mlab import Action


class Agent:
    needs_model = True

    def run(self, env):
        assert "litellm" in sys.modules, "the fork server has imported it"
        reply = env.model.complete("{prompt} " + os.environ["OPENAI_API_KEY"])
        env.note("reply", {{"text": reply.text, "environment": dict(os.environ)}})
        print(dict(os.environ))
        answer = reply.text + os.environ["OPENAI_API_KEY"]
        env.execute(Action("Final Answer", {{"final_answer": answer}}))
"""

_HEAD = """\
from pytest_mlab import Action


def do(env, name, **args):
    return env.execute(Action(name, args))


class Agent:
    needs_model = False

    def run(self, env):
"""

BODIES = {
    "good": (
        """
        for action in env.script("reference"):
            env.execute(action)
    """
    ),
    "starter": (
        """
        do(env, "Execute Script", script_name="train.py")
        do(env, "Final Answer", final_answer="as it was")
    """
    ),
    "idle": (
        """
        return
    """
    ),
    "raising": (
        """
        do(env, "List Files", dir_path=".")
        raise RuntimeError("lost my way")
    """
    ),
    "leaving": (
        """
        raise SystemExit("I quit")
    """
    ),
    "exiting": (
        """
        import os

        do(env, "Execute Script", script_name="train.py")
        os._exit(3)
    """
    ),
    "crashing": (
        """
        import ctypes

        do(env, "List Files", dir_path=".")
        ctypes.string_at(0)
    """
    ),
    "looping": (
        """
        do(env, "Execute Script", script_name="train.py")
        while True:
            pass
    """
    ),
    "stubborn": (
        """
        do(env, "Execute Script", script_name="train.py")
        while True:
            try:
                do(env, "List Files", dir_path=".")
            except BaseException:
                pass
    """
    ),
    "patient": (
        """
        while True:
            do(env, "List Files", dir_path=".")
    """
    ),
    "detaching": (
        """
        import os, time, pathlib

        do(env, "Execute Script", script_name="train.py")
        ready, told = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                pathlib.Path(env.log_dir, "daemon.pid").write_text(str(os.getpid()))
                os.write(told, b"x")
                os.closerange(3, 256)
                while True:
                    time.sleep(3600)
            os._exit(0)
        os.read(ready, 1)
    """
    ),
    "tampering": (
        """
        do(env, "Execute Script", script_name="train.py")
        do(env, "Python REPL", command=(
            "import os, pathlib\\n"
            "for name in ['train.csv', 'test.csv']:\\n"
            "    try:\\n"
            "        os.unlink(name)\\n"
            "        pathlib.Path(name).write_text('mine')\\n"
            "    except OSError:\\n"
            "        pass"
        ))
        do(env, "Final Answer", final_answer="changed the data")
    """
    ),
    "spoiling": (
        """
        do(env, "Write File", file_name="submission.csv", content="id,label\\nb0,no\\n")
        do(env, "Final Answer", final_answer="one row")
    """
    ),
    "blabbing": (
        """
        import os

        env.note("environment", {"all": dict(os.environ)})
        print(dict(os.environ))
        do(env, "Final Answer", final_answer=str(dict(os.environ)))
    """
    ),
    "throttled": (
        """
        from pytest_mlab.errors import RateLimitError

        raise RateLimitError("429 until the retries were spent")
    """
    ),
    "overlong": (
        """
        from pytest_mlab import ContextWindowError

        raise ContextWindowError("too long")
    """
    ),
}


def write_toy_agents(root: Path) -> Path:
    """Write ``root/agents/<name>.py`` for every body; return the folder."""
    folder = root / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    for name, prompt in {"talking": "hello", "refused": "please refuse"}.items():
        (folder / f"{name}.py").write_text(_TALKING.format(prompt=prompt), encoding="utf-8")
    for name, body in BODIES.items():
        (folder / f"{name}.py").write_text(_HEAD + body, encoding="utf-8")
    return folder
