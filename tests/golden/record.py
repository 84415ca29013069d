"""Plays a story into its record, and compares two records."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path
from typing import Any

from tests.golden import stories_compaction, stories_editing, stories_talk, stories_tools, stories_wires  # noqa: F401
from tests.golden.desk import STORIES, Story, desk_for
from tests.golden.plain import Placeholders, beside_last, text_of, with_changes_only, with_references

RECORDS = Path(__file__).with_name("records")
MAX_DIFF_LINES = 120


def names() -> list[str]:
    """Return the names of all stories."""
    return list(STORIES)


def path_of(name: str) -> Path:
    """Return the file of a story's record."""
    return RECORDS / f"{name}.json"


async def _played(story: Story) -> dict[str, Any]:
    async with desk_for(story.setting) as desk:
        await story.play(desk)
        root, port = str(desk.root), desk.server.port
        await desk.close()
        log, bodies = desk.log(), desk.bodies()
    requests = with_references(bodies, whole_tools=story.setting.whole_tools)
    told = [event for event in desk.happened if "bug" in event or "nternal error" in str(event)]
    assert not told, f"a bug is not recorded: {told}"
    log = {chat: beside_last(payloads) for chat, payloads in log.items()}
    record = {"about": story.about, "editor": beside_last(desk.happened), "log": log, "requests": requests}
    plain: dict[str, Any] = Placeholders(root, port).replace(record)
    log = {chat: with_changes_only(payloads) for chat, payloads in plain["log"].items()}
    return {**plain, "editor": with_changes_only(plain["editor"]), "log": log}


def play(name: str) -> str:
    """Play a story; return its record as text."""
    return text_of(asyncio.run(_played(STORIES[name])))


def difference(name: str, now: str) -> str:
    """Return the difference between `now` and the story's record, or "" if there is none."""
    path = path_of(name)
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if kept == now:
        return ""
    lines = list(difflib.unified_diff(kept.splitlines(), now.splitlines(), "the record", "this run", lineterm="", n=4))
    more = len(lines) - MAX_DIFF_LINES
    shown = "\n".join(line[:400] for line in lines[:MAX_DIFF_LINES]) + (f"\n… {more} more lines" if more > 0 else "")
    how = f"If the change is meant: python -m tests.golden.rewrite {name}"
    return f"The chat {name} is not what {path.name} records.\n{shown}\n\n{how}"
