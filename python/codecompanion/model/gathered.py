"""Defines the result of gathering code for a question: its class, pieces with scores and tokens, text (R-201, R-268).

Values only. The gatherers (`session/gather/`) create them; the chat logs, sends and shows them. Lines are 1-based and
inclusive, paths relative to the project's root with `/`, scores 0..1, tokens as in R-245 (characters / 4).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.model.messages import Usage

Confidence = Literal["high", "medium", "low"]

CONFIDENCE_VALUES: dict[str, float] = {"high": 0.9, "medium": 0.7, "low": 0.4}
"""The numbers for confidence words (R-206); any other word counts as medium."""

NAMED_LINES = "lines"
"""The `kind` of a snippet whose lines the user named."""
WHOLE_FILES = frozenset({"mention", "active"})
"""The sources of snippets that are whole files unless truncated."""
PIN_IS_GONE = "Pinned code is gone:"
"""The start of the note about a pin whose code is gone."""

GatherSource = Literal[
    "mention", "pinned", "active", "ast", "search", "common", "architecture", "memory", "team", "map"
]
"""The source of a piece of code: a file mention, a pin, the active file, the AST search, the index, …"""


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a question is about the project, and which part (R-204). `source`: the classifier, "forced" without one.

    `likelihood`: the probability, by the index, that the question is about the project; None if it was not estimated.
    `is_broad`: it names the project but nothing specific in it. `overruled`: the classifier whose answer "no" was
    overruled because code was requested.
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
    """Lines of a file as the user wrote them after its name, `@a.py:10-20`: 1-based, inclusive, unchecked."""

    name: str
    start: int
    end: int


class QuestionTypes(msgspec.Struct, frozen=True, kw_only=True):
    """The types of a question (R-212); several may be true."""

    is_implementation: bool = False
    is_architectural: bool = False
    is_debugging: bool = False
    is_code_explanation: bool = False
    is_feature_request: bool = False

    @property
    def name(self) -> str:
        """Return the types joined by ` + `, or `General Inquiry` if there is none."""
        names = {
            "Implementation": self.is_implementation,
            "Architectural": self.is_architectural,
            "Debugging": self.is_debugging,
            "Code Explanation": self.is_code_explanation,
            "Feature Request": self.is_feature_request,
        }
        return " + ".join(name for name, is_so in names.items() if is_so) or "General Inquiry"


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file that may be sent (R-243, R-249), or text without lines (0): a memory, a map.

    `kind`: function, class, interface, type, variable, block, …; `name`: may be "". `is_selected`: the user chose the
    file. `is_cut`: `text` is only the beginning. `source` and `scores` (name, points) explain why it was found.
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
        """Return the token count of the text (R-245)."""
        return chars_to_tokens(len(self.text))


class Dropped(msgspec.Struct, frozen=True):
    """A snippet that is not sent, with the reason as one sentence."""

    snippet: Snippet
    why: str


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The snippets that fit into the budget, best first but with the user's files before all others (R-249).

    `above`: snippets that were also chosen, but are still visible to the model in the messages `above_ids`; the text
    only names them.
    """

    snippets: tuple[Snippet, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    above: tuple[Snippet, ...] = ()
    above_ids: tuple[str, ...] = ()
    budget_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the total token count of the snippets."""
        return sum(snippet.tokens for snippet in self.snippets)

    @property
    def was_truncated(self) -> bool:
        """Return whether anything is missing: a snippet, or the end of a file."""
        return bool(self.dropped) or any(snippet.is_cut for snippet in self.snippets)


class UtilityCalls(msgspec.Struct, frozen=True):
    """The token counts of the calls to the utility model that were answered, in order."""

    adapter: str
    model: str
    passes: tuple[Usage, ...] = ()


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """The complete result for one question (R-201). If `text` is "", the plain message is sent (R-202).

    `found`: every snippet before the selection; `selection`: the code in the text, and dropped snippets with reasons;
    `beside`: the other parts of the text, without lines: a map, the architecture, the team, memories. `timed_out`:
    gatherers that missed their deadline (R-203); `failed`: gatherer → reason, one sentence; `notes`: sentences for the
    user (a file not found, truncated or refused). `tier`: the search tier that answered (R-227), or "" without a
    search; `is_index_partial`: files missing from the index were searched as text. `utility`: the calls to
    the utility model.
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
    utility: UtilityCalls | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the files in the text, in order."""
        return tuple(dict.fromkeys(snippet.path for snippet in self.selection.snippets if snippet.path))


def chars_to_tokens(chars: int) -> int:
    """Return the token count for this many characters: ceil(chars / 4) (R-245)."""
    return -(-chars // 4)


def likely_text(likelihood: float) -> str:
    """Return the likelihood that a question is about the project as text: `12 % likely`."""
    return f"{min(100 * likelihood, 99):.0f} % likely"
