"""The model's view of a request in any format: messages, calls and results in order.

It is written from the APIs' references and shares no code with the renderers, so that a body can be compared with the
story. Reasoning, seals and ids are excluded; calls and results are paired here by their ids, and every one must have
its counterpart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codecompanion import prompts
from codecompanion.placeholders import SUMMARY_PREFIX, TOOL_RESULT_CLEARED

Entry = tuple[str, ...]
"""("user", words) · ("file",) · ("said", words) · ("call", name, arguments) · ("result", name, arguments, text)."""
Wire = Literal["chat", "responses", "anthropic"]
ANYTHING = "\x00anything"
"""Placeholder for the text of a result that the session itself writes; matches any text."""
_NOTE = re.compile(r"\[The (?:image|document) .* (?:was not sent|cannot be read).*\]", re.DOTALL)
_LEFT_OUT = re.compile(r"\n\n\[\.\.\. [\d,]+ characters left out: [^\]]*\]\n\n")
_ATTACHMENT = re.compile(r"<important>.* cleared during compaction\..*</important>", re.DOTALL)
_SUMMARIES = (SUMMARY_PREFIX, "<history_summary>", "<compact_summary>")
_OURS = ("[The conversation before this point was left out.]", "[No reply: the user continued.]")


@dataclass(frozen=True)
class Reading:
    """The parsed request. `compacted`: part of the history was replaced. `problems`: unpaired calls.

    `last_words`: our summary if it comes last, because it was written during a tool loop (R-551).
    """

    entries: tuple[Entry, ...]
    compacted: bool
    problems: tuple[str, ...]
    last_words: str = ""


def read_body(wire: Wire, body: Mapping[str, Any]) -> Reading:
    """Return the model's input in its normal form."""
    found = list({"chat": _chat, "responses": _responses, "anthropic": _anthropic}[wire](body))
    compacted = any(entry[0] == "block" or _is_summary(entry) for entry in found)
    problems: list[str] = []
    entries = [entry for entry in _paired(found, problems) if not _stands_for_others(entry)]
    last_words = found[-1][1] if found and _is_summary(found[-1]) else ""
    return Reading(normal_form(entries), compacted, tuple(problems), last_words)


def normal_form(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries in a form that every format can express.

    The text of a reply is one entry before its calls, with white space ignored; our own prompts to continue are
    omitted.
    """
    normal: list[Entry] = []
    words: list[str] = []
    calls: list[Entry] = []

    def close() -> None:
        said = "".join("".join(words).split())
        normal.extend([("said", said)] if said else [])
        normal.extend(calls)
        words.clear()
        calls.clear()

    for entry in entries:
        if entry[0] == "said":
            if entry[1].strip() not in _OURS:
                words.append(entry[1])
        elif entry[0] == "call":
            calls.append(entry)
        elif entry[0] != "user" or not _is_ours(entry[1]):
            close()
            normal.append(entry)
    close()
    return tuple(normal)


def matches(found: Entry, expected: Entry) -> bool:
    """Return whether an entry matches the expected one; a result may have been cleared."""
    if found[0] != "result" or expected[0] != "result":
        return found == expected
    told = expected[3]
    return found[:3] == expected[:3] and (
        told == ANYTHING or found[3] in (told, TOOL_RESULT_CLEARED) or _is_cut(found[3], told)
    )


def _is_cut(found: Any, told: Any) -> bool:
    """Return whether a result is truncated to head and tail, because it did not fit (R-524)."""
    if not isinstance(found, str) or not isinstance(told, str):
        return False
    parts = _LEFT_OUT.split(found)
    return len(parts) == 2 and told.startswith(parts[0]) and told.endswith(parts[1])


def find_loss(reading: Reading, told: Sequence[Entry]) -> str:
    """Return the missing part of the story so far, or "" if nothing is lost.

    Without a compaction the request must contain the whole story, in order. With one, it must contain the end of the
    story, and no entry may be new or out of order.
    """
    expected = normal_form(told)
    if not reading.compacted:
        for number, (found, wanted) in enumerate(zip(reading.entries, expected, strict=False)):
            if not matches(found, wanted):
                return f"entry {number} is {found!r:.300}, expected {wanted!r:.300}"
        if len(reading.entries) != len(expected):
            return f"{len(reading.entries)} entries instead of {len(expected)}: {_rest(reading.entries, expected)}"
        return ""
    at = len(expected)
    for found in reversed(reading.entries):
        at = next((k for k in range(at - 1, -1, -1) if matches(found, expected[k])), -1)
        if at < 0:
            return f"{found!r:.300} was never told, or not in this order"
    if reading.last_words:
        request = next(entry[1] for entry in reversed(expected) if entry[0] == "user")
        return "" if request in reading.last_words else f"the summary does not quote {request!r:.300}"
    if not reading.entries or not matches(reading.entries[-1], expected[-1]):
        return f"it does not end with {expected[-1]!r:.300}"
    return ""


def _rest(found: Sequence[Entry], expected: Sequence[Entry]) -> str:
    shorter, longer = sorted((found, expected), key=len)
    return f"{longer[len(shorter)]!r:.300} {'is missing' if longer is expected else 'is too much'}"


def _stands_for_others(entry: Entry) -> bool:
    """Return whether the entry replaces others: a compaction, or the placeholder of an attachment."""
    return entry[0] == "block" or _is_summary(entry) or (entry[0] == "user" and bool(_ATTACHMENT.fullmatch(entry[1])))


def _is_summary(entry: Entry) -> bool:
    return entry[0] == "user" and entry[1].startswith(_SUMMARIES)


def _is_ours(words: str) -> bool:
    return words.strip() in (*_OURS, prompts.load("go_on").strip())


def _paired(found: Iterable[Entry], problems: list[str]) -> Iterator[Entry]:
    """Yield the entries with names and arguments added to the results.

    In the input, results are ("result", id, text).
    """
    waiting: dict[str, Entry] = {}
    for entry in found:
        if entry[0] == "call":
            _, call_id, name, arguments = entry
            if call_id in waiting:
                problems.append(f"the call {call_id!r} stands twice without a result between")
            waiting[call_id] = (name, arguments)
            yield ("call", name, arguments)
        elif entry[0] == "result":
            _, call_id, text = entry
            if call_id not in waiting:
                problems.append(f"the result of {call_id!r} belongs to no call")
            yield ("result", *waiting.pop(call_id, ("?", "?")), text)
        else:
            if waiting and entry[0] == "user":
                problems.append(f"{entry!r:.80} comes before the result of {', '.join(waiting)}")
            yield entry
    problems.extend(f"the call {call_id!r} has no result" for call_id in waiting)


def _chat(body: Mapping[str, Any]) -> Iterator[Entry]:
    for message in body["messages"]:
        match message["role"]:
            case "user":
                yield from _user_parts(message["content"])
            case "assistant":
                content = message.get("content") or ""
                texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
                yield from (("said", text) for text in texts)
                for call in message.get("tool_calls") or ():
                    yield call_entry(call["id"], call["function"]["name"], call["function"]["arguments"])
            case "tool":
                yield ("result", message["tool_call_id"], _flat(message["content"]))


def _responses(body: Mapping[str, Any]) -> Iterator[Entry]:
    for item in body["input"]:
        match item.get("type", "message"), item.get("role"):
            case "message", "user":
                yield from _user_parts(item["content"])
            case "message", "assistant":
                yield ("said", _flat(item["content"]))
            case "function_call", _:
                yield call_entry(item["call_id"], item["name"], item["arguments"])
            case "function_call_output", _:
                yield ("result", item["call_id"], _flat(item["output"]))
            case "compaction", _:
                yield ("block",)


def _anthropic(body: Mapping[str, Any]) -> Iterator[Entry]:
    for message in body["messages"]:
        for block in message["content"]:
            match block["type"]:
                case "text" if message["role"] == "assistant":
                    yield ("said", block["text"])
                case "tool_use":
                    yield call_entry(block["id"], block["name"], json.dumps(block["input"]))
                case "tool_result":
                    yield ("result", block["tool_use_id"], _flat(block["content"]))
                case "compaction":
                    yield ("block",)
                case "thinking" | "redacted_thinking":
                    pass
                case _:
                    yield from _user_parts([block])


def call_entry(call_id: str, name: str, arguments: str) -> Entry:
    """Return a call; invalid JSON arguments stay text, names keep the characters that all formats accept."""
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        given = {"invalid_json": arguments}
    return ("call", call_id, re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64], json.dumps(given, sort_keys=True))


def _user_parts(content: str | Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        is_text = part["type"] in ("text", "input_text")
        yield ("user", part["text"]) if is_text and not _NOTE.fullmatch(part["text"]) else ("file",)


def _flat(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
