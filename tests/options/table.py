"""All rows, and the options that have no scene, with the reason.

A row names the option by its path in the schema with `mine` for a free name: `rules.mine.files` is the row of
`rules.<group>.files`.
"""

from __future__ import annotations

from tests.options import editor_rows, ghost_rows, host_rows, mcp_rows, plain_rows
from tests.options.row import Row, Scene

__all__ = ["ROWS", "WITHOUT_SCENE", "Row", "Scene"]

ROWS: tuple[Row, ...] = (
    *host_rows.rows(),
    *editor_rows.rows(),
    *plain_rows.rows(),
    *ghost_rows.rows(),
    *mcp_rows.rows(),
)

WITHOUT_SCENE: dict[str, str] = {
    "mcp.servers.mine.start_timeout": "A start that is stopped at once leaves a pipe open for a while;"
    " tests/unit/mcp/test_server_connection.py has the option.",
}
"""Why an option can have no scene, by path."""
