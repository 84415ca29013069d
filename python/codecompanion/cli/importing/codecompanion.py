"""`import --from codecompanion`: read `sessions export`, or a chat saved by CodeCompanion.nvim's history extension.

The history extension writes one JSON object with `messages`: role (`llm` for the model), content, `opts` or `_meta`
(tag, visible), `cycle`, calls in `tool_calls` or `tools.calls`, the id of a result in `tool_call_id` or
`tools.call_id`.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing import fields
from codecompanion.cli.importing.openai_api import read_messages
from codecompanion.errors import InputError
from codecompanion.formats.json_words import kind
from codecompanion.model.messages import TAGS
from codecompanion.model.transcript_format import read_message, write_message

EXPECTED = 'an export of a session (one message per line), or a saved chat, {"messages": […]}'


def read(raw: bytes, source: str, skipped: fields.Skipped = None) -> list[dict[str, Any]]:
    """Return the messages of the conversation.

    Raises:
        InputError: a value is not as expected; the message names the file and line.
    """
    values = fields.read_values(raw, source, EXPECTED, skipped)
    whole = values[0].value
    if len(values) == 1 and isinstance(whole, dict) and "messages" in whole:
        where = f"{values[0].where}: messages"
        items = list(fields.numbered(fields.expect_list(whole["messages"], where, "a list of messages"), where))
        return [_read_saved(item, number, skipped) for number, item in enumerate(items)]
    if len(values) == 1 and isinstance(whole, list):
        values = list(fields.numbered(whole, values[0].where))
    return [
        write_message(read_message(item.value, f"m{number}", item.where), item.value)
        for number, item in enumerate(values)
    ]


def _read_saved(item: fields.Found, number: int, skipped: fields.Skipped) -> dict[str, Any]:
    saved = fields.expect_object(item.value, item.where, "a message object")
    tools = _as_object(saved.get("tools"))
    notes = {
        name: value for part in ("opts", "_meta", "context") for name, value in _as_object(saved.get(part)).items()
    }
    calls = saved.get("tool_calls") or tools.get("calls")
    call_id = saved.get("tool_call_id") or tools.get("call_id")
    chat = {"role": "assistant" if saved.get("role") == "llm" else saved.get("role"), "content": saved.get("content")}
    if calls:
        calls = fields.expect_list(calls, f"{item.where}: tool_calls", "a list of tool calls")
        chat["tool_calls"] = [_with_id(call, number, place) for place, call in enumerate(calls)]
    if call_id:
        chat["tool_call_id"] = call_id
    thoughts = saved.get("reasoning")
    chat["reasoning_content"] = thoughts.get("content") if isinstance(thoughts, dict) else thoughts
    message = read_messages([fields.Found(chat, item.where)])[0]
    tag, path = (_text(notes.get(name), f"{item.where}: {name}", skipped) for name in ("tag", "path"))
    cycle = saved.get("cycle") or notes.get("cycle")
    return fields.with_meta(
        message,
        tag=tag if message["role"] == "user" and tag in TAGS else None,
        path=path,
        pinned=bool(notes.get("pinned")),
        cycle=cycle if isinstance(cycle, int) and not isinstance(cycle, bool) and cycle > 0 else None,
    )


def _text(value: Any, where: str, skipped: fields.Skipped) -> str | None:
    """Return the text of a message; a value that is not text is skipped, but the message is kept."""
    if value is None or isinstance(value, str):
        return value
    fields.skip(skipped, InputError(f"{where}: expected a string, found {kind(value)}"))
    return None


def _with_id(call: Any, number: int, place: int) -> Any:
    """Return the call, with a generated id if it has none."""
    if isinstance(call, dict) and not isinstance(call.get("id"), str):
        return {**call, "id": f"call_{number}_{place}"}
    return call


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
