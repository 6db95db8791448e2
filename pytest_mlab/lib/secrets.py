"""What a secret is, and how it is kept out of everything that is written.

A secret is known in two ways: as the value of an environment variable whose name says so, and by
its shape, when it looks like a key that a provider hands out. Traces, logs, errors of providers,
recordings and reports all ask this module, so that what is hidden in one of them is hidden in all.

Shapes are narrow on purpose. Traces are read to find faults, and replayed replies must be the
recorded ones, so ``sk-learn``, ``key_padding_mask``, digests and base64 data stay."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

SHORTEST = 8
"""Characters of the shortest value that is looked for: shorter ones match by chance."""

HIDDEN = "[key]"
"""What replaces a secret that is known by its shape only."""

# A variable is secret by the end of its name, with or without an underscore (MYAPITOKEN), or by
# what only credentials are called anywhere in it (AUTH_TOKEN_X, OPENAI_API_KEY_2).
_VARIABLE = re.compile(
    r"(?:(?<!MON|TUR|DON|HOC|JOC)KEYS?|TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD"
    r"|CREDENTIALS?|JWT)(?:_ID)?$|API_?KEY|AUTH_?TOKEN|ACCESS_?(?:KEY|TOKEN)"
)
_ABOUT_A_SECRET = re.compile(r"_(?:FILE|PATH|DIR|URL|ENV|NAME|TYPE)$")
_PARAMETER = re.compile(
    r"(?:(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|AUTHORIZATION|SECRET|PASSWORD|CREDENTIALS?)"
    r"|(?:^|(?:API|AUTH|ACCESS|BEARER|SESSION)_?)TOKEN)$"
)


def is_secret_variable(name: str) -> bool:
    """True when the environment variable ``name`` holds a secret, going by its name."""
    name = name.upper()
    return bool(_VARIABLE.search(name)) and not _ABOUT_A_SECRET.search(name)


def is_secret_parameter(name: str) -> bool:
    """True when a setting or a header called ``name`` holds a secret.

    Narrower than :func:`is_secret_variable`, because a name that is taken for a secret here is
    refused, and models have parameters such as ``prompt_cache_key`` and ``stop_token``."""
    return bool(_PARAMETER.search(name.upper().replace("-", "_")))


# A digit between letters or a letter between digits: random text has it, words with a year do not.
# The look-ahead is bounded, so that a text of nothing but prefixes costs no quadratic time.
_RANDOM = r"(?=[\w-]{0,99}?(?:[A-Za-z]\d{1,40}[A-Za-z]|\d[A-Za-z]{1,40}\d))[\w-]{16,}"
_ANY = rf"(?:{_RANDOM}|[A-Za-z0-9]{{16,}}(?![\w-]))"
_UNBROKEN = r"(?:(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{20,}|[A-Za-z0-9]{30,})"

_IN_QUERY = (
    r"(?i:api[-_]?key|key|sig|signature|secret|password|(?:access|auth|api)?[-_]?token"
    r"|x-(?:amz|goog)-(?:signature|credential|security-token))=)"
    r"[^\s&#\"'<>{}$\[\\][^\s&#\"'<>\\]{3,}"
)


def _key(prefix: str, body: str) -> str:
    """The pattern of a key that begins with ``prefix`` at the start of a word, or after an escaped
    line break: JSON and ``repr`` write one in front of a key that starts a line.

    It begins with the literal prefix, and looks back past it, because ``re`` searches for a literal
    about twenty times as fast as for a word boundary."""
    return rf"{prefix}(?:(?<![A-Za-z0-9_]{prefix})|(?<=\\[nrt]{prefix})){body}"


def _all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.ASCII) for pattern in patterns)


# Patterns by the text without which none of them matches. `in` takes 12 microseconds for 20 KB of
# code and is nearly always all there is to do; the alternation of all patterns takes 3,000.
# The group `before` stays in front of what is hidden.
_SHAPES: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "sk-": _all(_key("sk-", _ANY)),
    "sk_": _all(_key("sk_", _ANY), _key("gsk_", _UNBROKEN)),
    "rk_": _all(_key("rk_", _ANY)),
    "rk-": _all(_key("rk-", _ANY)),
    "pk-": _all(_key("pk-", _ANY)),
    "pk_": _all(_key("pk_", _ANY)),
    "gh": _all(_key("gh[pousr]_", _UNBROKEN)),
    "github_pat_": _all(_key("github_pat_", _ANY)),
    "glpat-": _all(_key("glpat-", _ANY)),
    "hf_": _all(_key("hf_", _UNBROKEN)),
    "r8_": _all(_key("r8_", _UNBROKEN)),
    "xai-": _all(_key("xai-", _UNBROKEN)),
    "pplx-": _all(_key("pplx-", _UNBROKEN)),
    "key-": _all(_key("key-", _UNBROKEN)),
    "xox": _all(_key("xox", r"[a-z](?:\.xox[a-z])?-\d[A-Za-z0-9-]{10,}")),
    "AKIA": _all(_key("AKIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])")),
    "ASIA": _all(_key("ASIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])")),
    "AIza": _all(_key("AIza", r"[\w-]{30,}")),
    "eyJ": _all(_key("eyJ", r"[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}")),
    "pi-": _all(
        _key("nvapi-", _ANY),
        r"(?P<before>pi-[kK]ey[\"'\\]*\s*[:=]\s*[\"'\\]*)(?=[A-Za-z_.-]{0,99}\d)[\w.-]{16,}",
    ),
    "earer ": _all(r"(?P<before>earer +)[A-Za-z0-9._~+][A-Za-z0-9._~+/-]{15,}=*"),
    "uthorization": _all(
        r"(?P<before>uthorization[\"'\\]*\s*[:=]\s*[\"'\\]*(?:Basic|Token)\s+)[\w.~+/-]{8,}=*"
    ),
    "?": _all(rf"(?P<before>\?{_IN_QUERY}"),
    "&": _all(rf"(?P<before>&{_IN_QUERY}"),
    "://": _all(
        r"(?P<before>://[^\s/?#@:\"'<>\\]{0,200}:)"
        r"[^\s/?#@\"'<>\\{}$\[][^\s/?#@\"'<>\\]{0,500}(?=@)"
    ),
    "PRIVATE KEY-----": _all(
        r"(?P<before>PRIVATE KEY-----)[A-Za-z0-9+/=\s\\:,-]{40,}?(?=-----END|\Z)"
    ),
}

_SHORTEST_SHAPE = 7  # ://:x@y
_LOGIN_IN_URL = re.compile(r"^\w+://[^/@]+@")


def holds_secret(text: str) -> bool:
    """True when ``text`` contains a secret by its shape, or is a URL with a login in it."""
    return _hide_shapes(text) != text or bool(_LOGIN_IN_URL.match(text))


class Redactor:
    """Takes the secrets of ``environ``, and whatever has the shape of a key, out of texts.

    The value of a variable becomes ``[NAME]``, a key that is known by its shape ``[key]``. Applied
    twice, it gives the same as applied once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        for name, value in environ.items():
            if is_secret_variable(name) and len(value) >= SHORTEST:
                self._names |= dict.fromkeys(_spellings(value), name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first)))

    def __call__(self, text: str) -> str:
        """``text`` without secrets."""
        if any(value in text for value in self._names):
            text = self._values.sub(lambda found: f"[{self._names[found.group()]}]", text)
        return _hide_shapes(text)

    def tree(self, value: Any) -> Any:
        """The same for every text inside nested dicts, lists and tuples, keys included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.tree(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.tree(item) for item in value)
        return value


def _spellings(value: str) -> set[str]:
    """``value`` as plain text, inside JSON and inside a URL."""
    escaped = {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return {value, quote(value, safe=""), *escaped}


def _hide_shapes(text: str) -> str:
    if len(text) < _SHORTEST_SHAPE:
        return text
    for mark, patterns in _SHAPES.items():
        if mark in text:
            for pattern in patterns:
                text = pattern.sub(_hide, text)
    return text


def _hide(found: re.Match[str]) -> str:
    return found.groupdict().get("before", "") + HIDDEN
