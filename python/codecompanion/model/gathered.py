"""What was gathered for a question: its classification, every piece with its score and tokens, the text (R-201, R-268).

Values only. The gatherers make them (`session/gather/`), the chat logs, sends and shows them. Lines are 1-based and
inclusive, paths relative to the project's root with `/`, scores 0..1, tokens those of R-245 (characters / 4).
"""

from __future__ import annotations

from typing import Literal

import msgspec

Confidence = Literal["high", "medium", "low"]

CONFIDENCE_VALUES: dict[str, float] = {"high": 0.9, "medium": 0.7, "low": 0.4}
"""R-206; what is none of them counts as medium."""

NAMED_LINES = "lines"
"""The kind of a snippet that is the lines the user named of a file."""
WHOLE_FILES = frozenset({"mention", "active"})
"""The sources of snippets that are files, whole unless they are cut."""
PIN_IS_GONE = "Pinned code is gone:"
"""How a note begins that says so."""

GatherSource = Literal[
    "mention", "pinned", "active", "ast", "search", "common", "architecture", "memory", "team", "map"
]
"""Who found a piece: a file the user named, what they pinned, the active file, the AST search, the index, …"""


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a question is about the project, and what about (R-204). `source`: who said so; "forced": nobody.

    `likelihood`: that it is about the project, by the evidence of the index, None = nobody estimated it; `is_broad`: it
    names the project and nothing specific in it. `overruled`: who had said that it is not, where code was asked for
    all the same.
    """

    is_codebase_related: bool = False
    categories: tuple[str, ...] = ()
    confidence: Confidence = "low"
    source: Literal["model", "keywords", "index", "forced"] = "keywords"
    likelihood: float | None = None
    is_broad: bool = False
    overruled: Literal["", "model", "keywords", "index"] = ""

    @property
    def confidence_value(self) -> float:
        """Return the confidence as a number (R-206)."""
        return CONFIDENCE_VALUES.get(self.confidence, CONFIDENCE_VALUES["medium"])


class NamedLines(msgspec.Struct, frozen=True):
    """Lines of a file as the user wrote them after its name, `@a.py:10-20`: 1-based, inclusive, not checked."""

    name: str
    start: int
    end: int


class QuestionTypes(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of question it is (R-212); several may be true."""

    is_implementation: bool = False
    is_architectural: bool = False
    is_debugging: bool = False
    is_code_explanation: bool = False
    is_feature_request: bool = False

    @property
    def name(self) -> str:
        """Return the kinds joined by ` + `, `General Inquiry` when there is none."""
        names = {
            "Implementation": self.is_implementation,
            "Architectural": self.is_architectural,
            "Debugging": self.is_debugging,
            "Code Explanation": self.is_code_explanation,
            "Feature Request": self.is_feature_request,
        }
        return " + ".join(name for name, is_so in names.items() if is_so) or "General Inquiry"


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file that may go to the model (R-243, R-249), or a text without lines (0): a memory, a map.

    `kind`: function, class, interface, type, variable, block, …; `name` "" = none. `is_selected`: the user chose the
    file. `is_cut`: only its beginning stands in `text`. `source` and `scores` (name, points) say where it comes from.
    """

    path: str
    start: int
    end: int
    text: str
    kind: str = "block"
    name: str = ""
    score: float = 0.0
    is_selected: bool = False
    is_cut: bool = False
    source: GatherSource = "search"
    scores: tuple[tuple[str, float], ...] = ()

    @property
    def tokens(self) -> int:
        """Return its tokens (R-245)."""
        return chars_to_tokens(len(self.text))


class Dropped(msgspec.Struct, frozen=True):
    """A snippet that does not go to the model, and why, as one sentence."""

    snippet: Snippet
    why: str


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What fits into the budget, best first, the user's files before all others (R-249).

    `above`: chosen too, but the model still sees it (in the messages `above_ids`): it is named, and takes no room.
    """

    snippets: tuple[Snippet, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    above: tuple[Snippet, ...] = ()
    above_ids: tuple[str, ...] = ()
    budget_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the tokens of what is in it."""
        return sum(snippet.tokens for snippet in self.snippets)

    @property
    def was_truncated(self) -> bool:
        """Return whether anything is missing: a snippet, or the end of a file."""
        return bool(self.dropped) or any(snippet.is_cut for snippet in self.snippets)


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """All that came of one question (R-201). `text` "" = the plain message is sent (R-202).

    `found`: every snippet before the selection; `selection`: the code in the text, and what was dropped and why;
    `beside`: what else is in the text, without lines: a map, the architecture, the team, memories.
    `timed_out`: gatherers that missed their deadline (R-203); `failed`: gatherer → why, one sentence; `notes`:
    sentences for the user (a file that was not found, cut, refused). `tier`: how the index answered (R-227), "" = it
    was not asked; `is_index_partial`: what it did not have yet was searched as text.
    """

    question: str
    classification: Classification = Classification()
    types: QuestionTypes = QuestionTypes()
    terms: tuple[str, ...] = ()
    found: tuple[Snippet, ...] = ()
    selection: Selection = Selection()
    beside: tuple[Snippet, ...] = ()
    text: str = ""
    timed_out: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    tier: str = ""
    is_index_partial: bool = False
    ms: int = 0
    ms_by_gatherer: dict[str, int] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the files that stand in the text, in its order."""
        return tuple(dict.fromkeys(snippet.path for snippet in self.selection.snippets if snippet.path))


def chars_to_tokens(chars: int) -> int:
    """Return the tokens of so many characters: ceil(chars / 4) (R-245)."""
    return -(-chars // 4)


def likely_text(likelihood: float) -> str:
    """Return the likelihood that a question is about the project, in words: `12 % likely`."""
    return f"{min(100 * likelihood, 99):.0f} % likely"
