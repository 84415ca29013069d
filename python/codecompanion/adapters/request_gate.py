"""Validates each finished request body, as its provider would, just before it is sent.

The rules of each wire format are in `*/gate.py`: a judge that folds over the items of a body. The gate parses the exact
bytes to send. It keeps the validated prefix of a few bodies, so that a chat's next request costs only its new items.
Tests use the same judges, with `strict` to reject unknown keys.
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, Self

import msgspec

from codecompanion.errors import RequestRejected
from codecompanion.formats import typed
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.regex import regex

_log = logging.getLogger(__name__)

Purpose = Literal["reply", "compaction", "count"]
_BODIES_KEPT = 4
_REJUDGED = 8
"""Number of items at the end to validate again, because cache breakpoints and merged turns change there."""
_SOUGHT_BYTES = 4_000
_QUOTED_CHARS = 40
_PLACE = regex(r"\w+\[(\d+)\]")
_NOT_JUDGED = (TypeError, KeyError, AttributeError, ValueError)


class BodyJudge(ABC):
    """Validates the items of one body in order; `problems` are sentences that name the item."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    @abstractmethod
    def add(self, item: Any) -> None:
        """Validate the next item."""

    @abstractmethod
    def finish(self, fields: Mapping[str, Any]) -> list[str]:
        """Return all problems; `fields` is the body without its items. Call this last on a judge."""

    def snapshot(self) -> Self:
        """Return an independent copy that can continue with other items."""
        copied: Self = _copied(self)
        return copied


class _Kept(msgspec.Struct, frozen=True):
    """The validated prefix of a body: whole `chunks`, then `rest`, the start of the next chunk.

    `count` is the number of items in the prefix. The chunks are the body's own objects, so that the chunks of the next
    body are compared by identity. The opening is the body up to its first item. If it is a separate chunk, it is not
    among `chunks`, and may differ in the next body: the fields outside the items are validated every time.
    """

    opening: bytes
    is_own_chunk: bool
    chunks: tuple[bytes, ...]
    rest: bytes
    count: int
    judge: BodyJudge

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.chunks)) + len(self.rest)

    @property
    def known(self) -> int:
        """Return the number of chunks of a body that do not have to be parsed as items."""
        return self.is_own_chunk + len(self.chunks)

    def begins(self, chunks: tuple[bytes, ...], list_start: bytes) -> bool:
        """Return whether a body begins with this prefix."""
        if self.is_own_chunk and not (len(chunks) > 1 and chunks[0].endswith(list_start)):
            return False
        known = self.known
        return chunks[self.is_own_chunk : known] == self.chunks and _after(chunks[known:], len(self.rest)) == self.rest


class RequestGate:
    """Validates the bodies for one endpoint. `key` names the list of items, `new_judge` creates the judge of a body."""

    def __init__(self, name: str, key: str, new_judge: Callable[[Purpose], BodyJudge]) -> None:
        self._name, self._key, self._new_judge = name, key, new_judge
        self._list_start = b'"%s":[' % key.encode()  # cannot occur within a string, where quotes are escaped
        self._kept: list[tuple[Purpose, _Kept]] = []

    def require_valid(self, chunks: tuple[bytes, ...], purpose: Purpose) -> None:
        """Accept a body, given in chunks, or reject it with a one-sentence error.

        Raises: RequestRejected: the provider would reject the body.
        """
        if problem := self.find_problem(chunks, purpose):
            raise RequestRejected(
                f"{self._name}: not sent; the provider would refuse it: {problem}. The chat is unchanged."
            )

    def unknown_bytes(self, chunks: tuple[bytes, ...], purpose: Purpose) -> int:
        """Return the number of bytes of a body that have to be parsed."""
        kept = self._find(chunks, purpose)
        return sum(map(len, chunks)) - (kept.size_bytes if kept else 0)

    def find_problem(self, chunks: tuple[bytes, ...], purpose: Purpose) -> str:
        """Return the first reason to reject the body, or "" if there is none."""
        try:
            return self._judge(chunks, purpose)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return f"the body is not valid JSON ({error})"
        except _NOT_JUDGED as error:
            _log.warning("a request body could not be checked", exc_info=True)
            return f"a value has an unexpected type ({error})"

    def _find(self, chunks: tuple[bytes, ...], purpose: Purpose) -> _Kept | None:
        start = self._list_start
        return next((one for kind, one in self._kept if kind == purpose and one.begins(chunks, start)), None)

    def _judge(self, chunks: tuple[bytes, ...], purpose: Purpose) -> str:
        kept = self._find(chunks, purpose)
        known, checked = (kept.known, len(kept.rest)) if kept else (0, 0)
        later = b"".join(chunks[known:])
        new = later[checked:]
        if kept is not None and new[:1] in (b",", b"]"):
            # Parse only the items after the validated prefix, as a separate body.
            opening = chunks[0] if kept.is_own_chunk else kept.opening
            parsed = opening + new.removeprefix(b",")
            before, judge = kept.count, kept.judge.snapshot()
        else:
            parsed = b"".join(chunks) if kept else later
            kept, later, before, judge = None, parsed, 0, self._new_judge(purpose)
        raw = typed.read_json(parsed, type=dict[str, msgspec.Raw])
        listed = bytes(raw.pop(self._key, msgspec.Raw(b"null")))
        fields = {name: msgspec.json.decode(value) for name, value in raw.items()}
        if not listed.startswith(b"["):
            return judge.finish({**fields, self._key: msgspec.json.decode(listed)})[0]
        items = typed.read_json(listed, type=list[msgspec.Raw])
        settled = max(0, len(items) - _REJUDGED)
        beginning: BodyJudge | None = None
        decode = msgspec.json.Decoder().decode
        for index, item in enumerate(items):
            if index == settled:
                beginning = judge.snapshot()
            judge.add(decode(item))
        problems = judge.finish(fields)
        if problems:
            return _with_quote(problems[0], items, before)
        if beginning is not None and settled:
            length = sum(memoryview(item).nbytes for item in items[:settled]) + settled - 1
            if kept is not None:
                end = checked + 1 + length
            elif (start := _start_of(parsed, self._key, listed)) is not None:
                opening, end = parsed[:start], start + length
            else:
                return ""
            if later[end - 1 : end] != b"}" or later[end : end + 1] != b",":
                return ""  # whitespace between items, which our renderers never write
            self._keep(purpose, kept, _prefix(opening, chunks, kept, end, before + settled, beginning))
        return ""

    def _keep(self, purpose: Purpose, replaced: _Kept | None, kept: _Kept) -> None:
        others = [one for one in self._kept if one[1] is not replaced]
        self._kept = [(purpose, kept), *others][:_BODIES_KEPT]


def _prefix(
    opening: bytes, chunks: tuple[bytes, ...], kept: _Kept | None, end: int, count: int, judge: BodyJudge
) -> _Kept:
    """Return the prefix of a body that ends `end` bytes after the chunks in `kept`."""
    whole = kept.known if kept else 0
    while whole < len(chunks) and len(chunks[whole]) <= end:
        end -= len(chunks[whole])
        whole += 1
    is_own_chunk = opening == chunks[0]
    return _Kept(opening, is_own_chunk, chunks[is_own_chunk:whole], chunks[whole][:end] if end else b"", count, judge)


def _after(chunks: tuple[bytes, ...], length: int) -> bytes:
    """Return the first `length` bytes of the chunks."""
    found = b""
    for chunk in chunks:
        found += chunk[: length - len(found)]
        if len(found) == length:
            break
    return found


def out_of_range(fields: Mapping[str, Any], ranges: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield a sentence for each argument that is not a number within its range."""
    for name, (least, most) in ranges.items():
        value = fields.get(name)
        if value is not None and (type(value) not in (int, float) or not least <= value <= most):
            yield f"{name} is not between {least} and {most}"


def wrong_tool_choice(choice: Any, names: Collection[str]) -> str:
    """Return why OpenAI would reject a `tool_choice`, or "" if it is valid; `names` are the request's functions."""
    if choice is None:
        return ""
    if isinstance(choice, str):
        return "" if choice in ("none", "auto", "required") else f"tool_choice has the unknown value {choice!r}"
    if not isinstance(choice, Mapping):
        return "tool_choice is neither a string nor an object"
    name = choice.get("function", choice)
    name = name.get("name") if isinstance(name, Mapping) else None
    missing = choice.get("type") == "function" and name not in names
    return f"tool_choice names {name!r}, which is not among the tools" if missing else ""


def _start_of(body: bytes, key: str, listed: bytes) -> int | None:
    """Return the position of the first item, or None if it cannot be determined from the bytes alone."""
    name = b'"%s":' % key.encode()
    at = body.find(name + listed[:_SOUGHT_BYTES])
    start = at + len(name) + 1
    if at < 0 or not body.startswith(listed, start - 1):
        return None
    try:
        emptied = msgspec.json.decode(body[:start] + body[start + len(listed) - 2 :])
    except msgspec.DecodeError:
        return None
    return start if emptied.get(key) == [] else None


def _with_quote(problem: str, items: list[msgspec.Raw], before: int) -> str:
    """Return the problem with a quote from the start of the item that it names."""
    place = _PLACE.match(problem)
    index = int(place[1]) - before if place else -1
    if not 0 <= index < len(items):
        return problem
    item = msgspec.json.decode(items[index])
    text = _text_of(item)
    role = item.get("role") if isinstance(item, dict) else None
    return f"{problem} ({role or 'item'}: “{cut_line(text, _QUOTED_CHARS)}”)" if text else problem


def _text_of(item: Any) -> str:
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = next((text for text in texts if isinstance(text, str)), "")
    return content if isinstance(content, str) else ""


def _copied(value: Any) -> Any:
    """Return a shallow copy whose lists, sets, dicts and folds are independent; their elements are shared."""
    new = copy.copy(value)
    for name, held in vars(new).items():
        if isinstance(held, list | set | dict):
            setattr(new, name, held.copy())
        elif hasattr(held, "add") and hasattr(held, "__dict__"):
            setattr(new, name, _copied(held))
    return new
