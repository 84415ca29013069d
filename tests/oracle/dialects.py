"""Chat Completions as real endpoints send it: streams that differ from OpenAI's, with the content of each.

Each was seen in recorded traffic or reported for a widely used server, and is written down here in its smallest form.
`python -m tests.oracle.dialects` prints which of them the installed official SDK can read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.oracle.reading import Reading, Reply, read_with_ours, read_with_sdk

USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
SAID = Reading("Hello", (), "stop", (9, 2))
CALLED = Reading("", (("weather", '{"city": "Oslo"}'),), "tool_calls", (9, 2))
TWICE = Reading("", (("weather", '{"city": "Oslo"}'), ("weather", '{"city": "Rome"}')), "tool_calls", (9, 2))


@dataclass(frozen=True)
class Dialect:
    """A stream and its content."""

    name: str
    body: bytes
    says: Reading


def chunk(delta: Any = None, finish: Any = None, *, choice: Any = None, **more: Any) -> str:
    """Return the JSON of one chunk."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish, **(choice or {})}]
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    return json.dumps({**base, **more}, ensure_ascii=False)


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    """Return a delta with one fragment of a tool call; fields that are None are omitted."""
    given = {"index": 0, "id": "call_1", "type": "function", **fields}
    function = {"name": given.pop("name", "weather"), "arguments": arguments}
    kept = {name: value for name, value in given.items() if value is not None}
    return {"tool_calls": [{**kept, "function": {k: v for k, v in function.items() if v is not None}}]}


def stream(
    *chunks: str, end: str = "data: [DONE]\n\n", mark: str = "data: ", gap: str = "\n\n", start: str = ""
) -> bytes:
    """Return chunks as a stream."""
    return (start + "".join(f"{mark}{one}{gap}" for one in chunks) + end).encode()


TEXT = (chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop"))
TOTAL = chunk(choices=[], usage=USAGE)
ENDED = (chunk({}, "tool_calls"), TOTAL)
ARGUMENTS = '{"city": "Oslo"}'

MESSAGE = {"role": "assistant", "content": "Hello"}
WHOLE = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
WHOLE["choices"] = [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]

DIALECTS = (
    Dialect("OpenAI's own", stream(*TEXT, TOTAL), SAID),
    Dialect("no blank lines", stream(*TEXT, TOTAL, gap="\n", end="data: [DONE]\n"), SAID),
    Dialect("no blank line at the end", stream(*TEXT, TOTAL, end="data: [DONE]"), SAID),
    Dialect("no [DONE]", stream(*TEXT, TOTAL, end=""), SAID),
    Dialect("no space after data:", stream(*TEXT, TOTAL, mark="data:", end="data:[DONE]\n\n"), SAID),
    Dialect("lines that end with CR LF", stream(*TEXT, TOTAL, gap="\r\n\r\n", end="data: [DONE]\r\n\r\n"), SAID),
    Dialect("lines that end with CR", stream(*TEXT, TOTAL, gap="\r\r", end="data: [DONE]\r\r"), SAID),
    Dialect("a byte order mark", "\ufeff".encode() + stream(*TEXT, TOTAL), SAID),
    Dialect("comments between", stream(*TEXT, TOTAL, start=": hi\n\n", gap="\n\n: ping\n\n"), SAID),
    Dialect("empty data", stream(*TEXT, TOTAL, start="data:\n\n"), SAID),
    Dialect("names of events", stream(*TEXT, TOTAL, mark="event: message\nid: 1\ndata: "), SAID),
    Dialect(
        "a chunk over several lines",
        stream(*(json.dumps(json.loads(one), indent=1).replace("\n", "\ndata: ") for one in (*TEXT, TOTAL))),
        SAID,
    ),
    Dialect("usage beside the last choice", stream(*TEXT[:2], chunk({}, "stop", usage=USAGE)), SAID),
    Dialect("usage within the choice", stream(*TEXT[:2], chunk({}, "stop", choice={"usage": USAGE})), SAID),
    Dialect("usage of Groq", stream(*TEXT[:2], chunk({}, "stop", x_groq={"usage": USAGE})), SAID),
    Dialect(
        "usage in every chunk",
        stream(
            *(
                chunk(d, f, usage=USAGE)
                for d, f in (({"content": "Hel"}, None), ({"content": "lo"}, None), ({}, "stop"))
            )
        ),
        SAID,
    ),
    Dialect("a reason with the last text", stream(TEXT[0], chunk({"content": "lo"}, "stop"), TOTAL), SAID),
    Dialect(
        "an empty reason before the end",
        stream(chunk({"content": "Hel"}, ""), chunk({"content": "lo"}, ""), TEXT[2], TOTAL),
        SAID,
    ),
    Dialect("a reason of its own: eos", stream(*TEXT[:2], chunk({}, "eos"), TOTAL), SAID),
    Dialect("no choices in between", stream(TEXT[0], chunk(choices=None), *TEXT[1:], TOTAL), SAID),
    Dialect("an empty first chunk", stream("{}", *TEXT, TOTAL), SAID),
    Dialect(
        "a delta that is null", stream(*TEXT[:2], chunk(choice={"delta": None, "finish_reason": "stop"}), TOTAL), SAID
    ),
    Dialect("content in parts", stream(chunk({"content": [{"type": "text", "text": "Hello"}]}), TEXT[2], TOTAL), SAID),
    Dialect(
        "a message in place of a delta",
        stream(chunk(choice={"delta": None, "message": MESSAGE, "finish_reason": "stop"}), TOTAL),
        SAID,
    ),
    Dialect("one JSON object in place of a stream", json.dumps(WHOLE).encode(), SAID),
    Dialect("a call without an index", stream(chunk(call(ARGUMENTS, index=None)), *ENDED), CALLED),
    Dialect("a call without an id", stream(chunk(call(ARGUMENTS, id=None)), *ENDED), CALLED),
    Dialect("a call without a type", stream(chunk(call(ARGUMENTS, type=None)), *ENDED), CALLED),
    Dialect("a call whose reason is stop", stream(chunk(call(ARGUMENTS)), TEXT[2], TOTAL), CALLED),
    Dialect("arguments as an object", stream(chunk(call({"city": "Oslo"})), *ENDED), CALLED),
    Dialect("a name in every piece", stream(chunk(call('{"city": ')), chunk(call('"Oslo"}')), *ENDED), CALLED),
    Dialect(
        "empty ids and names after the first piece",
        stream(chunk(call('{"city": ')), chunk(call('"Oslo"}', id="", name="")), *ENDED),
        CALLED,
    ),
    Dialect(
        "two calls of index 0",
        stream(chunk(call(ARGUMENTS)), chunk(call('{"city": "Rome"}', id="call_2")), *ENDED),
        TWICE,
    ),
    Dialect(
        "two calls that begin with index 1",
        stream(chunk(call(ARGUMENTS, index=1)), chunk(call('{"city": "Rome"}', index=2, id="call_2")), *ENDED),
        TWICE,
    ),
)


def is_read(dialect: Dialect, *, by_sdk: bool) -> bool:
    """Return whether the stream is read correctly."""
    read = read_with_sdk if by_sdk else read_with_ours
    # A stream was asked for; our reader of bodies sees by the first byte that none came.
    streams = by_sdk or not dialect.body.startswith(b"{")
    try:
        return read(Reply(dialect.name, "chat", dialect.body, streams)) == dialect.says
    except Exception:  # a reader may fail in any way
        return False


def main() -> None:
    """Print each reader's results."""
    import warnings
    from importlib.metadata import version

    warnings.simplefilter("ignore")  # pydantic's, of values that the SDK passes on
    rows = [(dialect.name, is_read(dialect, by_sdk=False), is_read(dialect, by_sdk=True)) for dialect in DIALECTS]
    for name, ours, sdk in rows:
        print(f"{name:45} ours: {'yes' if ours else 'NO':4} openai: {'yes' if sdk else 'no'}")
    both = [sum(row[index] for row in rows) for index in (1, 2)]
    print(f"\nof {len(rows)}: {both[0]} by our decoder, {both[1]} by openai {version('openai')}")


if __name__ == "__main__":
    main()
