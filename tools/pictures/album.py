"""The list of pictures: a description of each for readers who cannot see it, and the plugin's names that appear in it.

A test checks the names against the plugin: a removed command, key or word must be removed from its picture too. The
pictures are in `doc/pictures/`; the README and the documents take their descriptions from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.pictures import reels

FOLDER = Path(__file__).resolve().parents[2] / "doc" / "pictures"
MAX_BYTES = 2 * 1024 * 1024
"""Limit for all pictures together: every clone of the plugin downloads them."""


@dataclass(frozen=True)
class Picture:
    """One picture. `maps`: option names in `keymaps`; `commands` as typed; `words` shown by the plugin."""

    name: str
    take: Callable[[Path, Path], None]
    alt: str
    maps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return the path of the picture file."""
        return FOLDER / self.name


ALBUM = (
    Picture(
        "undo.gif",
        reels.undo,
        "A chat reads three files; old tool results are cleared before the third request, a line with scissors shows"
        " the tokens saved, u undoes that, Ctrl-R redoes it, and the meter follows.",
        maps=("undo", "redo", "restore"),
        words=("cleared", "undone", "paused until you"),
    ),
    Picture(
        "approval.gif",
        reels.approval,
        "The model proposes a change to a file; the chat shows the change, K opens it as a diff, g2 accepts it, and"
        " the open file is updated.",
        words=("waiting for your approval", "always…", "proposal"),
    ),
    Picture(
        "edit.gif",
        reels.edit,
        "An instruction after :CodeCompanion changes the selected function; the change appears in the buffer as a diff,"
        " line by line, and g2 accepts it as one undo step.",
        words=("proposed",),
    ),
    Picture(
        "inspector.png",
        reels.inspector,
        "The inspector lists the next request message by message: tokens, share, cache, age, state and role; two tool"
        " results are marked as cleared.",
        maps=("debug",),
        words=("Next request", "reserved for the reply", "tool schemas"),
    ),
    Picture(
        "diff.png",
        reels.diff,
        "A proposed change to a file in a tab page: added lines are marked, with removed lines above them; it can be"
        " edited, g2 accepts it, g3 rejects it, q goes back.",
        words=("proposal", "accept", "reject"),
    ),
    Picture(
        "context.png",
        reels.context,
        "The code found for a question: each piece with its score, tokens, gatherer, file and lines; below it the text"
        " for the model.",
        commands=("/context", ":CodeCompanion index"),
        words=("Sent with", "searched for", "leave out"),
    ),
    Picture(
        "adapters.png",
        reels.adapters,
        "The list of adapters with their requirements: Ollama runs on this machine, with its models; the others name"
        " the missing key or login.",
        commands=(":CodeCompanion adapter",),
    ),
    Picture(
        "cost.png",
        reels.cost,
        "The cost report charts the tokens of 96 requests: with context management they stay below the window, without"
        " it the line leaves the chart; marks show edits and compactions.",
        commands=("/cost",),
        words=("Tokens per request", "without management"),
    ),
)
