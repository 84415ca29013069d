"""Writes the page of `:CodeCompanion audit`: tool calls and other runs, newest first. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from codecompanion.formats.cutting import cut
from codecompanion.formats.plural import counted
from codecompanion.reports.markdown import one_line, page_text

MAX_SHOWN = 500
_MAX_CHARS = 300
Record = Mapping[str, Any]


def joined(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return one record per run, oldest first, merged with its outcome and its file changes."""
    by_run: dict[str, dict[str, Any]] = {}
    found: list[dict[str, Any]] = []
    for record in records:
        run = str(record.get("run", ""))
        if record.get("event") == "ended":
            began = by_run.pop(run, None)
            if began is not None:
                began |= {name: record[name] for name in ("status", "result") if name in record}
                began |= {"files": record.get("files", []), "ended": record["time"]}
            continue
        one = {**record, "status": "no end" if record.get("event") == "began" else record.get("status", "")}
        found.append(one)
        if run and record.get("event") == "began":
            by_run[run] = one
    return found


def audit_page(records: Sequence[Record], broken: str, where: str, zone: tzinfo = UTC) -> str:
    """Return the page as Markdown; `broken`: a description of the break in the log's hash chain, `where`: its path."""
    ran = joined(records)
    lines = ["# Audit", "", f"{counted(len(ran), 'entry', 'entries')} in `{where}`."]
    if broken:
        lines += ["", f"**The log was changed or damaged**: {broken}."]
    if len(ran) > MAX_SHOWN:
        lines += ["", f"Showing the newest {MAX_SHOWN}; `:CodeCompanion audit export {{file}}` writes all."]
    for one in reversed(ran[-MAX_SHOWN:]):
        lines += ["", *_entry(one, zone)]
    return page_text(lines)


def _entry(one: Record, zone: tzinfo) -> list[str]:
    facts = [f"grant: {one['grant']}"] if one.get("grant") else []
    facts += [f"sandbox: {one['sandbox']}"] if one.get("sandbox") else []
    facts += [str(one["status"])] if one.get("status") else []
    facts += [one_line(str(one["result"]))] if one.get("result") else []
    chat = one_line(str(one.get("chat", "")))
    lines = [f"## {_time(one, zone)} {one_line(cut(_what(one), _MAX_CHARS))}", "", f"{' · '.join(facts)} · chat {chat}"]
    if one.get("narrowed"):
        lines.append(f"narrowed: {one_line(str(one['narrowed']))}")
    for file in one.get("files") or ():
        before, after = (str(file.get(side) or "none")[:12] for side in ("before", "after"))
        lines.append(f"- `{one_line(str(file.get('path')))}` {file.get('state')}: {before} → {after}")
    return lines


def _what(one: Record) -> str:
    arguments = one.get("arguments")
    if isinstance(arguments, Mapping) and one.get("kind") == "command":
        return f"$ {arguments.get('command', '')}".replace("\n", " ⏎ ")  # a comment ends with its line
    said = json.dumps(arguments, ensure_ascii=False) if arguments else str(one.get("address", ""))
    return f"{one.get('tool') or one.get('kind')} {said}".rstrip()


def _time(one: Record, zone: tzinfo) -> str:
    try:
        return datetime.fromisoformat(str(one.get("time"))).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "?"
