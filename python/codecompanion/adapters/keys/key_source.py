"""Reads an adapter's key from an environment variable, a command, a file, or the configuration itself.

A key exists only in memory. It is never logged, stored or shown; an error names its source, never its content.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from codecompanion.adapters.base import AdapterSettings
from codecompanion.errors import MissingKey
from codecompanion.formats.regex import regex

COMMAND_LIMIT_S = 30.0
"""Seconds to wait for a command, which may ask for a passphrase in its own window."""
FROM_FUNCTION = "function"
"""Value of `AdapterSettings.key` if a function in the configuration returns the key (see `given`)."""
LITERAL = "literal"
"""Prefix of an `AdapterSettings.key` that is not a known source, followed by at most three characters of the value."""
_MAX_KEY_LENGTH = 16_384
_LINE_BREAKS = regex(r"[\r\n]")
_NO_WORD = regex(r"[^A-Za-z0-9]+")


class KeyReader:
    """Reads keys. Blocks (a command runs): never call it on an event loop. The adapter caches the result.

    `given` contains the keys that functions in the configuration (in Lua) returned, by adapter name. `on_key` receives
    every key found, so that it is redacted everywhere.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        command_limit_s: float = COMMAND_LIMIT_S,
        on_key: Callable[[str], None] = lambda key: None,
    ) -> None:
        self._given: dict[str, str] = {}
        self._environ = os.environ if environ is None else environ
        self._limit_s = command_limit_s
        self._on_key = on_key
        self.give(given or {})

    def __repr__(self) -> str:
        """Show the names, never the keys."""
        return f"KeyReader({sorted(self._given)})"

    def give(self, secrets: Mapping[str, str]) -> None:
        """Add keys that functions in the configuration returned, by adapter name."""
        self._given.update(secrets)
        for key in secrets.values():
            self._on_key(key)

    def look_in_files(self, entries: Iterable[AdapterSettings]) -> None:
        """Pass keys stored in files to `on_key` before adapters need them, because a tool may read a file first."""
        for settings in entries:
            if settings.key.startswith("file:"):
                with contextlib.suppress(MissingKey):  # reported where the key is needed
                    self._on_key(self._open(settings.key.removeprefix("file:").strip(), settings))

    def __call__(self, settings: AdapterSettings) -> str:
        """Return the key, or "" for an endpoint without a key.

        Raises:
            MissingKey: the key is not in its source; the message names the adapter, the source and the remedy.
        """
        given = self._given.get(settings.name)
        if not given and not settings.key:
            return ""
        key = given or self._find(settings)
        self._on_key(key)
        return _checked(key, settings)

    def _find(self, settings: AdapterSettings) -> str:
        if settings.key == FROM_FUNCTION:
            raise _missing(settings, "the function env.api_key returned no key")
        kind, colon, rest = settings.key.partition(":")
        if colon and kind == "cmd":
            return self._run(rest.strip(), settings)
        if colon and kind == "file":
            return self._open(rest.strip(), settings)
        if colon and kind == LITERAL:
            raise _literal(settings, rest)
        key = self._environ.get(settings.key, "")
        if not key.strip():
            raise _missing(settings, f"the environment variable {settings.key} is not set")
        return key

    def _run(self, command: str, settings: AdapterSettings) -> str:
        label = key_label(settings)
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._limit_s,
                env=dict(self._environ),
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Without `from`: the exception contains the command's output.
            raise _missing(settings, f"{label} did not finish within {self._limit_s:g} s") from None
        except (OSError, ValueError) as error:
            raise _missing(settings, f"{label} cannot be started ({type(error).__name__})") from None
        if done.returncode != 0:
            raise _missing(settings, f"{label} failed with exit status {done.returncode}")
        key = done.stdout.decode("utf-8", "replace").rstrip("\r\n")
        if not key.strip():
            raise _missing(settings, f"{label} printed nothing")
        return key

    def _open(self, name: str, settings: AdapterSettings) -> str:
        label = key_label(settings)
        try:
            with Path(name).expanduser().open("rb") as file:
                key = file.read(_MAX_KEY_LENGTH + 1).decode("utf-8").strip()
        except UnicodeDecodeError:
            raise _missing(settings, f"{label} is not a text file") from None
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or "no home folder"
            raise _missing(settings, f"{label} cannot be read ({reason.lower()})") from None
        if not key:
            raise _missing(settings, f"{label} is empty")
        return key


def key_variable(settings: AdapterSettings) -> str:
    """Return the environment variable of the key, or "" if the key has another source."""
    return "" if ":" in settings.key or settings.key == FROM_FUNCTION else settings.key


def key_label(settings: AdapterSettings) -> str:
    """Return the key's source for messages: `OPENAI_API_KEY`, "the command `pass show openai`", a file."""
    kind, colon, rest = settings.key.partition(":")
    if colon and kind == "cmd":
        return f"the command `{rest.strip()}`"
    if colon and kind == "file":
        return f"the file {rest.strip()}"
    if colon and kind == LITERAL:
        return "env.api_key"
    return "the function env.api_key" if settings.key == FROM_FUNCTION else settings.key


def _checked(key: str, settings: AdapterSettings) -> str:
    key = key.strip()
    if _LINE_BREAKS.search(key) or len(key) > _MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        # It would become an HTTP header: name the source, not the content.
        where = key_label(settings) or "the configuration"
        raise _missing(settings, f"{where} provided no valid key (expected one line of ASCII)")
    return key


def _literal(settings: AdapterSettings, start: str) -> MissingKey:
    variable = f"{_NO_WORD.sub('_', settings.name).lstrip('0123456789_').upper() or 'MY'}_API_KEY"
    error = MissingKey(
        f"{settings.name}: no API key: env.api_key (“{start}…”) takes an environment variable, not the key"
        f' itself. Set {variable} in your shell, and write api_key = "${variable}" (:help codecompanion-keys).'
    )
    error.brief = "env.api_key is not the name of a variable"
    return error


def _missing(settings: AdapterSettings, why: str) -> MissingKey:
    name = settings.name
    change = f"hange adapters.http.{name}"
    remedy = f"Set it in your shell and restart Neovim, c{change}" if key_variable(settings) else f"C{change}"
    error = MissingKey(f"{name}: no API key: {why}. {remedy}, or choose another adapter with ga.")
    error.brief = why.removeprefix("the environment variable ")
    return error
