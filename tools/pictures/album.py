"""The list of pictures: a description of each for readers who cannot see it, and the names of the plugin it shows.

A test checks the names against the plugin: a removed command, key or word must be removed from its picture, too. The
pictures are in `doc/pictures/`; README and documents take their descriptions from here.
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
    """One picture. `maps`: names of options of `keymaps`; `commands` as typed; `words` that the plugin shows."""

    name: str
    take: Callable[[Path, Path], None]
    alt: str
    maps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return its path."""
        return FOLDER / self.name


ALBUM = (
    Picture(
        "undo.gif",
        reels.undo,
        "A chat reads three files; before the third request old tool results are cleared, a line marked with scissors"
        " says how many tokens that freed, u undoes it, Ctrl-R does it again, and the meter follows.",
        maps=("undo", "redo", "restore"),
        words=("cleared", "undone", "paused until you"),
    ),
    Picture(
        "approval.gif",
        reels.approval,
        "The model asks to change a file; the change is shown in the chat, K opens the whole change, g2"
        " accepts it, and the open file has it at once.",
        words=("waiting for your approval", "always…", "proposal"),
    ),
    Picture(
        "edit.gif",
        reels.edit,
        "A function is selected and :CodeCompanion is told in words how to change it; the change is shown in the buffer"
        " as a diff, line by line, and g2 accepts it as one undo step.",
        words=("proposed",),
    ),
    Picture(
        "inspector.png",
        reels.inspector,
        "The inspector lists what the next request will contain, message by message: tokens, share, cache, age, state"
        " and role, with two tool results marked as cleared.",
        maps=("debug",),
        words=("Next request", "reserved for the reply", "tool schemas"),
    ),
    Picture(
        "diff.png",
        reels.diff,
        "A proposed change of a file in a tab page: added lines are marked, removed ones stand above them; it can be"
        " edited, g2 accepts it, g3 rejects it, q goes back.",
        words=("proposal", "accept", "reject"),
    ),
    Picture(
        "context.png",
        reels.context,
        "The list of code that a question would be sent with: for each piece its score, tokens, who found it, file and"
        " lines; below it the text the model gets.",
        commands=("/context", ":CodeCompanion index"),
        words=("Sent to the model", "looked for", "leave out"),
    ),
    Picture(
        "adapters.png",
        reels.adapters,
        "The list of adapters with what each needs: an Ollama on this machine was found with its models, the others"
        " name the key or the login they lack.",
        commands=(":CodeCompanion adapter",),
    ),
    Picture(
        "cost.png",
        reels.cost,
        "The cost report draws the tokens of 96 requests: the area that was sent stays below the window, the line of"
        " what would have been sent without management leaves the chart; signs mark edits and compactions.",
        commands=("/cost",),
        words=("Tokens per request", "without management"),
    ),
)
