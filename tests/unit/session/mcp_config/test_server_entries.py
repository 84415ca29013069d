"""Server entries: the project's file, variable expansion, errors, and tool names."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.errors import ConfigError
from codecompanion.mcp.server_types import McpError
from codecompanion.session.mcp.tool_names import model_names
from codecompanion.session.mcp.tool_schema import UnusableSchema, usable_schema
from codecompanion.session.mcp_config.expand_variables import expanded, looked_up
from codecompanion.session.mcp_config.server_entries import read_file, spec_of

FILE = Path("/project/.mcp.json")


def entries(table: Any) -> Any:
    return read_file(FILE, json.dumps(table).encode())


def test_both_kinds_of_server_are_read() -> None:
    local, remote = entries(
        {
            "mcpServers": {
                "b": {"type": "http", "url": "https://e.example/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
                "a": {"command": "npx", "args": ["-y", "some server"], "env": {"PORT": 80}},
            }
        }
    )
    assert local.line() == 'a: npx -y "some server"\n    env PORT=80'
    assert remote.line() == "b: https://e.example/mcp\n    header Authorization: Bearer ${KEY}"
    spec = spec_of(remote, {"KEY": "k"}, Path("/project"))
    assert spec.headers == {"Authorization": "Bearer k"}
    assert spec_of(local, {}, Path("/project")).cwd == "/project"


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([], r"\.mcp\.json: mcpServers"),
        ({"mcpServers": {"a": 5}}, r"mcpServers\.a"),
        ({"mcpServers": {"a": {}}}, "neither a command nor a URL is set"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, r"mcpServers\.a\.args"),
        ({"mcpServers": {"a": {"command": "x", "env": {"A": []}}}}, r"mcpServers\.a\.env"),
        ({"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}, r"mcpServers\.a\.type"),
        ({"mcpServers": {"a": {"url": "file:///etc/passwd"}}}, "the URL is invalid"),
    ],
)
def test_an_error_names_file_and_key(table: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        entries(table)


@given(st.binary(max_size=200))
def test_any_bytes_are_servers_or_an_error(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        assert read_file(FILE, content) == []


def test_a_project_can_use_variables_but_no_commands(tmp_path: Path) -> None:
    """`cmd:` would run a command that the user never saw as one."""
    (entry,) = entries({"mcpServers": {"a": {"command": "x", "env": {"A": "cmd:touch made", "B": "${B:-two}"}}}})
    spec = spec_of(entry, {}, tmp_path)
    assert spec.env == {"A": "cmd:touch made", "B": "two"}
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_values_are_expanded(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    assert looked_up(f"file:{tmp_path}/key", {}, "here") == "secret"
    assert looked_up("cmd:echo secret", {"PATH": "/usr/bin:/bin"}, "here") == "secret"
    with pytest.raises(McpError, match="here: the command ended with status 3"):
        looked_up("cmd:exit 3", {"PATH": "/usr/bin:/bin"}, "here")
    with pytest.raises(McpError, match="here: the environment variable NONE is not set"):
        expanded("a ${NONE}", {}, "here")


@given(st.text(max_size=80), st.sets(st.text(min_size=1, max_size=200), max_size=20))
def test_names_are_valid_unique_and_do_not_depend_on_the_order(server: str, tools: set[str]) -> None:
    names = model_names(server, sorted(tools))
    assert names == model_names(server, sorted(tools, reverse=True))
    assert len({name.casefold() for name in names.values()}) == len(tools)
    for name in names.values():
        assert 0 < len(name) <= 64
        assert all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)


def test_plain_names_are_unchanged() -> None:
    assert model_names("git", ["status", "log-all"]) == {"status": "git__status", "log-all": "git__log-all"}


def test_references_are_resolved_and_nesting_is_limited() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
    made = usable_schema({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert "$ref" not in json.dumps(made)
    assert made["properties"]["root"]["properties"]["name"] == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "not an object"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "not part of it"),
    ],
)
def test_a_schema_no_provider_accepts_yields_a_reason(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(UnusableSchema, match=why):
        usable_schema(schema)
