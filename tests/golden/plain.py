"""Turns a record into a form that is identical in every run, and into text.

Values that differ between runs become placeholders, numbered in the order of first appearance. Nothing else is lost: a
request refers to an earlier one for shared parts, a long run of one text is written as the text and a count, and a text
of several lines is a list of lines, which makes diffs readable.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

WIDTH = 118
FLAT_WIDTH = 240
TIMES = {"ts", "time", "created", "updated", "since"}
DURATIONS = {"duration_ms", "until_ms", "wait_ms", "ms", "age"}
KINDS = {
    "turn_id": "turn",
    "message_id": "message",
    "request_id": "request",
    "change_id": "change",
    "compaction_id": "change",
}
_ID = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{12})(?![0-9a-zA-Z])")
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?")
_SECONDS = re.compile(r"\b\d+(?:\.\d)? (?:s|ms)\b")
_CLOCK = re.compile(r"(?<=[( ])\d\d:\d\d(?=\))")
_MOMENT = re.compile(r"\b1[6-9]\d{11}\b")
_IDENTITY = re.compile(r"\b\d+-\d{10}\.\d+\b")
_HOST = re.compile(r"\bprocess \d+ on \S+?(?=\))")
_SEALED = re.compile(r"gAAAA[\w-]+=*|\b(?:rs|msg|fc|resp|cmp|call|toolu|sig)_[0-9a-zA-Z]{16,}")
_RUN = re.compile(r"(.{2,120}?)\1{7,}", re.DOTALL)


BESIDE = {"conversation_snapshot", "memory_flushed", "daily_log_written"}
"""Events of background writes: the order of events of one name is compared, but not their place in the turn."""


def beside_last(told: list[Any]) -> list[Any]:
    """Return the events with those of `BESIDE` at the end, and editor questions of parallel calls in a fixed order."""
    last = sorted((one for one in told if one.get("name") in BESIDE), key=lambda one: str(one["name"]))
    shown = [one for one in told if one.get("name") not in BESIDE]
    looks = [at for at, one in enumerate(shown) if one.get("type") == "ask" and one["what"] == "look"]
    for at, following in itertools.pairwise(looks):
        one, other = shown[at], shown[following]
        if following == at + 1 and str(one["fields"]) > str(other["fields"]):
            shown[at], shown[following] = {**one, "fields": other["fields"]}, {**other, "fields": one["fields"]}
    return [*shown, *last]


SHORTENED = {"meter", "request_sent", "notice", "approval_requested", "tool_finished", "view_marks", "turn_finished"}


def with_changes_only(told: list[Any]) -> list[Any]:
    """Return the events, those of frequent types with only the fields that differ from the last event of their type.

    In the others, the chat is omitted if it is that of the previous event; a removed field is named.
    """
    before: dict[str, dict[str, Any]] = {}
    chat: object = None
    shown = []
    for one in told:
        kind = one.get("type")
        last = before.get(kind, {}) if kind in SHORTENED else {}
        if kind:
            before[kind] = one
        short = {key: value for key, value in one.items() if key == "type" or key not in last or last[key] != value}
        if "chat" in short and one["chat"] == chat:
            del short["chat"]
        chat = one.get("chat", chat)
        gone = [key for key in last if key not in one]
        shown.append({**short, **({"without": gone} if gone else {})})
    return shown


class Placeholders:
    """Replaces values that differ between runs, equal values by equal placeholders."""

    def __init__(self, root: str, port: int) -> None:
        self._fixed = [(root, "ROOT"), (f"127.0.0.1:{port}", "127.0.0.1:PORT")]
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def replace(self, value: Any, key: str = "") -> Any:
        """Return the value without anything that differs between two runs."""
        if isinstance(value, dict):
            kept = (name for name in value if name != "duration_ms" or _always_has_duration(value))
            return {self._text(name, ""): self.replace(value[name], name) for name in kept}
        if isinstance(value, list | tuple):
            return [self.replace(item, key) for item in value]
        if isinstance(value, str):
            return "<time>" if key in TIMES and _DATE.search(value) else self._text(value, key)
        if isinstance(value, bool) or value is None:
            return value
        if (key in TIMES and value) or (isinstance(value, int) and value > 10**12 and key not in DURATIONS):
            return "<time>"
        if key == "estimatedSizeBytes":  # of a file with times in it, some of which are a digit longer
            return "<bytes>"
        return "<ms>" if key in DURATIONS and (value or key != "until_ms") else value

    def _text(self, text: str, key: str) -> str:
        for found, name in self._fixed:
            text = text.replace(found, name)
        text = _ID.sub(lambda match: self._named(match[0], key), text)
        text = _SEALED.sub(lambda match: self._named(match[0], key), _IDENTITY.sub("<identity>", text))
        text = _HOST.sub("process <host>", text)
        text = _MOMENT.sub("<time>", _CLOCK.sub("<clock>", text))
        text = re.sub(r"<date>-\d{6}\b", "<date>-<time>", _DATE.sub("<date>", text))
        return _SECONDS.sub("<s>", text)

    def _named(self, value: str, key: str) -> str:
        if value not in self._known:
            kind = "hash" if len(value) > 12 else KINDS.get(key, "id")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[value] = f"<{kind} {self._counts[kind]}>"
        return self._known[value]


def _always_has_duration(value: dict[str, Any]) -> bool:
    """Return whether the field is present even if it is 0, which stored or restored records omit."""
    return value.get("type") in ("tool_finished", "turn_finished", "compacted", "code_gathered", "request_ended")


def with_references(bodies: list[dict[str, Any]], *, whole_tools: bool) -> list[dict[str, Any]]:
    """Return requests that refer to an earlier one for shared parts: equal fields, and the beginning of a list."""
    plain = [one if whole_tools else _tools_by_name(one) for one in bodies]
    return [_against(plain[:at], one) for at, one in enumerate(plain)]


def _tools_by_name(one: dict[str, Any]) -> dict[str, Any]:
    body = one["body"]
    if not isinstance(body, dict) or not isinstance(body.get("tools"), list):
        return one
    names = [tool.get("name") or tool.get("function", {}).get("name") or tool.get("type") for tool in body["tools"]]
    return {**one, "body": {**body, "tools": names}}


def _shared(one: Any, other: Any) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _against(earlier: list[dict[str, Any]], one: dict[str, Any]) -> dict[str, Any]:
    body = one["body"]
    if not isinstance(body, dict):
        return one

    def likeness(at: int) -> tuple[int, int, int]:
        other = earlier[at]["body"] or {}
        lists = sum(_shared(body[key], other.get(key) or ()) for key in ("messages", "input") if key in body)
        return lists, sum(other.get(key) == value for key, value in body.items()), at

    if not earlier:
        return one
    at = max(range(len(earlier)), key=likeness)
    other = earlier[at]["body"] or {}
    shown: dict[str, Any] = {}
    same = [key for key, value in body.items() if key in other and other[key] == value]
    for key, value in body.items():
        if key in same:
            continue
        count = _shared(value, other.get(key) or ()) if isinstance(value, list) else 0
        shown[key] = [f"= the first {count}", *value[count:]] if count else value
    gone = [key for key in other if key not in body]
    note = {"like request": at + 1, "same": same, **({"without": gone} if gone else {})}
    return {"to": one["to"], **note, "body": shown}


def _folded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _folded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if not isinstance(value, str) or len(value) < 80:
        return value
    short = _RUN.sub(lambda match: f"«{match[1]}»×{len(match[0]) // len(match[1])} ", value)
    lines = short.split("\n")
    return {"lines": lines} if len(lines) > 1 else short


def text_of(record: Any) -> str:
    """Return the record as readable JSON that can be compared line by line."""
    return _written(_folded(record), "") + "\n"


def _width(value: Any) -> int:
    """Return the line width for the value; small events get one line, because most of a record is meter events."""
    parts = value.values() if isinstance(value, dict) else value
    return WIDTH if any(isinstance(part, dict | list) and part for part in parts) else FLAT_WIDTH


def _written(value: Any, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(line) <= _width(value):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_written(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + _written(item, deeper) for item in value) + f"\n{indent}]"
