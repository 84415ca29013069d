"""The conversation file of a chat's checkpoints: append and rewrite."""

from __future__ import annotations

import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model.messages import Message
from codecompanion.session.checkpoint_files import conversation_file
from codecompanion.session.checkpoint_files.conversation_file import ConversationFile
from codecompanion.session.checkpoint_files.throttle import Throttle
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.conversations import KEY


def said(*texts: str, start: int = 0) -> tuple[Message, ...]:
    return tuple(Message(id=f"m{number}", role="user", content=text) for number, text in enumerate(texts, start))


class Written:
    """A conversation file that counts the texts it scans for keys."""

    def __init__(self, tmp_path) -> None:
        self.files, self.keys, self.looked_through = CheckpointFiles(tmp_path), [], []
        self.file = ConversationFile("c", self.files, self._hide, lambda: len(self.keys))

    def _hide(self, text: str) -> str:
        self.looked_through.append(text)
        for key in self.keys:
            text = text.replace(key, "[hidden]")
        return text

    def write(self, messages) -> list[str]:
        """Write, and return the file's content."""
        place = self.file.write(messages, {}, {}, Throttle())
        raw = {"timestamp": 1, "checkpointKind": "snapshot", "id": "k", KEY: {"name": place.name, "bytes": place.bytes}}
        self.files.save_checkpoint("c", {**raw, "messageCount": len(messages)}, keep=False)
        return [message["content"] for message in self.files.payloads_of("c")[0].raw["conversationHistory"]]


def test_a_message_is_scanned_once(tmp_path):
    """Lesson 31: nothing is scanned when there is no new message."""
    written = Written(tmp_path)
    messages = said("one", "two")
    assert written.write(messages) == ["one", "two"]
    assert written.write(messages) == ["one", "two"]
    assert written.write((*messages, *said("three", start=2))) == ["one", "two", "three"]
    assert written.looked_through == ["one", "two", "three"]


def test_a_new_key_causes_a_full_rewrite(tmp_path):
    """Lesson 44: all messages are scanned again; the file with the key is deleted."""
    written = Written(tmp_path)
    messages = said("plain-secret", "two")
    written.write(messages)
    written.keys.append("plain-secret")
    assert written.write(messages) == ["[hidden]", "two"]
    assert not any(b"plain" in path.read_bytes() for path in tmp_path.rglob("*.jsonl"))


def test_a_failure_causes_a_full_rewrite(tmp_path, monkeypatch):
    """R-472: the remains of a broken write do not count."""
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


def test_a_file_of_mostly_old_messages_is_started_over(tmp_path, monkeypatch):
    """R-478: its size is at most twice that of the view, plus a small margin."""
    monkeypatch.setattr(conversation_file, "SPARE_BYTES", 1000)
    written, folder = Written(tmp_path), tmp_path / "transcripts/conversations/c"
    for number in range(60):
        assert written.write(said(f"only this {number}", start=number))
        assert [path.stat().st_size < 2000 for path in folder.iterdir()] == [True]


def test_a_deleted_file_is_not_named_with_a_gap_in_it(tmp_path):
    """R-478: after the user or a syncing program deleted the file, the next write is complete again."""
    written = Written(tmp_path)
    messages = said("one", "two", "three")
    written.write(messages[:1])
    for path in tmp_path.rglob("conversations/c/*.jsonl"):
        path.unlink()
    with pytest.raises(StoreUnavailable):
        written.write(messages[:2])
    assert written.write(messages) == ["one", "two", "three"]
