"""How a message of gathered code is shown: one line, and a line for each of its pieces. Read from the message alone."""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.formats.cutting import cut_mark
from codecompanion.formats.plural import counted
from codecompanion.model.messages import GatheredPiece, Message

_CHOSEN = ("mention", "pinned")
"""Of what the user chose themselves they expect all."""
SOURCES = {"mention": "named", "active": "open", "ast": "defined", "common": "project"}
"""Who found a piece, in words of the help; `/trace` and the command line have the document's."""
TOLD_EVENT = "told_below_message"
"""The name under which the log keeps a sentence that stands below the message after it."""


def title_of_gathered(message: Message) -> str:
    """Return how much of how many files it is, and how much only its name, for the model still sees it."""
    sent = [piece for piece in message.gathered if not piece.is_above]
    cut = len({piece.path for piece in sent if piece.is_cut and piece.source in _CHOSEN})
    return "".join(
        (
            how_much([piece.path for piece in sent if piece.path], len(message.gathered) - len(sent)),
            f", {cut} cut" if cut else "",
        )
    )


def how_much(paths: Sequence[str], above: int) -> str:
    """Return how many snippets of how many files were sent, a path for each, and how many still stood above."""
    if above and not paths:
        return f"{counted(above, 'snippet')} still above"
    more = f", {above} still above" if above else ""
    return f"{counted(len(paths), 'snippet')} from {counted(len(set(paths)), 'file')}{more}"


def body_of_gathered(message: Message) -> str:
    """Return the pieces, one a line, best first: place, name, who found it and how well it fits, tokens."""
    return "\n".join(map(line_of_piece, message.gathered))


def line_of_piece(piece: GatheredPiece) -> str:
    """Return a piece on one line; it begins with its place, as `gf` reads it."""
    size = f"{counted(piece.tokens, 'token')}{', still above' if piece.is_above else ''}"
    if not piece.path:  # a map, the architecture, memories: no lines of a file
        return f"{piece.source} · {size}"
    place = f"{piece.path}:{piece.start}-{piece.end}" if piece.start else piece.path
    place += cut_mark(piece.is_cut, piece.of)
    name = " ".join(filter(None, (piece.kind if piece.name else "", piece.name)))
    found = f"{SOURCES.get(piece.source, piece.source)} {piece.score:.2f}".strip()
    parts = (place, name, found, size)
    return " · ".join(filter(None, parts)).replace("\n", " ")
