"""A sentence that refers to another message is true while that message exists, and afterwards."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.mentioned import Reference
from codecompanion.model.messages import Message, with_changes
from codecompanion.model.references import with_true_references

CHANGES = st.lists(st.sampled_from(["a", "b", "edit a", "edit b", "both"]), max_size=6)


def user(name: str, text: str, **more: object) -> Message:
    return with_changes(Message(id=name, role="user", content=text, tokens=10), **{"tokens": 10, **more})


@given(CHANGES)
def test_each_reference_follows_its_own_messages(changes: list[str]) -> None:
    """This applies whatever is removed and restored; the count follows the text, and no change is made twice."""
    references = (
        Reference(("a",), "A stands.", "A is gone.", 3),
        Reference(("a", "b"), "AB stand.", "AB are gone.", 5),
    )
    named = user("c", "x: A stands.\nAB stand.", references=references)
    whole = (user("a", "1"), user("b", "2"), named)
    messages = whole
    for change in changes:
        a, b, c = whole[0], whole[1], messages[-1]
        match change:
            case "a" | "b":
                kept = (a if change == "a" else b,)
            case "both":
                kept = (a, b)
            case _:
                kept = tuple(with_changes(m, edited=True) if m.id == change[-1] else m for m in (a, b))
        messages = with_true_references((*kept, c))
        assert with_true_references(messages) == messages
        there = {m.id for m in kept if not m.edited}
        words = ("A stands." if "a" in there else "A is gone.", "AB stand." if len(there) == 2 else "AB are gone.")
        assert messages[-1].text == "x: " + "\n".join(words)
        assert messages[-1].tokens == 10 + 3 * ("a" not in there) + 5 * (len(there) < 2)
    assert with_true_references((*whole[:2], messages[-1])) == whole


def test_a_cleared_message_refers_to_no_other() -> None:
    reference = Reference(("a",), "A stands.", "A is gone.")
    cleared = msgspec.structs.replace(user("c", "cleared"), references=(reference,), edited=True)
    assert with_true_references((cleared,)) == (cleared,)
