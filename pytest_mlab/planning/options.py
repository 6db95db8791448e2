"""All options in one table: pytest's ``--mlab-*`` flags and ini settings, and those of ``mlab
plan``.

A value comes from the command line, else from the ini file, else from the default, and is checked
once, by :func:`resolve`. To add an option, add a row to :data:`TABLE` and a field of the same name
to :class:`MlabOptions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.core.trial import Outcome
from pytest_mlab.core.values import (
    PerModel,
    assignment,
    name,
    number,
    one_of,
    positive,
    rate,
    switch,
    whole,
)
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.durations import parse_duration
from pytest_mlab.planning.retry import parse_outcomes

NEWEST = "newest"
"""What ``--mlab-resume`` without a value means: the newest run that was started with the same
settings."""

Kind = Literal["text", "list", "switch", "optional"]
IniType = Literal["string", "args", "bool", "int", "float"]


@dataclass(frozen=True)
class Option:
    """One row of the table. ``parse`` turns a text into the value and raises ValueError with what
    is allowed.

    ``kind``: ``text`` takes one value, ``list`` may be repeated, ``switch`` takes none,
    ``optional`` takes a value or stands alone. ``ini`` is the type of the ini setting of the same
    name."""

    name: str
    help: str
    kind: Kind = "text"
    parse: Callable[[str], Any] = str
    metavar: str = "VALUE"
    ini: IniType = "string"

    @property
    def flag(self) -> str:
        """On the command line."""
        return f"--mlab-{self.name}"

    @property
    def dest(self) -> str:
        """In pytest's options and in an ini file."""
        return "mlab_" + self.field

    @property
    def field(self) -> str:
        """In :class:`MlabOptions`."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class MlabOptions:
    """All options of one run, checked. None means: not given.

    ``max_time`` and ``heartbeat`` are seconds, ``max_cost`` is dollars for one trial,
    ``run_max_cost`` for all, ``rpm`` and ``tpm`` are requests and tokens a minute, ``threshold``
    the relative improvement over the baseline to pass, ``fail_under`` the suite's success rate (0
    to 1) to reach."""

    model: tuple[str, ...] = ()
    model_arg: tuple[str, ...] = ()
    models: Path | None = None
    edit_model: str | None = None
    fast_model: str | None = None
    agent: tuple[str, ...] = ()
    agent_arg: tuple[str, ...] = ()
    suite: str = "mlagentbench"
    task: tuple[str, ...] = ()
    # Those of MLAgentBench's published results: 8 runs of each task, 50 steps, 5 hours.
    repeats: int = 8
    max_steps: int = 50
    max_time: float = 5 * 3600.0
    max_tokens: int | None = None
    max_cost: float | None = None
    run_max_cost: float | None = None
    rpm: tuple[PerModel, ...] = ()
    tpm: tuple[PerModel, ...] = ()
    exclude_waits: bool = False
    sandbox: str = "auto"
    docker_image: str | None = None
    network: bool = False
    data: str = "mini"
    help: str = "nobody"
    threshold: float | None = None
    gate: str | None = None
    fail_under: float | None = None
    strict: bool = False
    allow_nothing: bool = False
    debug: bool = False
    plan: bool = False
    run_dir: Path | None = None
    resume: str | None = None
    retry: tuple[Outcome, ...] = ()
    record: Path | None = None
    replay: Path | None = None
    replay_mode: str | None = None
    cache_dir: Path | None = None
    accept_rules: tuple[str, ...] = ()
    snapshot_file_mb: int = 200
    run_disk_mb: int = 50_000
    heartbeat: float = 60.0
    junit_properties: str = "all"

    @property
    def active(self) -> bool:
        """True when trials are to run: a model, an agent or a run to resume was named."""
        return bool(self.model or self.agent or self.resume)

    @property
    def sandbox_options(self) -> SandboxOptions:
        """Which backend to use, and its settings."""
        return SandboxOptions(self.sandbox, self.docker_image or "")

    @property
    def budget(self) -> Budget:
        """The limits of one trial."""
        return Budget(
            self.max_steps, self.max_time, self.max_tokens, self.max_cost, self.exclude_waits
        )


TABLE: tuple[Option, ...] = (
    Option(
        "model",
        "litellm model name, such as gpt-4-turbo or openai/my-model, or an alias of"
        " mlab-models.toml (repeatable); without --mlab-agent it drives the research agent",
        kind="list",
        parse=name,
        metavar="NAME",
        ini="args",
    ),
    Option(
        "model-arg",
        "Parameter of every call of the models of --mlab-model, by litellm's name: temperature=0.2,"
        " reasoning_effort=high, max_tokens=4000 (repeatable); it wins over what an agent asks for",
        kind="list",
        parse=assignment,
        metavar="KEY=VALUE",
        ini="args",
    ),
    Option(
        "models",
        "File of model aliases with their parameters, prices and limits (default: mlab-models.toml,"
        " else [tool.mlab.models.<alias>] in pyproject.toml)",
        parse=Path,
        metavar="FILE",
    ),
    Option(
        "edit-model",
        "Model that rewrites files (default: the main model)",
        parse=name,
        metavar="NAME",
    ),
    Option(
        "fast-model",
        "Model that summarises long texts (default: the main model)",
        parse=name,
        metavar="NAME",
    ),
    Option(
        "agent",
        "Agent under test: a name from agents/, path/to/file.py:Class, package.module:Class, an"
        " entry point or any program, command:LINE (repeatable)",
        kind="list",
        parse=name,
        metavar="AGENT",
        ini="args",
    ),
    Option(
        "agent-arg",
        "Setting of an agent as key=value, or agent.key=value where several are named (repeatable);"
        " mlab agents lists them; --mlab-agent='research[retrieval=true]' is a variant with a name"
        " of its own",
        kind="list",
        parse=assignment,
        metavar="KEY=VALUE",
        ini="args",
    ),
    Option(
        "suite",
        "Suite of tasks, by name or path (default: mlagentbench)",
        parse=name,
        metavar="NAME",
    ),
    Option(
        "task",
        "Only this task, by exact name or glob such as 'house-*' (repeatable)",
        kind="list",
        parse=name,
        metavar="NAME",
        ini="args",
    ),
    Option(
        "repeats",
        "Trials of each agent, model and task (default: 8)",
        parse=whole,
        metavar="N",
        ini="int",
    ),
    Option("max-steps", "Steps of one trial (default: 50)", parse=whole, metavar="N", ini="int"),
    Option(
        "max-time",
        "Wall time of one trial, such as 5h, 90m or 30s (default: 5h)",
        parse=parse_duration,
        metavar="TIME",
    ),
    Option(
        "max-tokens",
        "Prompt plus completion tokens of one trial",
        parse=whole,
        metavar="N",
        ini="int",
    ),
    Option("max-cost", "Dollars of one trial", parse=positive, metavar="USD", ini="float"),
    Option(
        "run-max-cost",
        "Dollars of the whole run, over all workers and sessions: once they are spent no further"
        " trial starts, and those that run are finished",
        parse=positive,
        metavar="USD",
        ini="float",
    ),
    Option(
        "rpm",
        "Requests a minute to each model, or to one as model=N, over all workers (repeatable)",
        kind="list",
        parse=PerModel.parse,
        metavar="N",
        ini="args",
    ),
    Option(
        "tpm",
        "Tokens a minute of each model, or of one as model=N, over all workers (repeatable)",
        kind="list",
        parse=PerModel.parse,
        metavar="N",
        ini="args",
    ),
    Option(
        "exclude-waits",
        "Waits for model providers (between attempts, and for --mlab-rpm and --mlab-tpm) do not"
        " count as the trial's time, up to as long again as that",
        kind="switch",
        parse=switch,
        ini="bool",
    ),
    Option(
        "sandbox",
        "Where agent code executes: auto, bubblewrap, docker or local; auto takes the first of"
        " bubblewrap and docker that works, local isolates nothing (default: auto)",
        parse=name,
        metavar="NAME",
    ),
    Option(
        "docker-image",
        "Image for a sandbox that runs containers, such as docker",
        parse=name,
        metavar="IMAGE",
    ),
    Option("network", "Let sandboxes reach the network", kind="switch", parse=switch, ini="bool"),
    Option(
        "data",
        "Data variant: mini or full (default: mini)",
        parse=one_of("mini", "full"),
        metavar="VARIANT",
    ),
    Option(
        "help",
        "Who answers an agent's Request Help: nobody, or human, which is you at the terminal while"
        " the trial's time goes on (default: nobody)",
        parse=one_of("nobody", "human"),
        metavar="WHO",
    ),
    Option(
        "threshold",
        "Improvement over the baseline to pass, strictly, in place of each task's own; 0.1 is"
        " 10 %%",
        parse=number,
        metavar="X",
        ini="float",
    ),
    Option(
        "gate",
        "What fails: each trial that does not beat its baseline (trial), only the verdicts"
        " (aggregate), nothing that an agent does (none) (default: trial; aggregate with"
        " --mlab-fail-under)",
        parse=one_of("trial", "aggregate", "none"),
        metavar="GATE",
    ),
    Option(
        "fail-under",
        "Success rate to reach, such as 0.5 or 50%%; implies --mlab-gate=aggregate",
        parse=rate,
        metavar="RATE",
    ),
    Option(
        "strict",
        "A missing key, data set, package, GPU or sandbox is an error in place of a skip",
        kind="switch",
        parse=switch,
        ini="bool",
    ),
    Option(
        "allow-nothing",
        "Exit with 0, and not with 5, where every trial was skipped or ended in an error that is"
        " not the agent's",
        kind="switch",
        parse=switch,
        ini="bool",
    ),
    Option(
        "debug",
        "Run agents in pytest's own process, without a time limit and with -s, so that breakpoint()"
        " and coverage work in them; needs -n 0",
        kind="switch",
        parse=switch,
        ini="bool",
    ),
    Option(
        "plan",
        "Show what this command line would run, its worst-case hours and dollars and what is"
        " missing for it; run nothing",
        kind="switch",
        parse=switch,
        ini="bool",
    ),
    Option("run-dir", "Folder of this run (default: reports/<run id>)", parse=Path, metavar="DIR"),
    Option(
        "resume",
        "Run only what is missing in a run (its folder, its id, or the newest one with the same"
        " settings) and report the rest from disk; write --mlab-resume=RUN",
        kind="optional",
        parse=name,
        metavar="RUN",
    ),
    Option(
        "retry",
        "With --mlab-resume: run trials with these outcomes again, such as infra,provider; also"
        " task, agent, invalid, no_submission, below. Their earlier attempts stay on disk and are"
        " not counted, but for their dollars",
        parse=parse_outcomes,
        metavar="OUTCOMES",
    ),
    Option(
        "record",
        "Keep every model reply in this folder, one file a trial, for --mlab-replay; the trials"
        " must not be in it yet",
        parse=Path,
        metavar="DIR",
    ),
    Option(
        "replay",
        "Answer model calls from this folder's recordings: no network, no key",
        parse=Path,
        metavar="DIR",
    ),
    Option(
        "replay-mode",
        "Which recorded reply answers a call: that of an equal request, else the trial fails with a"
        " diff (strict); of an equal request, else the next one (lenient) (default: strict)",
        parse=one_of("strict", "lenient"),
        metavar="MODE",
    ),
    Option(
        "cache-dir",
        "Folder of prepared data and workspaces (default: the user's cache)",
        parse=Path,
        metavar="DIR",
    ),
    Option(
        "accept-rules",
        "Accept the rules of a data source, by the name that the refusal gives (repeatable)",
        kind="list",
        parse=name,
        metavar="RULES",
        ini="args",
    ),
    Option(
        "snapshot-file-mb",
        "Larger files are kept in a trial's final snapshot only, in MiB (default: 200)",
        parse=whole,
        metavar="N",
        ini="int",
    ),
    Option(
        "run-disk-mb",
        "MiB that a run's snapshots may take; past it only final ones are stored (default: 50000)",
        parse=whole,
        metavar="N",
        ini="int",
    ),
    Option(
        "heartbeat",
        "Interval of the line that shows running trials, such as 60s or 5m (default: 60s)",
        parse=parse_duration,
        metavar="TIME",
    ),
    Option(
        "junit-properties",
        "Properties in the JUnit file: all, suite or none; some strict readers refuse those of test"
        " cases (default: all)",
        parse=one_of("all", "suite", "none"),
        metavar="WHICH",
    ),
)

BY_FIELD: Mapping[str, Option] = {option.field: option for option in TABLE}


class _AddsOptions(Protocol):
    def __call__(self, *names: str, **settings: Any) -> Any: ...


def add_flags(add: _AddsOptions) -> None:
    """Add all flags through ``add``: argparse's ``add_argument`` or pytest's ``addoption``."""
    for option in TABLE:
        # No defaults here: None tells resolve() to look into the ini file.
        settings: dict[str, Any] = {"dest": option.dest, "default": None, "help": option.help}
        if option.kind == "switch":
            settings["action"] = "store_true"
        else:
            settings["metavar"] = option.metavar
        if option.kind == "list":
            settings["action"] = "append"
        if option.kind == "optional":
            settings |= {"nargs": "?", "const": NEWEST}
        add(option.flag, **settings)


def resolve(
    cli: Callable[[str], Any], ini: Callable[[str], Any] = lambda dest: None
) -> MlabOptions:
    """The options: ``cli`` and ``ini`` give the raw value for an option's ``dest``, None when it
    was not given.

    Raises ConfigError naming the option, the value found and what is allowed.
    """
    values: dict[str, Any] = {}
    for option in TABLE:
        raw, where = cli(option.dest), option.flag
        if raw is None:
            raw, where = _ini_value(option, ini), f"{option.dest} in the ini file"
        if raw is not None:
            values[option.field] = _parse(option, raw, where)
    options = MlabOptions(**values)
    _check_together(options)
    return options


def _ini_value(option: Option, ini: Callable[[str], Any]) -> Any:
    try:
        value = ini(option.dest)
    # pytest raises ValueError for a text that is not of the setting's type.
    except ValueError as error:
        raise ConfigError(f"{option.dest} in the ini file: {error}") from error
    # A setting that is there and empty counts as not given.
    return None if value in ("", []) else value


def _parse(option: Option, raw: Any, where: str) -> Any:
    if option.kind == "list":
        return tuple(_parse_one(option, one, where) for one in raw)
    return _parse_one(option, raw, where)


def _parse_one(option: Option, raw: Any, where: str) -> Any:
    # TOML may also hold lists, tables and dates, and true where a number or a name is meant.
    scalar = isinstance(raw, (str, int, float, Path))
    if not scalar or (isinstance(raw, bool) and option.ini != "bool"):
        raise ConfigError(f"{where}={raw!r}: each value must be a text or a number")
    try:
        # An ini file's numbers and switches arrive parsed; as text they pass the same checks as a
        # flag.
        return option.parse(str(raw))
    except ValueError as error:
        raise ConfigError(f"{where}={raw}: {error}") from None


def _check_together(options: MlabOptions) -> None:
    if options.plan and not options.active:
        raise ConfigError(
            "--mlab-plan shows the plan of a run; name a model with --mlab-model, an agent with"
            " --mlab-agent or a run with --mlab-resume"
        )
    if options.fail_under is not None and options.gate not in (None, "aggregate"):
        raise ConfigError(
            f"--mlab-fail-under needs --mlab-gate=aggregate, found --mlab-gate={options.gate};"
            " leave one of the two out"
        )
    if options.resume and options.run_dir:
        raise ConfigError(
            "--mlab-resume and --mlab-run-dir both name a run; a resumed run stays where it is"
        )
    if options.retry and not options.resume:
        raise ConfigError(
            "--mlab-retry runs trials of an earlier run again; name it with --mlab-resume=RUN"
        )
    if options.record and options.replay:
        raise ConfigError(
            "--mlab-record and --mlab-replay exclude each other: a replay makes no calls to record"
        )
    if options.replay_mode and not options.replay:
        raise ConfigError(f"--mlab-replay-mode={options.replay_mode} needs --mlab-replay=DIR")
    if (
        options.resume
        and (options.record or options.replay)
        and not (options.model or options.agent)
    ):
        flag = "--mlab-record" if options.record else "--mlab-replay"
        raise ConfigError(
            f"a resumed run goes on recording or replaying as it began; leave {flag} out"
        )


def given(options: MlabOptions) -> dict[str, str]:
    """The options that differ from their defaults, as text by flag: for a run's identity and for
    commands to copy."""
    default = MlabOptions()
    return {
        BY_FIELD[f.name].flag: _text(getattr(options, f.name))
        for f in fields(options)
        if getattr(options, f.name) != getattr(default, f.name)
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
