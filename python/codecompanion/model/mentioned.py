"""Defines message metadata: the editor content that a message mentions, and its references to other messages."""

from __future__ import annotations

import msgspec


class ShownLines(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a fenced code block in a message: lines of a file from `first` (1-based); `path` may be "".

    `whole`: whether it is the whole file.
    """

    path: str = ""
    first: int = 0
    whole: bool = False


class Mentioned(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of an editor context message. `written`: the mention as written in the question; `title`: for lists.

    `paths`: the files it shows; `shows`: the content of each of its fenced code blocks, in order. `fingerprint`: equal
    for equal content, or "" if part of it is omitted.
    """

    written: str
    title: str = ""
    paths: tuple[str, ...] = ()
    shows: tuple[ShownLines, ...] = ()
    fingerprint: str = ""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence in a message that refers to text in other messages (`ids`) instead of repeating it.

    `gone` replaces the sentence while any of those messages is changed or not in the view (`model.references`), and
    takes `more_tokens` additional tokens. `restores`: `gone` is the text itself, which the user attached.
    """

    ids: tuple[str, ...]
    text: str
    gone: str
    more_tokens: int = 0
    restores: bool = False
