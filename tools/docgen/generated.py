"""The list of generated files."""

from __future__ import annotations

import json
from pathlib import Path

from tools.docgen.deviations_page import deviations_page
from tools.docgen.documents_page import documents_page
from tools.docgen.helpfile import help_file
from tools.docgen.lua_types import lua_types
from tools.docgen.policy_events_page import policy_events_page
from tools.docgen.schema import ROOT, read_schema

__all__ = ["ROOT", "generate"]


def generate() -> dict[Path, str]:
    """Return the text of every generated file by its path, without writing any.

    Raises:
        SchemaUnreadable: the option schema could not be read.
    """
    dump = read_schema()
    defaults = json.dumps(dump.for_host, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return {
        ROOT / "doc" / "codecompanion.txt": help_file(dump),
        ROOT / "doc" / "compared-documents.md": documents_page(),
        ROOT / "doc" / "policy-events.md": policy_events_page(dump),
        ROOT / "doc" / "dev" / "requirements" / "deviations.md": deviations_page(),
        ROOT / "lua" / "codecompanion" / "types.lua": lua_types(dump.schema),
        ROOT / "python" / "codecompanion" / "settings_defaults.json": defaults,
    }
