"""Tool calls from deltas, in all the shapes endpoints send."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.openai_chat.tool_deltas import FunctionDelta, ToolCallAssembler, ToolDelta, is_json_object
from codecompanion.adapters.reply_events import ReplyEvents
from codecompanion.model.messages import ToolCall


def assemble(*deltas: dict[str, Any], cut_by_limit: bool = False) -> tuple[ToolCall, ...]:
    numbers = iter(range(100))
    assembler = ToolCallAssembler(lambda: f"new{next(numbers)}", ReplyEvents())
    for delta in deltas:
        assembler.add(msgspec.convert(delta, ToolDelta))
    return assembler.finish(cut_by_limit=cut_by_limit)


def delta(
    index: int | None = None, call_id: str | None = None, name: str | None = None, text: Any = None
) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}


A = ToolCall("a", "read", '{"p":1}')
B = ToolCall("b", "grep", '{"q":2}')


@pytest.mark.parametrize(
    ("case", "deltas"),
    [
        (
            "interleaved",
            [
                delta(0, "a", "read", ""),
                delta(1, "b", "grep", ""),
                delta(0, text='{"p"'),
                delta(1, text='{"q":'),
                delta(0, text=":1}"),
                delta(1, text="2}"),
            ],
        ),
        ("all at once", [delta(0, "a", "read", '{"p":1}'), delta(1, "b", "grep", '{"q":2}')]),
        ("index always 0", [delta(0, "a", "read", '{"p":1}'), delta(0, "b", "grep", '{"q":2}')]),
        (
            "index always 0, in pieces",
            [delta(0, "a", "read", '{"p"'), delta(0, text=":1}"), delta(0, "b", "grep"), delta(0, text='{"q":2}')],
        ),
        ("no index", [delta(None, "a", "read", '{"p":1}'), delta(None, "b", "grep", '{"q":2}')]),
        (
            "no index, in pieces",
            [delta(None, "a", "read"), delta(text='{"p":1}'), delta(None, "b", "grep"), delta(text='{"q":2}')],
        ),
        (
            "name and id in every delta",
            [
                delta(0, "a", "read", '{"p"'),
                delta(0, "a", "read", ":1}"),
                delta(1, "b", "grep", '{"q"'),
                delta(1, "b", "grep", ":2}"),
            ],
        ),
        (
            "a fresh id in every delta",
            [
                delta(0, "a", "read", '{"p"'),
                delta(0, "x1", None, ":1}"),
                delta(1, "b", "grep", '{"q"'),
                delta(1, "x2", "", ":2}"),
            ],
        ),
        (
            "indexes from 1, second first",
            [delta(2, "a", "read", '{"p":1}'), delta(1, "b", "grep", '{"q":2}')],
        ),
        (
            "a call sent again as a whole",
            [
                delta(0, "a", "read", '{"p"'),
                delta(0, text=":1}"),
                delta(1, "b", "grep", '{"q":2}'),
                delta(0, "a", "read", '{"p":1}'),
            ],
        ),
    ],
)
def test_two_calls_are_assembled_from_any_shape(case: str, deltas: list[dict[str, Any]]) -> None:
    """Each shape occurs at a real endpoint or server."""
    assert assemble(*deltas) == (A, B), case


def test_arguments_as_an_object_become_text() -> None:
    """Ollama and some gateways send arguments as an object."""
    (call,) = assemble(delta(0, "a", "read", {"p": 1}))
    assert call == A


def test_calls_without_ids_and_arguments_at_index_0_are_two_calls() -> None:
    """Only the name distinguishes them."""
    calls = assemble(delta(0, None, "read", '{"p":1}'), delta(0, None, "read", '{"p":2}'))
    assert [(call.id, call.arguments) for call in calls] == [("new0", '{"p":1}'), ("new1", '{"p":2}')]


def test_calls_without_index_id_and_arguments_are_two_calls() -> None:
    """Calls of tools without arguments may consist of a name only."""
    assert [call.name for call in assemble(delta(None, None, "now"), delta(None, None, "here"))] == ["now", "here"]


@pytest.mark.parametrize("empty", ["", None, "  "])
def test_empty_arguments_are_an_empty_object(empty: str | None) -> None:
    """The text goes back to the endpoint with every later request."""
    assert assemble(delta(0, "a", "now", empty)) == (ToolCall("a", "now", "{}"),)


def test_a_repeated_id_is_replaced() -> None:
    """Ids are unique within the reply."""
    calls = assemble(delta(0, "a", "read", "{}"), delta(1, "b", "read", "{}"), delta(2, "b", None, ""))
    assert [call.id for call in calls] == ["a", "b"]


def test_only_a_call_truncated_by_the_limit_is_left_out() -> None:
    """Other broken arguments go to the runner, which reports them to the model."""
    deltas = (delta(0, "a", "read", '{"p":1}'), delta(1, "b", "grep", '{"q":'))
    assert assemble(*deltas, cut_by_limit=True) == (A,)
    assert [call.arguments for call in assemble(*deltas)] == ['{"p":1}', '{"q":']


def test_a_call_is_announced_once() -> None:
    """The announcement is for the status line."""
    assembler = ToolCallAssembler(lambda: "x", ReplyEvents())
    deltas = [delta(0, "a"), delta(0, None, "read"), delta(0, "a", "read", "{"), delta(0, text="}")]
    assert [assembler.add(msgspec.convert(entry, ToolDelta)) for entry in deltas] == [None, "read", None, None]


def test_a_call_without_a_name_is_reported() -> None:
    """It cannot be run."""
    assembler = ToolCallAssembler(lambda: "x", ReplyEvents())
    assembler.add(msgspec.convert(delta(0, "a", None, "{}"), ToolDelta))
    assert assembler.nameless


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("{}", True),
        (' {"a": 1} ', True),
        ("[]", False),
        ('{"a":', False),
        ("", False),
        ("{}{}", False),
        ("\ud800", False),
        ('{"a": 1e999}', False),
    ],
)
def test_a_json_object_is_recognised(text: str, whole: bool) -> None:
    """Lone surrogates do not cause an error."""
    assert is_json_object(text) is whole


def test_fields_beside_a_call_are_kept_byte_for_byte() -> None:
    """Gemini's thought signature: it comes with the first of parallel calls and must be sent back unchanged."""
    body = b'{"index": 0, "id": "c1", "function": {"name": "a", "arguments": "{}"}, "extra_content": %s}'
    extra = b'{"google":  {"thought_signature": "Q2l\\u0041=="}}'
    assembler = ToolCallAssembler(lambda: "new", ReplyEvents(), "openai_chat@google")
    assembler.add(msgspec.json.decode(body % extra, type=ToolDelta))
    assembler.add(ToolDelta(1, "c2", FunctionDelta("b", "{}")))
    first, second = assembler.finish()
    assert (first.origin, first.encrypted) == ("openai_chat@google", extra.decode())
    assert (second.origin, second.encrypted) == ("", "")


@pytest.mark.parametrize("extra", [b"null", b"{}"])
def test_empty_fields_beside_a_call_are_dropped(extra: bytes) -> None:
    """Gateways send them."""
    body = b'{"index": 0, "id": "c1", "function": {"name": "a"}, "extra_content": %s}'
    assembler = ToolCallAssembler(lambda: "new", ReplyEvents(), "o")
    assembler.add(msgspec.json.decode(body % extra, type=ToolDelta))
    assert assembler.finish()[0].encrypted == ""
