"""The conversation of a chat on its way to its checkpoints: what is written once, and what is written anew."""

from __future__ import annotations

import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model.messages import Message
from codecompanion.session.checkpoint_files import conversation_file
from codecompanion.session.checkpoint_files.conversation_file import ConversationFile
from codecompanion.session.checkpoint_files.stand_back import StandBack
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.conversations import KEY


def said(*texts: str, start: int = 0) -> tuple[Message, ...]:
    return tuple(Message(id=f"m{number}", role="user", content=text) for number, text in enumerate(texts, start))


class Written:
    """A conversation file that counts what it looks through for keys."""

    def __init__(self, tmp_path) -> None:
        self.files, self.keys, self.looked_through = CheckpointFiles(tmp_path), [], []
        self.file = ConversationFile("c", self.files, self._hide, lambda: len(self.keys))

    def _hide(self, text: str) -> str:
        self.looked_through.append(text)
        for key in self.keys:
            text = text.replace(key, "[hidden]")
        return text

    def write(self, messages) -> list[str]:
        """Write, and return what is read back."""
        place = self.file.write(messages, {}, {}, StandBack())
        raw = {"timestamp": 1, "checkpointKind": "snapshot", "id": "k", KEY: {"name": place.name, "bytes": place.bytes}}
        self.files.save_checkpoint("c", {**raw, "messageCount": len(messages)}, keep=False)
        return [message["content"] for message in self.files.payloads_of("c")[0].raw["conversationHistory"]]


def test_a_message_is_looked_through_once(tmp_path):
    """Lesson 31: and not at all when nothing is new."""
    written = Written(tmp_path)
    messages = said("one", "two")
    assert written.write(messages) == ["one", "two"]
    assert written.write(messages) == ["one", "two"]
    assert written.write((*messages, *said("three", start=2))) == ["one", "two", "three"]
    assert written.looked_through == ["one", "two", "three"]


def test_once_another_key_is_known_everything_is_written_again(tmp_path):
    """Lesson 44: what was looked through before is looked through again; the file with the key goes."""
    written = Written(tmp_path)
    messages = said("plain-secret", "two")
    written.write(messages)
    written.keys.append("plain-secret")
    assert written.write(messages) == ["[hidden]", "two"]
    assert not any(b"plain" in path.read_bytes() for path in tmp_path.rglob("*.jsonl"))


def test_after_a_failure_everything_is_written_again(tmp_path, monkeypatch):
    """R-472: what a broken write left counts for nothing."""
    written = Written(tmp_path)
    messages = said("one", "two")
    written.write(messages[:1])

    def full(*arguments):
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(written.files, "append_conversation", full)
        with pytest.raises(StoreUnavailable):
            written.write(messages)
    assert written.write(messages) == ["one", "two"]


def test_a_file_that_is_mostly_of_the_past_is_started_over(tmp_path, monkeypatch):
    """R-478: it holds at most twice what is in the view, and a little more."""
    monkeypatch.setattr(conversation_file, "SPARE_BYTES", 1000)
    written, folder = Written(tmp_path), tmp_path / "transcripts/conversations/c"
    for number in range(60):
        assert written.write(said(f"only this {number}", start=number))
        assert [path.stat().st_size < 2000 for path in folder.iterdir()] == [True]


def test_a_file_that_was_deleted_is_not_named_with_a_hole_in_it(tmp_path):
    """R-478: by the user or a program that syncs; the next write has everything again."""
    written = Written(tmp_path)
    messages = said("one", "two", "three")
    written.write(messages[:1])
    for path in tmp_path.rglob("conversations/c/*.jsonl"):
        path.unlink()
    with pytest.raises(StoreUnavailable):
        written.write(messages[:2])
    assert written.write(messages) == ["one", "two", "three"]
