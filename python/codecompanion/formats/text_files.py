"""Reads text files safely, and decodes them without loss.

`decode` → change the text → `encode` preserves every unchanged byte: byte-order mark, line endings (even mixed ones), a
missing final newline, bytes that are not valid text. Used by the packages that read the project (`workspace`, `tools`,
`rules`), which may not import each other.
"""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats.regex import regex

SNIFFED_BYTES = 8192
"""A NUL within this many bytes makes a file binary, as in git and ripgrep."""

MAX_READ_BYTES = 20_000_000
"""Maximum size of a file that is read as a whole."""

_BOMS = (
    (BOM_UTF32_LE, "utf-32-le"),
    (BOM_UTF32_BE, "utf-32-be"),
    (BOM_UTF8, "utf-8"),
    (BOM_UTF16_LE, "utf-16-le"),
    (BOM_UTF16_BE, "utf-16-be"),
)
# Control characters without a meaning in text, and the surrogates that represent undecodable bytes.
_UNPRINTABLE = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class UnreadableFile(ToolError):
    """A file cannot be read as text; the message gives its name and the reason."""


class TextFile(msgspec.Struct, frozen=True):
    """A decoded file. `text` keeps the file's line endings; undecodable bytes become lone surrogates."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @property
    def newline(self) -> Literal["\n", "\r\n"]:
        """Return the line ending of most lines, or Unix's for a file of one line."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf > self.text.count("\n") - crlf else "\n"


def is_binary(head: bytes) -> bool:
    """Return whether the first bytes of a file show that it is not text."""
    if any(head.startswith(mark) for mark, _ in _BOMS):
        return False
    return b"\0" in head[:SNIFFED_BYTES]


def decode(content: bytes) -> TextFile:
    """Decode a file's bytes: by byte-order mark, then as UTF-8, damaged UTF-8 or Latin-1.

    Damaged UTF-8 (more good multi-byte characters than bad bytes) keeps its bad bytes as lone surrogates, which
    `encode` converts back.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return TextFile(content[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                break
    try:
        return TextFile(content.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    damaged = content.decode("utf-8", "surrogateescape")
    bad = sum(1 for character in damaged if "\udc80" <= character <= "\udcff")
    good = sum(1 for character in damaged if character > "\x7f") - bad
    return TextFile(damaged) if good >= bad else TextFile(content.decode("latin-1"), "latin-1")


def encode(file: TextFile) -> bytes:
    """Return the bytes of the file.

    Raises:
        UnreadableFile: the text has characters that the file's encoding lacks; the message names the first.
    """
    try:
        errors = "surrogateescape" if file.encoding == "utf-8" else "strict"
        return file.bom + file.text.encode(file.encoding, errors)
    except UnicodeEncodeError as error:
        character = file.text[error.start]
        raise UnreadableFile(
            f"The file is encoded as {file.encoding}, which cannot encode U+{ord(character):04X}; nothing was written."
        ) from error


def printable(text: str) -> str:
    """Return the text with Unix line endings and U+FFFD for every byte or character that is not text.

    A lone carriage return does not end a line, as in ripgrep, so that line numbers agree.
    """
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def split_lines(text: str) -> list[str]:
    """Return the lines of a string with Unix line endings; a final newline does not add a line, "" has no lines."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def read_bytes(path: Path, limit_bytes: int = MAX_READ_BYTES) -> bytes:
    """Return the content of a regular file. `path` must be resolved: a symbolic link as its last component is refused.

    Opening never blocks (FIFOs, devices), and never reads more than `limit_bytes`.

    Raises:
        UnreadableFile: the file is missing, a folder, not regular, not permitted or too large; the message says which.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UnreadableFile(f"There is no file {path}.") from error
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path} cannot be read: {reason(error)}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise UnreadableFile(f"{path} is {kind}.")
    with os.fdopen(descriptor, "rb") as stream:
        try:
            content = stream.read(limit_bytes + 1)
        except OSError as error:
            raise UnreadableFile(f"{path} cannot be read: {reason(error)}.") from error
    if len(content) > limit_bytes:
        size = max(status.st_size, len(content))
        raise UnreadableFile(f"{path} has {size:,} bytes; at most {limit_bytes:,} can be read.")
    return content


def read_text(path: Path, limit_bytes: int = MAX_READ_BYTES) -> TextFile:
    """Return a text file, decoded.

    Raises:
        UnreadableFile: as for `read_bytes`, or the file is binary.
    """
    content = read_bytes(path, limit_bytes)
    if is_binary(content):
        raise UnreadableFile(f"{path} is a binary file of {len(content):,} bytes.")
    return decode(content)


def reason(error: Exception) -> str:
    """Return the cause of a failed file operation in lower case, without the path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
