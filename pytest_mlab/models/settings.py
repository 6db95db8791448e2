"""Aliases, parameters, prices and limits of models: from one TOML file, and from
``--mlab-model-arg``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.locate import expand
from pytest_mlab.lib.secrets import holds_secret, is_secret_parameter
from pytest_mlab.lib.suggest import nearest_first
from pytest_mlab.models.names import check_model_name, litellm_name
from pytest_mlab.models.parameters import check_parameters
from pytest_mlab.models.provider_errors import hide_keys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "mlab-models.toml"
"""Looked for in the project's root; else the tables ``[tool.mlab.models.<alias>]`` of its
pyproject.toml count."""

ARGUMENT = "--mlab-model-arg"

_KEY_VARIABLE = re.compile(r"\w+_API_?KEY")


class ModelTable(BaseModel):
    """One ``[models.<alias>]`` table. All further keys are parameters of litellm's completion
    call."""

    # extra="allow": the further keys are checked against litellm's lists, which differ by model.
    # strict: otherwise "60" and true would pass as numbers.
    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    model: str = Field(
        "", description="litellm's name of the model; the alias itself when left out"
    )
    tools: Literal["native", "text"] | None = Field(None, description="how tools are offered to it")
    context: int | None = Field(None, gt=0, description="tokens that fit into a prompt")
    images: bool | None = Field(None, description="whether it takes images")
    api_key_env: str = Field("", description="environment variable that holds its key")
    rpm: int | None = Field(None, gt=0, description="requests a minute, over all workers")
    tpm: int | None = Field(None, gt=0, description="tokens a minute, over all workers")
    input_cost_per_token: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="dollars"
    )
    output_cost_per_token: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="dollars"
    )
    cache_read_input_token_cost: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="dollars"
    )

    @property
    def params(self) -> dict[str, Any]:
        """The parameters for litellm."""
        return dict(self.model_extra or {})

    @property
    def prices(self) -> TokenPrices | None:
        """The user's own prices; without a price of their own, cached tokens cost the same."""
        prompt, completion = self.input_cost_per_token, self.output_cost_per_token
        if prompt is None or completion is None:
            return None
        cached = self.cache_read_input_token_cost
        return TokenPrices(prompt, completion, prompt if cached is None else cached)


@dataclass(frozen=True)
class ModelTables:
    """The tables of one file by alias, unchecked; ``source`` names the file and the table that
    holds them."""

    source: str = FILE
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def find(cls, file: Path | None, rootdir: Path) -> ModelTables:
        """Those of ``file``, or of the project when that is None. Raises ConfigError for a file
        that cannot be read, for keys beside ``[models.<alias>]``, and for tables in both of a
        project's places."""
        if file is not None:
            path = expand(file).absolute()
            path = path if path.is_file() else rootdir / file
            if not path.is_file():
                raise ConfigError(f"--mlab-models={file}: no such file here or in {rootdir}")
            return cls._of_file(path)
        own, project = rootdir / FILE, rootdir / "pyproject.toml"
        found = cls._of_project(project) if project.is_file() else cls()
        if own.is_file() and found.tables:
            raise ConfigError(
                f"models are described in {own} and in {found.source}; move the tables into one of"
                " them"
            )
        return cls._of_file(own) if own.is_file() else found

    @classmethod
    def _of_file(cls, path: Path) -> ModelTables:
        data = _toml(path)
        others = sorted(set(data) - {"models"})
        if others:
            raise ConfigError(
                f"{path}: unknown key {others[0]!r}; everything stands in tables [models.<alias>]"
            )
        return cls._checked(f"{path}: models", data.get("models", {}))

    @classmethod
    def _of_project(cls, path: Path) -> ModelTables:
        return cls._checked(
            f"{path}: tool.mlab.models",
            _toml(path).get("tool", {}).get("mlab", {}).get("models", {}),
        )

    @classmethod
    def _checked(cls, source: str, tables: Any) -> ModelTables:
        if not isinstance(tables, dict) or not all(
            isinstance(table, dict) for table in tables.values()
        ):
            raise ConfigError(f"{source}: write one table for each model, such as [models.mine]")
        return cls(source, tables)

    def settings(
        self, names: Iterable[str], *, main: Sequence[str] = (), args: Sequence[str] = ()
    ) -> tuple[ModelSettings, ...]:
        """The settings of the models called ``names``; ``args`` (``key=value``) are those of the
        ``main`` ones, over what stands in the file. Raises ConfigError naming the file, the key,
        the value found and what is allowed."""
        given = arguments(args)
        return tuple(
            self._one(name, given if name in main else {})
            for name in dict.fromkeys(filter(None, names))
        )

    def _one(self, name: str, args: Mapping[str, Any]) -> ModelSettings:
        where = f"{self.source}.{name}"
        table = validated(self.tables.get(name, {}), where)
        model = litellm_name(table.model or name)
        if problem := check_model_name(model):
            known = (
                f"; aliases in {self.source}: {', '.join(nearest_first(name, self.tables))}"
                if self.tables
                else ""
            )
            raise ConfigError(f"{where}: {problem}" if name in self.tables else f"{problem}{known}")
        # The file alone first, so that a fault in it is reported by the file's name and not as one
        # of the command line.
        check_parameters(model, table.params, where)
        if args:
            # Merged and not only the arguments: some faults exist only together, such as one price
            # of two.
            table = validated({**self.tables.get(name, {}), **args}, ARGUMENT)
            check_parameters(model, table.params, ARGUMENT)
        return ModelSettings(
            name=name,
            model=model,
            params=table.params,
            tools=table.tools or "",
            context=table.context,
            images=table.images,
            prices=table.prices,
            rpm=table.rpm,
            tpm=table.tpm,
            api_key_env=table.api_key_env,
        )


def validated(table: Mapping[str, Any], where: str) -> ModelTable:
    """``table``, parsed. Raises ConfigError that begins with ``where``."""
    # Ahead of pydantic, whose error would quote the value that it refuses, and so print a key.
    _refuse_keys(table, where)
    try:
        found = ModelTable(**table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        value = json.dumps(first["input"], default=str)
        raise ConfigError(
            f"{where}: {'.'.join(map(str, first['loc']))}: found {value}; {_lower(first['msg'])}"
        ) from None
    if (found.input_cost_per_token is None) != (found.output_cost_per_token is None):
        raise ConfigError(
            f"{where}: input_cost_per_token and output_cost_per_token belong together; write both"
        )
    if found.cache_read_input_token_cost is not None and found.prices is None:
        raise ConfigError(
            f"{where}: cache_read_input_token_cost needs input_cost_per_token and"
            " output_cost_per_token"
        )
    return found


def _refuse_keys(value: Any, where: str, name: str = "") -> None:
    """Secrets belong into the environment: files are committed and command lines are logged."""
    advice = 'write api_key_env = "<NAME>_API_KEY", the environment variable that holds it'
    if isinstance(value, Mapping):
        for key, item in value.items():
            # Names of other forms may not be taken for secrets, and their values would be written
            # into traces.
            if key == "api_key_env" and not (
                isinstance(item, str) and _KEY_VARIABLE.fullmatch(item)
            ):
                raise ConfigError(
                    f"{where}: api_key_env: it names an environment variable that ends in _API_KEY"
                    " (so that its value reaches the trials, and never what they write)"
                )
            if is_secret_parameter(str(key)):
                raise ConfigError(
                    f"{where}: {key} looks like a secret, and secrets do not belong here; {advice}"
                )
            _refuse_keys(item, where, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_keys(item, where, name)
    # By shape, and by the values of this environment: a key may look like a word.
    elif isinstance(value, str) and (holds_secret(value) or hide_keys(value) != value):
        raise ConfigError(
            f"{where}: the value of {name} holds a key or a password, which do not belong here;"
            f" {advice}"
        )


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def arguments(texts: Iterable[str]) -> dict[str, Any]:
    """``key=value`` texts as parameters: a value is JSON where it is, else the text itself. Raises
    ConfigError."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"{ARGUMENT}={hide_keys(text)}: write key=value, such as temperature=0.2"
            )
        if key.strip() == "model":
            raise ConfigError(f"{ARGUMENT}={text}: the model is named by --mlab-model")
        if key.strip() in found:
            raise ConfigError(f"{ARGUMENT}: {key.strip()} is given twice; leave one out")
        found[key.strip()] = _json_or_text(value)
    return found


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
