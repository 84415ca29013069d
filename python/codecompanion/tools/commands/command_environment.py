"""Selects the environment variables for a model's command: everything except secrets.

A model's command may print its environment, on purpose or by chance, and its output is sent to a server. So variables
whose name or value marks them as a secret are left out, as are those that the adapters read. Variables that builds need
are kept: `PATH`, `HOME`, the language, proxies, the SSH agent's socket and programs that ask for a password. A build
that needs another variable can get it by name (`keep_variables`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from codecompanion.formats.regex import regex

_TABLE: Final[dict[str, Any]] = msgspec.json.decode(Path(__file__).with_name("secret_variables.json").read_bytes())

SECRET_NAMES: Final[tuple[str, ...]] = tuple(_TABLE["names"])
"""Names of variables to leave out, ignoring case. `NVIM` is included because a command could get keys from the editor.
"""

PLAIN_NAMES: Final[tuple[str, ...]] = tuple(_TABLE["plain_names"])
"""Names to keep even if a pattern of `SECRET_NAMES`, or the value, would exclude them."""

_URL_WITH_PASSWORD = regex(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_SECRET_VALUES = regex(
    rf"\b(?:{'|'.join(_TABLE['key_beginnings'])})[-_][\w-]{{16,}}"
    r"|\bAIza[\w-]{30,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[\w-]{10,}\.[\w-]{5,}\.|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_PASSWORD_IN_VALUE = regex(
    r"""(?:^|[?&;,\s{"'])(?:password|passwd|pwd)["']?\s{0,4}[=:]\s{0,4}["']?(?![$<*%])[^\s"';&]{4}""", re.IGNORECASE
)
"""Matches passwords in values such as JDBC URLs, ODBC connection strings and JSON."""
_MIN_KNOWN_VALUE_LENGTH = 8
"""Minimum length of a known header value; a shorter one may be any word."""

_WITHOUT_TERMINAL: Final[dict[str, Any]] = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
}


def _is_secret(value: str) -> bool:
    return bool(_URL_WITH_PASSWORD.search(value) or _SECRET_VALUES.search(value) or _PASSWORD_IN_VALUE.search(value))


class HiddenVariables(msgspec.Struct, frozen=True, kw_only=True):
    """Rules in addition to the names above: the variables and values of adapters, and the user's patterns.

    `keep` overrides everything except `hide`; a variable with an adapter's key is kept only by its exact name.
    `is_secret` returns whether a value contains a secret, as for the text of a file (`workspace.secret_text`).
    """

    of_adapters: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    keep: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    is_secret: Callable[[str], bool] = _is_secret

    def hides(self, name: str, value: str) -> bool:
        """Return whether the variable is left out."""
        if _matches(name, self.hide):
            return True
        if name in self.of_adapters:
            return name not in self.keep
        if _matches(name, self.keep):
            return False
        if is_plain_name(name):
            return False
        is_secret = _matches(name, SECRET_NAMES) or _is_secret(value) or self.is_secret(value)
        return is_secret or self._is_known(value)

    def _is_known(self, value: str) -> bool:
        return any(value in known for known in self.values) if len(value) >= _MIN_KNOWN_VALUE_LENGTH else False


def is_plain_name(name: str) -> bool:
    """Return whether the name only looks like the name of a secret."""
    return _matches(name, PLAIN_NAMES)


def hidden_names(environment: Mapping[str, str], hidden: HiddenVariables) -> list[str]:
    """Return the names of the variables that commands do not get, sorted."""
    return sorted(name for name, value in environment.items() if hidden.hides(name, value))


def clean_environment(
    environment: Mapping[str, str], own_source: Path, hidden: HiddenVariables | None = None
) -> dict[str, str]:
    """Return the environment for a program the model runs: without secrets, a terminal or our own Python.

    `own_source` is the folder that the host put on `PYTHONPATH` for itself. Editors and pagers would wait forever for
    input, so editors are set to fail immediately, and pagers to print their input.
    """
    decide = hidden or HiddenVariables()
    kept = {name: value for name, value in environment.items() if not decide.hides(name, value)}
    kept.pop("PYTHONSAFEPATH", None)
    python_path = [
        entry for entry in kept.pop("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry) != own_source
    ]
    if python_path:
        kept["PYTHONPATH"] = os.pathsep.join(python_path)
    return {**kept, **_WITHOUT_TERMINAL}


def problem_with_pattern(pattern: str) -> str:
    """Return why the pattern cannot name a variable, or "" if it can."""
    if re.fullmatch(r"[A-Za-z0-9_*?]+", pattern):
        return ""
    return f"got {pattern!r}; expected a variable name, where * matches any characters"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    upper = name.upper()
    return any(_fits(upper, pattern.upper()) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    """Return whether the pattern matches; most need no regular expression, whose compilation would slow startup."""
    if "?" in pattern or "[" in pattern:
        return fnmatchcase(name, pattern)
    match pattern.split("*"):
        case [whole]:
            return name == whole
        case [start, ""]:
            return name.startswith(start)
        case ["", end]:
            return name.endswith(end)
        case ["", part, ""]:
            return part in name
        case _:
            return fnmatchcase(name, pattern)
