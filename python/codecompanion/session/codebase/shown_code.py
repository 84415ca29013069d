"""How a message of gathered code is shown: one line, and a line for each of its pieces. Read from the message alone."""

from __future__ import annotations

from codecompanion.formats.cutting import cut_mark
from codecompanion.formats.plural import counted
from codecompanion.model.messages import GatheredPiece, Message

_CHOSEN = ("mention", "pinned")
"""Of what the user chose themselves they expect all."""
TOLD_EVENT = "told_below_message"
"""The name under which the log keeps a sentence that stands below the message after it."""


def title_of_gathered(message: Message) -> str:
    """Return how much of how many files it is."""
    code = [piece.path for piece in message.gathered if piece.path]
    cut = sum(piece.is_cut and piece.source in _CHOSEN for piece in message.gathered)
    named = dict.fromkeys(piece.path for piece in message.gathered if piece.source == "mention")
    secret: list[str] = []
    if named:
        from codecompanion.workspace.secret_files import is_secret  # not with the start of the host

        secret = [path for path in named if is_secret(path)]
    return "".join(
        (
            f"{counted(len(code), 'snippet')} from {counted(len(set(code)), 'file')}",
            f", {cut} cut" if cut else "",
            f" · with {', '.join(secret)}, as you named it" if secret else "",
        )
    )


def body_of_gathered(message: Message) -> str:
    """Return the pieces, one a line, best first: place, name, who found it and how well it fits, tokens."""
    return "\n".join(map(line_of_piece, message.gathered))


def line_of_piece(piece: GatheredPiece) -> str:
    """Return a piece on one line; it begins with its place, as `gf` reads it."""
    if not piece.path:  # a map, the architecture, memories: no lines of a file
        return f"{piece.source} · {piece.tokens:,} tokens"
    place = f"{piece.path}:{piece.start}-{piece.end}" if piece.start else piece.path
    place += cut_mark(piece.is_cut, piece.of)
    name = " ".join(filter(None, (piece.kind if piece.name else "", piece.name)))
    parts = (place, name, f"{piece.source} {piece.score:.2f}".strip(), f"{piece.tokens:,} tokens")
    return " · ".join(filter(None, parts)).replace("\n", " ")
