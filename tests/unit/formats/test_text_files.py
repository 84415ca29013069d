"""Text files as bytes and lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats import text_files
from codecompanion.formats.text_files import TextFile, UnreadableFile


@given(st.binary())
def test_decoding_and_encoding_keep_every_byte(content: bytes) -> None:
    """An edit must not change the rest, whatever the bytes."""
    assert text_files.encode(text_files.decode(content)) == content


@given(st.text(alphabet=st.characters(codec="utf-8")), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_text_is_read_back_in_every_unicode_encoding(text: str, encoding: str) -> None:
    content = text.encode(encoding)
    if encoding == "utf-8" and (content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[:3] == b"\xef\xbb\xbf"):
        return
    if encoding == "utf-16" and text.startswith("\0"):
        return  # begins like UTF-32
    assert text_files.decode(content).text == text


def test_latin_1_is_recognised_and_not_confused_with_damaged_utf_8() -> None:
    assert text_files.decode("café".encode("latin-1")).text == "café"
    damaged = text_files.decode("naïve café, ".encode() + b"\xff")
    assert text_files.printable(damaged.text) == "naïve café, \ufffd"


def test_a_character_the_encoding_lacks_is_an_error_that_names_it() -> None:
    with pytest.raises(UnreadableFile, match=r"latin-1.*U\+4E2D"):
        text_files.encode(TextFile("中", "latin-1"))


@pytest.mark.parametrize(
    ("text", "newline"), [("a\r\nb\r\nc\n", "\r\n"), ("a\nb\nc\r\n", "\n"), ("one line", "\n"), ("", "\n")]
)
def test_the_line_end_of_most_lines_is_that_of_the_file(text: str, newline: str) -> None:
    assert TextFile(text).newline == newline


def test_printable_text_has_no_control_characters_and_keeps_everything_else() -> None:
    assert text_files.printable("a\x00b\x1b[0m\tc\r\nd\u2028e\udcff") == "a\ufffdb\ufffd[0m\tc\nd\u2028e\ufffd"


@given(st.lists(st.text(alphabet=st.characters(blacklist_characters="\n\r", codec="utf-8"), min_size=1)))
def test_lines_are_split_at_line_feeds_only(lines: list[str]) -> None:
    """Line numbers must agree with those of ripgrep, which does not split at U+2028 or form feeds."""
    assert text_files.split_lines("\n".join(lines)) == lines
    assert text_files.split_lines("".join(line + "\n" for line in lines)) == lines


def test_a_nul_makes_a_file_binary_unless_a_mark_says_utf_16() -> None:
    assert text_files.is_binary(b"GIF89a\0\1")
    assert not text_files.is_binary("hello".encode("utf-16"))
    assert not text_files.is_binary(b"plain")


def test_unreadable_files_are_named_with_the_cause(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("12345")
    os.mkfifo(tmp_path / "fifo")
    for name, cause in {"none": "There is no file", "link": "cannot be read", "fifo": "not a regular file"}.items():
        with pytest.raises(UnreadableFile, match=cause) as caught:
            text_files.read_bytes(tmp_path / name)
        assert name in str(caught.value)
    with pytest.raises(UnreadableFile, match="is a folder"):
        text_files.read_bytes(tmp_path)
    with pytest.raises(UnreadableFile, match="5 bytes; at most 4"):
        text_files.read_bytes(tmp_path / "file", 4)
    assert text_files.read_bytes(tmp_path / "file", 5) == b"12345"


def test_an_endless_device_is_refused_instead_of_read() -> None:
    with pytest.raises(UnreadableFile, match="not a regular file"):
        text_files.read_bytes(Path("/dev/zero"))
