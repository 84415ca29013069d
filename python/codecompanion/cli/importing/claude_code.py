"""`import --from claude-code`: read a session from `~/.claude/projects/…/<session>.jsonl`.

Every line is an entry `{"type", "uuid", "parentUuid", "timestamp", "isSidechain", "message"}`; `message` is a message
of the Messages API. Entries form a tree: a user who goes back and asks again leaves branches; the branch with the
newest entry is the conversation. A streamed reply is several lines with the same `message.id`, one block each, with
tool results between them; they become one message. Sub-agents (`isSidechain`, unless the whole file belongs to one),
notes of the program itself (`isMeta`, API errors) and all entries that are neither `user` nor `assistant` are omitted.
The summary of a compaction is marked as a summary.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing.anthropic_blocks import read_assistant, read_usage, read_user
from codecompanion.cli.importing.fields import Found, Skipped, expect_object, read_values, seconds, skip, with_meta
from codecompanion.errors import InputError

EXPECTED = 'one entry of Claude Code per line, {"type": "user" | "assistant", "message": {…}}'


def read(raw: bytes, source: str, skipped: Skipped = None) -> list[dict[str, Any]]:
    """Return the messages of a session; with `skipped`, unreadable entries are omitted and noted there.

    Raises:
        InputError: a line is not an entry, or no entry is a message.
    """
    entries: list[Found] = []
    for found in read_values(raw, source, EXPECTED, skipped):
        try:
            _check_entry(found)
            entries.append(found)
        except InputError as error:
            skip(skipped, error)
    told = [found for found in entries if _is_message(found, of_agent=False)]
    told = told or [found for found in entries if _is_message(found, of_agent=True)]
    if not told:
        raise InputError(f"{source}:1: no messages in it; expected {EXPECTED}")
    branch = _newest_branch(entries, told)
    return _merge(told if not branch else _on_branch(told, branch), skipped)


def _check_entry(found: Found) -> None:
    entry = expect_object(found.value, found.where, EXPECTED)
    if entry.get("type") in ("user", "assistant") and not entry.get("isApiErrorMessage") and not entry.get("isMeta"):
        expect_object(entry.get("message"), found.where, 'an entry with "message": {…}')


def _is_message(found: Found, *, of_agent: bool) -> bool:
    entry = found.value
    if entry.get("type") not in ("user", "assistant") or entry.get("isApiErrorMessage"):
        return False
    if bool(entry.get("isSidechain")) != of_agent:
        return False
    if entry.get("isMeta") and not entry.get("isCompactSummary"):
        return False
    return isinstance(entry.get("message"), dict)


def _newest_branch(entries: list[Found], told: list[Found]) -> frozenset[str]:
    """Return the ids from the newest message back to the first, or an empty set if the entries do not form a tree."""
    parents = _parents(entries)
    branch: set[str] = set()
    current = told[-1].value.get("uuid")
    while isinstance(current, str) and current in parents and current not in branch:
        branch.add(current)
        current = parents[current]
    roots = {uuid for uuid, parent in parents.items() if parent is None}
    return frozenset(branch) if branch & roots else frozenset()


def _parents(entries: list[Found]) -> dict[str, Any]:
    """Return the parent of each entry; if it is unset or missing from the file, use the previous entry."""
    known = {_id(found, "uuid") for found in entries}
    parents: dict[str, Any] = {}
    before: dict[bool, str] = {}
    for found in entries:
        entry, uuid = found.value, _id(found, "uuid")
        if uuid is None:
            continue
        parent = entry.get("parentUuid") or entry.get("logicalParentUuid")
        is_lost = parent not in known if isinstance(parent, str) else "parentUuid" not in entry
        side = bool(entry.get("isSidechain"))
        parents[uuid] = before.get(side) if is_lost else parent
        before[side] = uuid
    return parents


def _on_branch(told: list[Found], branch: frozenset[str]) -> list[Found]:
    """Return the messages on the branch, and the parts and tool results of its replies that are siblings in the tree.

    The results of parallel calls are siblings in the tree.
    """
    replies = {_reply_id(found) for found in told if _id(found, "uuid") in branch} - {None}
    parts = {_id(found, "uuid") for found in told if _reply_id(found) in replies}
    return [
        found
        for found in told
        if _id(found, "uuid") in branch | parts
        or (_id(found, "parentUuid") in parts and _holds_result(found.value["message"]))
    ]


def _id(found: Found, name: str) -> str | None:
    value = found.value.get(name)
    return value if isinstance(value, str) else None


def _reply_id(found: Found) -> str | None:
    """Return the id that all lines of one streamed reply share."""
    value = found.value["message"].get("id")
    return value if isinstance(value, str) and found.value["type"] == "assistant" else None


def _holds_result(message: dict[str, Any]) -> bool:
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in _blocks(message))


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _merge(entries: list[Found], skipped: Skipped) -> list[dict[str, Any]]:
    """Return the messages, with the lines of each reply merged at the position of its first line."""
    messages: list[dict[str, Any]] = []
    blocks: dict[str, list[Any]] = {}
    places: dict[str, int] = {}
    for found in entries:
        entry, message = found.value, found.value["message"]
        ts, reply, content = seconds(entry.get("timestamp")), _reply_id(found), message.get("content")
        try:
            if entry["type"] == "user":
                tag = "compact_summary" if entry.get("isCompactSummary") else None
                messages += [with_meta(made, ts=ts, tag=tag) for made in read_user(content, found.where)]
                continue
            if reply is not None and isinstance(content, list):
                known = blocks.get(reply, [])
                content = [*known, *(block for block in content if block not in known)]
            made = with_meta(read_assistant(content, found.where), ts=ts, usage=read_usage(message.get("usage")))
        except InputError as error:
            skip(skipped, error)
            continue
        if reply is not None and isinstance(content, list):
            blocks[reply] = content
        if reply is not None and reply in places:
            first = messages[places[reply]].get("meta", {}).get("ts")
            messages[places[reply]] = with_meta(made, ts=first)
            continue
        if reply is not None:
            places[reply] = len(messages)
        messages.append(made)
    return messages
