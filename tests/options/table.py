"""All rows: every option has one.

A row names the option by its path in the schema, with `mine` in place of a user-defined name: `rules.mine.files` is the
row of `rules.<group>.files`.
"""

from __future__ import annotations

from tests.options import editor_rows, ghost_rows, host_rows, mcp_rows, plain_rows
from tests.options.row import Row, Scene

__all__ = ["ROWS", "Row", "Scene"]

ROWS: tuple[Row, ...] = (
    *host_rows.rows(),
    *editor_rows.rows(),
    *plain_rows.rows(),
    *ghost_rows.rows(),
    *mcp_rows.rows(),
)
