"""Drafts beside the log: what was stored as a message is a draft no more (lesson 36)."""

from __future__ import annotations

import pytest

from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.opening import open_memory_store


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
def test_the_message_that_was_stored_leaves_the_draft_in_the_same_transaction(draft, left):
    """One that waited was kept in front of what was typed meanwhile: that stays."""
    store = open_memory_store()
    store.save_draft("c", draft).result()
    store.append("c", [MessageAdded(message=Message(id="m", role="user", content="hello"))]).result()
    assert store.load_draft("c") == left
