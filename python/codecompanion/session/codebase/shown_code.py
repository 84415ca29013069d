"""Describes a message of gathered code for display: a title and a line per snippet, from the message alone."""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.formats.cutting import cut_mark
from codecompanion.formats.plural import counted
from codecompanion.model.messages import GatheredPiece, Message

_CHOSEN = ("mention", "pinned")
"""Sources of snippets chosen by the user, who expects their full text."""
SOURCES = {"mention": "named", "active": "open", "ast": "defined", "common": "project"}
"""The display names of sources, as in the help; `/trace` and the command line use the document's names."""
TOLD_EVENT = "told_below_message"
"""Name of the event for a sentence that is shown below the following message."""


def title_of_gathered(message: Message) -> str:
    """Return a title: how many snippets and files were sent, and how many the model still sees from before."""
    sent = [piece for piece in message.gathered if not piece.is_above]
    cut = len({piece.path for piece in sent if piece.is_cut and piece.source in _CHOSEN})
    return "".join(
        (
            how_much([piece.path for piece in sent if piece.path], len(message.gathered) - len(sent)),
            f", {cut} cut" if cut else "",
        )
    )


def how_much(paths: Sequence[str], above: int) -> str:
    """Describe the number of snippets and files sent, and of snippets already sent.

    `paths` has one entry per snippet sent.
    """
    if above and not paths:
        return f"{counted(above, 'snippet')} already sent"
    more = f", {above} already sent" if above else ""
    return f"{counted(len(paths), 'snippet')} from {counted(len(set(paths)), 'file')}{more}"


def size_of_gathered(message: Message, tokens: int) -> int:
    """Return the size to show for a message of `tokens`; 0 if it only names code that was already sent."""
    return tokens if any(not piece.is_above for piece in message.gathered) else 0


def body_of_gathered(message: Message) -> str:
    """Return one line per snippet, best first: location, name, source and score."""
    return "\n".join(map(line_of_piece, message.gathered))


def line_of_piece(piece: GatheredPiece) -> str:
    """Return a line that describes a snippet; it begins with the location, in the form that `gf` reads."""
    above = "already sent" if piece.is_above else ""
    if not piece.path:  # a map, the architecture and memories are not lines of a file
        return " · ".join(filter(None, (piece.source, above)))
    place = f"{piece.path}:{piece.start}-{piece.end}" if piece.start else piece.path
    place += cut_mark(piece.is_cut, piece.of)
    name = " ".join(filter(None, (piece.kind if piece.name else "", piece.name)))
    found = f"{SOURCES.get(piece.source, piece.source)} {piece.score:.2f}".strip()
    parts = (place, name, found, above)
    return " · ".join(filter(None, parts)).replace("\n", " ")
