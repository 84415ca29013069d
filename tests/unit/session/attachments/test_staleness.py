"""Whether a file still has the text that a message quotes (lesson 24, R-516)."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from codecompanion.model.messages import ImagePart, Message, TextPart, ToolCall
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.attachments.staleness import CHANGED, GONE, changed_since

LINES = "".join(f"line {number}\n" for number in range(1, 11))


def read_result(first=1, last=10, note="", **arguments):
    """Return a result of read_file as the tool writes it, with its call."""
    text = "\n".join(f"{number}\tline {number}" for number in range(first, last + 1)) + note
    call = ToolCall("c", "read_file", json.dumps({"path": "a.txt", **arguments}))
    return Message(id="m", role="tool", tool_call_id="c", content=text, ts=1000.0), call


def state(root, message, call=None):
    return changed_since(message, call, message.text, root)


def test_a_whole_file_is_compared_line_by_line_and_in_length(tmp_path):
    message, call = read_result()
    file = tmp_path / "a.txt"
    file.write_text(LINES)
    assert state(tmp_path, message, call) == ""
    file.write_text(LINES + "one more\n")
    assert state(tmp_path, message, call) == CHANGED
    file.write_text(LINES.replace("line 3", "line three"))
    assert state(tmp_path, message, call) == CHANGED
    file.unlink()
    assert state(tmp_path, message, call) == GONE


def test_only_the_lines_that_were_read_are_compared(tmp_path):
    message, call = read_result(4, 6, "\n[4 more lines up to line 10]", start_line=4, end_line=6)
    file = tmp_path / "a.txt"
    file.write_text(LINES.replace("line 9", "changed") + "more\n")
    assert state(tmp_path, message, call) == ""
    file.write_text("first\n" + LINES)
    assert state(tmp_path, message, call) == CHANGED


def test_partial_lines_are_compared_by_time(tmp_path):
    message, call = read_result(1, 1, start_column=2)
    file = tmp_path / "a.txt"
    file.write_text(LINES)
    os.utime(file, (900, 900))
    assert state(tmp_path, message, call) == ""
    os.utime(file, (1100, 1100))
    assert state(tmp_path, message, call) == CHANGED


def test_attached_texts_and_images_are_compared_by_content(tmp_path):
    file, picture = tmp_path / "a.txt", tmp_path / "p.png"
    file.write_text("```\nfenced\n```\n")
    picture.write_bytes(b"png")
    message = text_attachment("file", "a.txt", file.read_text(), "m")
    part = ImagePart(sha256=hashlib.sha256(b"png").hexdigest())
    image = Message(id="i", role="user", tag="image", path=str(picture), content=(TextPart("The image"), part))
    assert (state(tmp_path, message), state(tmp_path, image)) == ("", "")
    file.write_text("other")
    picture.write_bytes(b"jpg")
    assert (state(tmp_path, message), state(tmp_path, image)) == (CHANGED, CHANGED)
    picture.unlink()
    assert state(tmp_path, image) == GONE


@pytest.mark.parametrize("path", ["/etc/passwd", "../a.txt", "stored:abc", 7])
def test_incomparable_results_are_not_reported(tmp_path, path):
    message, _ = read_result()
    call = ToolCall("c", "read_file", json.dumps({"path": path}))
    assert state(tmp_path, message, call) == ""
    assert state(tmp_path, message, ToolCall("c", "run_command", "{}")) == ""
    assert state(tmp_path, message, ToolCall("c", "read_file", "{broken")) == ""
    assert state(tmp_path, Message(id="u", role="user", content="hello")) == ""
