"""The interface through which the `code_search` tool queries the project index; the session implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from codecompanion.errors import ToolError
from codecompanion.model.found_code import SearchOutcome

LookupKind = Literal["any", "definition", "reference", "text"]


class CodeLookup(Protocol):
    """Searches the code of the workspace."""

    async def __call__(
        self, query: str, kind: LookupKind, below: str, limit: int, unsaved: Mapping[str, str]
    ) -> SearchOutcome:
        """Return at most `limit` locations below the path `below` (relative; "" means everywhere), best first.

        `unsaved`: path → text of open files that differ from the disk. With the kind `any`, the query is a question or
        keywords; otherwise it is a name or a string to find literally.
        """
        ...


async def no_code_lookup(
    query: str, kind: LookupKind, below: str, limit: int, unsaved: Mapping[str, str]
) -> SearchOutcome:
    """Report that there is no index; used by the command line and tests."""
    del query, kind, below, limit, unsaved
    raise ToolError("The code is not indexed here; grep_search finds text and file_search finds files.")
