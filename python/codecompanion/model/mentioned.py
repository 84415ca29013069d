"""What a message says of itself beside its text: what it mentions of the editor, and what of it stands elsewhere."""

from __future__ import annotations

import msgspec


class ShownLines(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a fenced text of a message shows: so many lines of a file from `first` on, 1-based; `path` "" = no lines.

    `whole`: it is all of the file.
    """

    path: str = ""
    first: int = 0
    whole: bool = False


class Mentioned(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a message of editor context is: `written` as the question has it, `title` in a few words for lists.

    `paths`: the files that it shows; `shows`: what each of its fenced texts is, in their order. `fingerprint`: the same
    for all that show the same, "" where something is left out.
    """

    written: str
    title: str = ""
    paths: tuple[str, ...] = ()
    shows: tuple[ShownLines, ...] = ()
    fingerprint: str = ""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence of a message that names what stands in other messages (`ids`), in place of sending it again.

    `gone` stands there instead while any of them is not in the view as it was (`model.references`); `more_tokens`: so
    many it takes more. `restores`: that is the text itself, which the user attached.
    """

    ids: tuple[str, ...]
    text: str
    gone: str
    more_tokens: int = 0
    restores: bool = False
