"""All rows; the options that have no scene, with the reason; and those that have none yet.

A row names the option by its path in the schema with `mine` for a free name: `rules.mine.files` is the row of
`rules.<group>.files`.
"""

from __future__ import annotations

from tests.options import editor_rows, ghost_rows, host_rows, plain_rows
from tests.options.row import Row, Scene

__all__ = ["NOT_YET", "NOT_YET_AT_MOST", "ROWS", "WITHOUT_SCENE", "Row", "Scene"]

ROWS: tuple[Row, ...] = (*host_rows.rows(), *editor_rows.rows(), *plain_rows.rows(), *ghost_rows.rows())

WITHOUT_SCENE: dict[str, str] = {}
"""Why an option can have no scene, by path."""

NOT_YET: tuple[str, ...] = ("mcp.*",)
"""Patterns of the options whose row is not written yet, as far as they have none."""
NOT_YET_AT_MOST = 12
