"""Drafts beside the log: text stored as a message is no longer a draft (lesson 36)."""

from __future__ import annotations

import pytest

from codecompanion.model.history import ChatCreated, MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.opening import open_memory_store, open_store
from tests.leftovers import closed_at_end


@pytest.mark.parametrize(
    ("draft", "left"),
    [
        ("hello", ""),
        (" hello\n", ""),
        ("hello\n\nmore", "more"),
        ("hello\n\nmore\n\nand more", "more\n\nand more"),
        ("hello more", "hello more"),
        ("hello\nmore", "hello\nmore"),
        ("more\n\nhello", "more\n\nhello"),
    ],
)
def test_storing_a_message_removes_its_draft_in_the_same_transaction(draft, left):
    """A queued message at the start of the draft is removed; newly typed text after it stays."""
    store = closed_at_end(open_memory_store())
    store.save_draft("c", draft).result()
    store.append("c", [MessageAdded(message=Message(id="m", role="user", content="hello"))]).result()
    assert store.load_draft("c") == left


def test_text_typed_into_a_copy_is_not_the_owners_draft_until_its_host_exits(tmp_path):
    """Nothing typed is lost or duplicated: each text is in one place, and the next host to open the chat gets it."""
    ours, theirs = open_store(tmp_path), open_store(tmp_path)
    try:
        ours.append("c", [ChatCreated(adapter="a", model="m", policy="p", cwd="/")]).result()
        ours.save_draft("c", "ours").result()
        theirs.save_draft("c", "theirs", "copy 1").result()
        assert ours.take_drafts("c", "copy 2", owned=True).result() == ("ours", "")  # it lives: its text is its own
        assert theirs.take_drafts("c", "copy 1", owned=False).result() == ("", "")  # it is in its input
        theirs.save_draft("c", "theirs", "copy 1").result()
    finally:
        theirs.close()
    assert ours.take_drafts("c", "copy 2", owned=True).result() == ("ours", "theirs")
    assert ours.take_drafts("c", "copy 2", owned=True).result() == ("ours\n\ntheirs", "")
    ours.close()
