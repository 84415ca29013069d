"""The fake Responses server refuses unrelated items; each refused list has an accepted counterpart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.openai.refusal import Refusal, Refused
from tests.providers.responses.answers import Call, Compacted, Declined, Reply, Text, Thought
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.rules import Accepted, Rules, accept
from tests.providers.responses.stream import Rendering

USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
TRIGGER = {"type": "compaction_trigger"}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def give(ledger: Ledger, *items: Any, model: str = "m") -> list[dict[str, Any]]:
    """Record the items of a response in the ledger and return them as a client stores them."""
    rendering = Rendering(Reply(items), {"include": ["reasoning.encrypted_content"]}, ledger)
    ledger.record(rendering.output, model, rendering.tokens)
    return rendering.output


def answered(*outputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an output for every call among these items."""
    calls = [item["call_id"] for item in outputs if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call_id, "output": "done"} for call_id in calls]


def accepted(ledger: Ledger, *items: Any, rules: Rules | None = None) -> Accepted:
    body = {"model": "m", "store": False, "input": list(items)}
    return accept("responses", body, rules or Rules(models=("m",)), ledger)


def refused(ledger: Ledger, *items: Any) -> Refusal:
    with pytest.raises(Refused) as caught:
        accepted(ledger, *items)
    return caught.value.refusal


def without(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in keys}


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ([USER, OUTPUT], [USER, CALL, OUTPUT], "No tool call found for function call output with call_id call_1."),
        ([OUTPUT, CALL], [CALL, OUTPUT], "No tool call found"),
        ([USER, CALL], [USER, CALL, OUTPUT], "No tool output found for function call call_1."),
        ([CALL, USER, OUTPUT], [CALL, OUTPUT, USER], "No tool output found"),
        ([CALL, OUTPUT, OUTPUT], [CALL, OUTPUT], "No tool call found"),
        ([CALL, CALL, OUTPUT], [CALL, {**CALL, "call_id": "b"}, OUTPUT, {**OUTPUT, "call_id": "b"}], "Duplicate"),
        ([CALL, OUTPUT, CALL, OUTPUT], [CALL, OUTPUT, USER], "Duplicate"),
        ([CALL, TRIGGER], [CALL, OUTPUT, TRIGGER], "No tool output found"),
        ([TRIGGER, USER], [USER, TRIGGER], "The 'compaction_trigger' item must be the final input item."),
        ([CALL, without(OUTPUT, "call_id")], [CALL, OUTPUT], "Missing required parameter: 'input[1].call_id'."),
        ([{**CALL, "name": "a b"}, OUTPUT], [{**CALL, "name": "a_b"}, OUTPUT], "does not match pattern"),
        (
            [{**CALL, "call_id": "c" * 65}, {**OUTPUT, "call_id": "c" * 65}],
            [{**CALL, "call_id": "c" * 64}, {**OUTPUT, "call_id": "c" * 64}],
            "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but got",
        ),
        ([CALL, {**OUTPUT, "call_id": "c" * 65}], [CALL, OUTPUT], "Invalid 'input[1].call_id': string too long"),
        ([{**CALL, "call_id": ""}, {**OUTPUT, "call_id": ""}], [CALL, OUTPUT], "empty string"),
        ([CALL, {**OUTPUT, "output": ""}], [CALL, {**OUTPUT, "output": "-"}], "empty string"),
        (
            [CALL, {**OUTPUT, "output": [{"type": "output_text", "text": "x"}]}],
            [CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "x"}]}],
            "does not match any of the expected tags",
        ),
        ([CALL, {**OUTPUT, "is_error": True}], [CALL, OUTPUT], "Unknown parameter: 'input[1].is_error'."),
        ([USER, {"type": "item_reference", "id": "msg_1"}], [USER], "Item with id 'msg_1' not found."),
    ],
)
def test_calls_and_outputs_belong_together(ledger: Ledger, wrong: list[Any], right: list[Any], words: str) -> None:
    """Each call has one output, after it and before any user message."""
    assert words in refused(ledger, *wrong).message
    assert accepted(ledger, *right).items


def test_interleaved_reasoning_and_parallel_calls_are_sent_back_complete(ledger: Ledger) -> None:
    """The order is reasoning, call, reasoning, call; the outputs may come in any order."""
    given = give(ledger, Thought(("a", "b")), Call("x"), Thought(), Call("y"), Call("z"))
    outputs = answered(*given)
    assert accepted(ledger, USER, *given, *outputs).items
    assert accepted(ledger, USER, *given[:2], outputs[0], *given[2:], *reversed(outputs[1:])).items


def test_reasoning_needs_the_item_after_it(ledger: Ledger) -> None:
    """It must be the same item, with or without its id; an item of another type or turn is refused."""
    thought, message, call = give(ledger, Thought(("why",)), Text("so"), Call("now"))
    words = f"Item '{thought['id']}' of type 'reasoning' was provided without its required following item."
    for wrong in ([thought], [thought, USER], [thought, call, *answered(call)], [thought, *give(ledger, Text("else"))]):
        assert refused(ledger, USER, *wrong).message == words
    assert accepted(ledger, USER, thought, message, call, *answered(call)).items
    bare = [without(message, "id", "status", "type") | {"content": "so"}, without(call, "id")]
    assert accepted(ledger, USER, thought, *bare, *answered(call)).items


def test_reasoning_that_ended_its_response_cannot_be_sent(ledger: Ledger) -> None:
    """Nothing can follow it, because the reply was cut off while thinking."""
    assert "required following item" in refused(ledger, USER, *give(ledger, Thought())).message
    assert accepted(ledger, USER, *give(ledger, Thought(), Text("x"))).items


@pytest.mark.parametrize("item", [Call("now"), Text("so")])
def test_an_item_with_its_id_needs_its_reasoning(ledger: Ledger, item: Any) -> None:
    """Without ids both can be omitted; the second of two parallel calls needs the reasoning as much as the first."""
    thought, first, second = give(ledger, Thought(), item, Call("then"))
    rest = answered(first, second)
    text = f"was provided without its required 'reasoning' item: '{thought['id']}'."
    assert text in refused(ledger, USER, first, second, *rest).message
    bare = without(first, "id") if isinstance(item, Call) else {"role": "assistant", "content": "so"}
    assert text in refused(ledger, USER, bare, second, *rest).message
    assert accepted(ledger, USER, bare, without(second, "id"), *rest).items
    assert accepted(ledger, USER, thought, first, second, *rest).items


def test_only_unchanged_reasoning_can_be_decrypted(ledger: Ledger) -> None:
    """Reasoning is refused if it is changed, foreign, moved to another item, or has a different summary.

    It is also refused if taken from the `added` event.
    """
    thought, message = give(ledger, Thought(("why",)), Text("so"))
    other = give(ledger, Thought(), Text("x"))[0]
    sealed = thought["encrypted_content"]
    early = ledger.seal(thought["id"], finished=False)
    foreign = give(Ledger(), Thought(), Text("x"))[0]["encrypted_content"]
    for wrong in (sealed[:-1], sealed + "A", "gAAAAAB", foreign, other["encrypted_content"], early):
        refusal = refused(ledger, USER, {**thought, "encrypted_content": wrong}, message)
        assert (refusal.status, refusal.code, refusal.param) == (400, "invalid_encrypted_content", None)
    changed = {**thought, "summary": [{"type": "summary_text", "text": "because"}]}
    assert refused(ledger, USER, changed, message).code == "invalid_encrypted_content"
    again = {**thought, "encrypted_content": ledger.seal(thought["id"])}
    assert accepted(ledger, USER, again, message).items, "the seal of the finished response"


def test_reasoning_without_its_content_is_not_found(ledger: Ledger) -> None:
    """Nothing is stored for a request that did not ask for it."""
    thought, message = give(ledger, Thought(), Text("so"))
    refusal = refused(ledger, USER, without(thought, "encrypted_content"), message)
    assert refusal.status == 404
    assert "Items are not persisted when `store` is set to false." in refusal.message
    assert accepted(ledger, USER, thought, message).items


def test_reasoning_of_another_model_is_noted(ledger: Ledger) -> None:
    """The provider removes it from the prompt without notice."""
    assert accepted(ledger, USER, *give(ledger, Thought(), Text("x"), model="n")).notes == (
        "reasoning of another model: n",
    )


def test_an_answer_is_sent_back_as_text_or_refusal_and_not_empty(ledger: Ledger) -> None:
    """It is sent back in the parts in which it was received."""
    for item, key in ((Text("so"), "text"), (Declined("no"), "refusal")):
        (message,) = give(ledger, item)
        assert accepted(ledger, USER, message).items
        emptied = {**message, "content": [{**message["content"][0], key: ""}]}
        assert refused(ledger, USER, emptied).message.startswith(f"Invalid 'input[1].content[0].{key}': empty string.")


def test_ids_are_our_own_complete_and_unique(ledger: Ledger) -> None:
    """This covers the prefix, the alphabet, the length, and ids of another provider."""
    (message,) = give(ledger, Text("so"))
    (call,) = give(ledger, Call("now"))
    own = message["id"]
    cases = {
        "item_1": "Expected an ID that begins with 'msg'.",
        "msg_ä": "this value contained additional characters.",
        "msg_" + "1" * 61: "string too long",
        "msg_1": "Item with id 'msg_1' not found.",
    }
    for given, words in cases.items():
        assert words in refused(ledger, USER, {**message, "id": given}).message
    assert "begins with 'fc'" in refused(ledger, {**call, "id": own}, *answered(call)).message
    assert f"Duplicate item found with id {own}." in refused(ledger, message, USER, message).message
    assert accepted(ledger, message, USER, call, *answered(call)).items


def test_only_our_own_compaction_is_accepted_and_only_one(ledger: Ledger) -> None:
    """It may lack its id; a changed or foreign compaction and a second one are refused."""
    (compaction,) = give(ledger, Compacted())
    (second,) = give(ledger, Compacted())
    (foreign,) = give(Ledger(), Compacted())
    assert accepted(ledger, compaction, USER).items
    assert accepted(ledger, without(compaction, "id"), USER).items
    thought = give(ledger, Thought(), Text("x"))[0]
    changed = {**compaction, "encrypted_content": compaction["encrypted_content"][:-4] + "AAAA"}
    for wrong in (foreign, changed, {**compaction, "id": "cmp_1"}, {**thought, "type": "compaction", "id": None}):
        item = without(wrong, "summary", "content")
        assert refused(ledger, item, USER).code == "invalid_encrypted_content"
    assert "Expected an ID that begins with 'cmp'" in refused(ledger, {**compaction, "id": "x"}, USER).message
    assert "Only one compaction item" in refused(ledger, compaction, USER, second, USER).message
    lenient = Rules(models=("m",), several_compactions=True)
    assert accepted(ledger, compaction, USER, second, USER, rules=lenient).live == (second, USER)


def test_items_before_a_compaction_are_checked_but_not_counted(ledger: Ledger) -> None:
    """They may be sent or omitted; a call cannot have its output on the other side of the compaction."""
    (compaction,) = give(ledger, Compacted(tokens=100))
    long = {"role": "user", "content": "word " * 900}
    alone = accepted(ledger, compaction, USER)
    whole = accepted(ledger, long, CALL, OUTPUT, compaction, USER)
    assert len(whole.prompt) == len(alone.prompt) < 150
    assert whole.live == (compaction, USER)
    assert "Unknown parameter" in refused(ledger, {**long, "x": 1}, compaction, USER).message
    assert "No tool output found" in refused(ledger, CALL, compaction, OUTPUT, USER).message
    assert "No tool call found" in refused(ledger, CALL, OUTPUT, compaction, OUTPUT, USER).message
    assert accepted(ledger, CALL, OUTPUT, compaction, CALL, OUTPUT, USER).items


def test_only_reasoning_of_this_turn_is_counted(ledger: Ledger) -> None:
    """The provider does not read older reasoning again."""
    given = give(ledger, Thought(tokens=500), Call("now"))
    loop = [USER, *given, *answered(*given)]
    assert len(accepted(ledger, *loop).prompt) > 500
    assert len(accepted(ledger, *loop, *give(ledger, Text("so")), USER).prompt) < 100
