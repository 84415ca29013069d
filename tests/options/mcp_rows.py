"""Rows for options of MCP servers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.options import mcp_scenes as mcp
from tests.options.row import Row, loop


def rows() -> Iterator[Row]:
    """Yield the rows for options that the scene `served` does not show."""

    def around(more: str, of_all: str = "") -> str:
        return loop(f"mcp = {{ servers = {{ mine = {{ {more} }} }}, {of_all} }}")

    telling = around("cmd = { 'PYTHON', 'TELLING' }")
    for option, value in (
        ("start_with_chat", "true"),
        ("wait", "0"),
        ("servers.mine.cwd", "'/'"),
        ("servers.mine.env", "{ MINE = 'pencil' }"),
        ("servers.mine.start_timeout", "1"),
        ("servers.mine.timeout", "1"),
        ("servers.mine.tools.mine.enabled", "false"),
        ("servers.mine.tools.mine.require_approval_before", "false"),
        ("servers.mine.tools.mine.timeout", "1"),
    ):
        yield Row(f"mcp.{option}", value, mcp.told, telling)
    yield Row("mcp.project_file", "false", mcp.listed)
    address = around("url = 'FILL_URL/one'")
    yield Row("mcp.servers.mine.url", "'FILL_URL/two'", mcp.reached, address)
    yield Row("mcp.servers.mine.headers", "{ ['x-mine'] = 'yes' }", mcp.reached, address)
