"""Reads server entries from the user's settings and other programs' files, and resolves how to start each server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE, is_too_deep
from codecompanion.mcp.server_spec import ServerSpec, ToolChoice
from codecompanion.mcp.server_types import McpError
from codecompanion.session.mcp_config.expand_variables import expanded, looked_up
from codecompanion.settings_sections import McpServerSettings

MAX_FILE_BYTES = 1_000_000
MAX_SERVERS = 100


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A server entry before its variables are expanded.

    `source`: the file it comes from, "" = the user's configuration.
    """

    name: str
    settings: McpServerSettings
    source: str = ""

    def line(self) -> str:
        """Return the command or URL as shown to the user, with the values of headers and `env` as written."""
        one = self.settings
        what = one.url or " ".join(_quoted(word) for word in one.cmd)
        extra = [f"env {name}={text}" for name, text in one.env.items()]
        extra += [f"header {name}: {text}" for name, text in one.headers.items()]
        extra += [f"in {one.cwd}"] if one.cwd else []
        return f"{self.name}: {what}" + "".join(f"\n    {line}" for line in extra)


def configured(servers: Mapping[str, McpServerSettings]) -> tuple[list[Entry], list[str]]:
    """Return the configured servers sorted by name, and a sentence for each server that cannot be used."""
    entries, mistakes = [], []
    for name, one in sorted(servers.items()):
        try:
            _check(name, one, f"mcp.servers.{name}")
            entries.append(Entry(name=name, settings=one))
        except ConfigError as error:
            mistakes.append(f"{error}. The server is left out.")
    return entries, mistakes


def read_file(path: Path, content: bytes) -> list[Entry]:
    """Return the servers of a file such as `.mcp.json`.

    Raises:
        ConfigError: the file or one of its entries is malformed; the message names the file and the key.
    """
    where = path.name
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(where, f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    text = content.decode("utf-8", "replace")
    try:
        table = None if is_too_deep(text) else json.loads(text)
    except NOT_READABLE as error:
        raise ConfigError(where, f"it is not JSON: {error}") from error
    servers = table.get("mcpServers", {}) if isinstance(table, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{where}: mcpServers", "it is not a table of servers", '{ "name": { "command": … } }')
    if len(servers) > MAX_SERVERS:
        raise ConfigError(f"{where}: mcpServers", f"got {len(servers)} servers", f"at most {MAX_SERVERS}")
    return [_entry(name, entry, path) for name, entry in sorted(servers.items())]


def _entry(name: str, given: Any, path: Path) -> Entry:
    where = f"{path.name}: mcpServers.{name}"
    if not isinstance(given, dict):
        raise ConfigError(where, f"got {type(given).__name__}", "a table with command or url")
    kind = given.get("type", "stdio" if "command" in given else "http")
    if kind not in ("stdio", "http", "streamable-http"):
        raise ConfigError(f"{where}.type", f"got {str(kind)[:40]!r}", '"stdio" or "http"')
    command = [given["command"], *_list(given.get("args", []), f"{where}.args")] if kind == "stdio" else []
    if kind == "stdio" and not isinstance(given.get("command"), str):
        raise ConfigError(f"{where}.command", f"got {type(given.get('command')).__name__}", "a program")
    table = {
        "enabled": not given.get("disabled", False),
        "cmd": command,
        "env": _texts(given.get("env", {}), f"{where}.env"),
        "cwd": given.get("cwd", ""),
        "url": given.get("url", "") if kind != "stdio" else "",
        "headers": _texts(given.get("headers", {}), f"{where}.headers"),
    }
    try:
        settings = typed.convert(table, McpServerSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(where, str(error)) from error
    _check(name, settings, where)
    return Entry(name=name, settings=settings, source=str(path))


def _check(name: str, one: McpServerSettings, where: str) -> None:
    if bool(one.cmd) == bool(one.url):
        problem = "both a command and a URL are set" if one.cmd else "neither a command nor a URL is set"
        raise ConfigError(where, problem, "exactly one of them")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise ConfigError(where, "the server name is invalid", "1 to 100 printable characters")
    if one.url and "${" not in one.url.partition("/")[0] and not one.url.startswith(("http://", "https://")):
        raise ConfigError(where, "the URL is invalid", "http://… or https://…")


def _list(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ConfigError(where, "it is not a list of strings")
    return given


def _texts(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(one, (str, int, float)) for one in given.values()):
        raise ConfigError(where, "it is not a table of strings")
    return {name: str(text) for name, text in given.items()}


def spec_of(entry: Entry, environment: Mapping[str, str], root: Path) -> ServerSpec:
    """Return how to start the server now. Blocks: a value in the user's configuration may be a command.

    Raises:
        McpError: a variable is not set, or a command failed; the message names the key.
    """
    one, where = entry.settings, f"{'mcpServers' if entry.source else 'mcp.servers'}.{entry.name}"
    value = expanded if entry.source else looked_up
    cwd = expanded(one.cwd, environment, f"{where}.cwd")
    folder = root / Path(cwd).expanduser() if cwd else root
    url = expanded(one.url, environment, f"{where}.url")
    if url and not url.startswith(("http://", "https://")):
        raise McpError(f"{where}.url: the URL is invalid; expected http://… or https://…")
    return ServerSpec(
        name=entry.name,
        command=tuple(expanded(word, environment, f"{where}.cmd") for word in one.cmd),
        env={name: value(text, environment, f"{where}.env.{name}") for name, text in one.env.items()},
        cwd=str(folder),
        url=url,
        headers={name: value(text, environment, f"{where}.headers.{name}") for name, text in one.headers.items()},
        enabled=one.enabled,
        tools=dict(_choices(one)),
        require_approval_before=one.require_approval_before,
        timeout_s=one.timeout_s,
        start_timeout_s=one.start_timeout_s,
        source=entry.source,
    )


def _choices(one: McpServerSettings) -> Iterator[tuple[str, ToolChoice]]:
    for name, said in one.tools.items():
        yield (
            name,
            ToolChoice(
                enabled=said.enabled, require_approval_before=said.require_approval_before, timeout_s=said.timeout_s
            ),
        )


def _quoted(word: str) -> str:
    return word if word and not any(letter.isspace() or letter in "\"'\\$" for letter in word) else json.dumps(word)
