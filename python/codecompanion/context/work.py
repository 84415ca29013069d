"""What a policy's program carries from step to step, and the environment its strategies may read.

Every strategy is `f(work, params, env) -> Work | Skipped | Failed`; one that needs a model is a generator that yields
`SummaryRequest`s, receives `SummaryReply`s and returns the same (pipeline.md 5.4). All values are frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

import msgspec

from codecompanion.messages import Message, Usage

Messages = tuple[Message, ...]
Trigger = Literal["proactive", "reactive", "manual"]


class Measure(msgspec.Struct, frozen=True):
    """A count of the next request: the best guess, and the upper bound that triggers compare with (tokens)."""

    tokens: int
    upper: int


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a strategy may know besides the messages; nothing here has an effect.

    `measure` counts a whole request made of these messages (system prompt and tool schemas included), `count` one
    message without calibration, `count_text` a text. `window` and `reserve` (tokens kept free for the reply, R-507)
    belong to the chat's model; the `summariser_*` figures to the model that writes summaries. `new_id` names the
    messages a strategy makes; it is deterministic.
    """

    window: int
    reserve: int = 0
    measure: Callable[[Messages], Measure]
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    cycle: int
    manual: bool = False
    instructions: str = ""
    summariser_window: int = 0
    summariser_ratio: float = 1.0
    new_id: Callable[[str], str] = lambda purpose: purpose
    now: float = 0.0


class SummaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One model call a strategy asks for. `subject` are the messages it is about (for a model-free summariser)."""

    prompt: str
    subject: Messages
    max_output_tokens: int
    part: int = 1
    parts: int = 1


class SummaryReply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: the text and why it ended, or `error` (one sentence) when the call failed.

    `usage` is what it cost, when the provider said so.
    """

    text: str = ""
    stop: str = "stop"
    called_tools: bool = False
    error: str = ""
    usage: Usage | None = None


class Skipped(msgspec.Struct, frozen=True):
    """The stage does not apply; nothing is changed. `reason` is a fixed word, `detail` a sentence for the user."""

    reason: str
    detail: str


class Failed(msgspec.Struct, frozen=True):
    """The stage could not be carried out; nothing is changed (R-530)."""

    reason: str


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one stage.

    `before` is what the stage started from, `messages` the list being built. `removed` left it (they are what a
    summary is about), `pending` are user messages without an answer, put back after the summary (R-551), `request`
    holds the user's words an interrupted loop works on, quoted in the summary.
    """

    before: Messages
    messages: Messages
    removed: Messages = ()
    pending: Messages = ()
    request: str = ""
    transcript: tuple[str, ...] = ()
    summary: str = ""
    cleared: Messages = ()


Outcome = Work | Skipped | Failed
Steps = Generator[SummaryRequest, SummaryReply, Outcome]
