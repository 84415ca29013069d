"""Joins the items of a request with commas into chunks, which remain the same objects as the chat grows.

A long chat has megabytes of items, and its next request contains these and a few more. Code that checks or sends the
body iterates over chunks instead of bytes: a chunk of the previous request is recognised by identity and never copied.
"""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.adapters.alternation import Alternation, Speaker, UserForm

CHUNK_BYTES = 1 << 20
"""Size in bytes at which a chunk is full. Sending has a cost per chunk as well as per byte."""


class Blocks:
    """A byte string that is appended to and read as a few chunks; full chunks do not change."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        """The full chunks."""
        self._open: list[bytes] = []
        self._size = 0

    def append(self, piece: bytes) -> None:
        """Append bytes."""
        self._open.append(piece)
        self._size += len(piece)
        if self._size >= CHUNK_BYTES:
            self.chunks.append(b"".join(self._open))
            self._open, self._size = [], 0

    @property
    def is_empty(self) -> bool:
        """Return whether no bytes have been appended."""
        return not self.chunks and not self._open

    def between(self, head: bytes, tail: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return the chunks of a body that begins with `head` and ends with `tail`."""
        if not self.chunks:
            return (b"".join((head, *self._open, *tail)),)
        return (head, *self.chunks, b"".join((*self._open, *tail)))


class JoinedPieces:
    """The pieces of one request, each with one or several items joined by commas; `form` makes the roles alternate."""

    def __init__(self, form: UserForm | None = None) -> None:
        self._turns = Alternation(form) if form is not None else None
        self._blocks = Blocks()
        self.count = 0
        """The number of added pieces."""

    def add(self, speaker: Speaker, piece: bytes) -> None:
        """Append a piece; an empty piece is only counted."""
        self.count += 1
        if not piece:
            return
        if self._turns is None:
            self._put(piece)
            return
        for settled in self._turns.add(speaker, piece):
            self._put(settled)

    @property
    def is_empty(self) -> bool:
        """Return whether there are no items."""
        return self._blocks.is_empty and not (self._turns is not None and self._turns.open_piece())

    def between(self, head: bytes, tail: bytes) -> tuple[bytes, ...]:
        """Return the chunks of a body with the items between `head` and `tail`."""
        last = self._turns.open_piece() if self._turns is not None else b""
        comma = b"," if last and not self._blocks.is_empty else b""
        return self._blocks.between(head, (comma, last, tail))

    def _put(self, piece: bytes) -> None:
        # The comma precedes an item, so that each chunk ends with one.
        self._blocks.append(piece if self._blocks.is_empty else b"," + piece)
