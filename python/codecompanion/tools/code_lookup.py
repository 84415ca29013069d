"""What the tool `code_search` asks of the project's index; the session answers it."""

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
        """Return at most `limit` places below the path `below` (relative, "" = everywhere), best first.

        `unsaved`: path → text of open files that differ from the disk. `any`: the query is a question or words, else
        it is a name or a text to be found as it stands.
        """
        ...


async def no_code_lookup(
    query: str, kind: LookupKind, below: str, limit: int, unsaved: Mapping[str, str]
) -> SearchOutcome:
    """Say that there is no index: the command line, and tests."""
    del query, kind, below, limit, unsaved
    raise ToolError("The code is not indexed here; grep_search finds text and file_search finds files.")
