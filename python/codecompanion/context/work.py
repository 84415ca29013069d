"""Defines the state that a policy passes from step to step, and the environment that strategies may read.

Every strategy is `f(work, params, env) -> Work | Skipped | Failed`; a strategy that needs a model is a generator that
yields `SummaryRequest`s, receives `SummaryReply`s and returns one of these (pipeline.md 5.4). All values are frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from codecompanion.model.messages import Message, ReasoningPart, Usage, with_changes

Fold = TypeVar("Fold")
Messages = tuple[Message, ...]
Trigger = Literal["proactive", "reactive", "manual"]
StageEvent = Literal["context_edited", "context_compacted", "memory_flushed"]


class Measure(msgspec.Struct, frozen=True):
    """A count of the next request: the best guess, for triggers, and the upper bound, which must fit."""

    tokens: int
    upper: int


class CacheState(msgspec.Struct, frozen=True):
    """The state of a provider's prompt cache for the next request, with prices relative to plain input.

    `warm_tokens`: the number of tokens in its prefix that are probably still cached, or 0 if it is cold or unknown.
    `lifetime_s`: the number of seconds a prefix stays cached after it was read (0 if there is no cache, inf if it stays
    until another prompt replaces it). `reads_per_s`: the tokens that the user's own server reads per second, or 0 if
    unknown.
    """

    warm_tokens: int = 0
    read_price: float = 0.1
    write_price: float = 1.25
    lifetime_s: float = 300.0
    reads_per_s: float = 0.0

    @property
    def costs_time(self) -> bool:
        """Return whether cached tokens are free, and other tokens cost only the time to read them."""
        return self.read_price == 0

    @property
    def is_cold(self) -> bool:
        """Return whether there is a cache that has nothing of the next request."""
        return self.lifetime_s > 0 and self.warm_tokens == 0


class Folds:
    """The folds of a chat, one of each type, kept between requests so that each request reads only new messages.

    A fold's answer depends only on the messages, not on earlier answers, so keeping it does not change any decision.
    """

    def __init__(self) -> None:
        self._made: dict[type, Any] = {}

    def get(self, kind: type[Fold]) -> Fold:
        """Return the chat's fold of this type, creating it on first use."""
        if kind not in self._made:
            self._made[kind] = kind()
        found: Fold = self._made[kind]
        return found

    def forget(self, kind: type[Any]) -> None:
        """Drop the fold of this type, so that the next one starts from scratch."""
        self._made.pop(kind, None)


class LastFlush(msgspec.Struct, frozen=True):
    """The time and token count of the last summary written to the memory before a removal (R-446).

    `is_off`: the memory is disabled.
    """

    at: float = 0.0
    tokens: int = 0
    is_off: bool = False


class Continuation(msgspec.Struct, frozen=True):
    """The chat as it would be sent now: tokens of the whole request, and the `new` tokens, which are in no cache."""

    tokens: int
    new: int


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a strategy may know besides the messages; nothing here has side effects.

    `measure` counts a whole request made of these messages (including system prompt and tool schemas), `count` one
    message without calibration, `count_text` a string. `window` and `reserve` (tokens kept free for the reply, R-507)
    belong to the chat's model; the `summariser_*` figures to the model that writes summaries. `new_id` returns the ids
    of messages that a strategy creates; it is deterministic.

    `target`: the size that the stage should reach, in tokens of the whole request (0 for none); the pipeline sets it.
    `turn_id` is the running turn, or "" between turns. `artifact`: the source of the last summary, if it was typed
    (R-319). `history` returns the messages of the whole log as they were before any compaction (None if the log is not
    available), `key_of` the key with which `recall` returns a message, by its id ("" for no key). `has_utility`: a
    model other than the chat's own writes summaries. `prompt_text` is the system prompt, `title` the chat's name.
    `exists` tells whether a file of the workspace exists; without it no relative path counts as a file (R-419). `sent`
    counts a request as it is sent, if shaping makes it smaller than the count of `measure` (R-338; None if it is sent
    unshaped). `asks_models` is False if the models that write summaries have failed too often and are not asked
    (R-532). `has_summary`: the text of the summary is given (on the command line), so asking for it costs nothing. If
    `writer_is_proven` is False, the first part of a long history is requested by itself. `unusable_writer` names the
    model that wrote no usable summary in this chat when last asked ("" if it did). `continuation` returns the size of
    the chat for a writer that has read it: the chat's own model (None if another model writes, or it must not be asked
    this way). `writer_seconds` estimates how long the user's own server needs to read and write this many tokens (None
    if its speed is unknown, or a provider writes). `original` returns a message as it was before an earlier stage or
    turn cleared it, or the message itself if that is unknown (on the command line).
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
    target: int = 0
    turn_id: str = ""
    artifact: dict[str, Any] | None = None
    history: Callable[[], Messages] | None = None
    has_utility: bool = False
    prompt_text: str = ""
    title: str = ""
    cache: CacheState = CacheState()
    last_flush: LastFlush = LastFlush()
    exists: Callable[[str], bool] = lambda path: False
    key_of: Callable[[str], str] = lambda message_id: ""
    sent: Callable[[Messages], Measure] | None = None
    asks_models: bool = True
    has_summary: bool = False
    writer_is_proven: bool = True
    unusable_writer: str = ""
    continuation: Callable[[], Continuation] | None = None
    writer_seconds: Callable[[int, int], float] | None = None
    folds: Folds = msgspec.field(default_factory=Folds)
    resends: Callable[[ReasoningPart], bool] = lambda part: True
    original: Callable[[Message], Message] = lambda message: message

    def size(self, messages: Iterable[Message]) -> int:
        """Return the uncalibrated token count of these messages, cached or computed."""
        return sum(message.tokens or self.count(message) for message in messages)

    def recounted(self, message: Message) -> Message:
        """Return the message with a new token count, because the cached one belonged to its earlier content (R-112)."""
        return with_changes(message, tokens=self.count(message))

    def fits(self, messages: Messages, measured: Measure, *, reserve: int | None = None) -> bool:
        """Return whether the request of these messages fits: prompt + reply reserve ≤ window (R-507, lesson 2).

        The best guess is used; doubtful cases are left to the policy's triggers and the provider. `reserve` replaces
        the reply reserve.
        """
        size = self.sent(messages) if self.sent is not None else measured
        return size.tokens + (self.reserve if reserve is None else reserve) <= self.window


class SummaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A model call that a strategy requests. `subject`: the messages to summarise (for a summariser without a model).

    `max_output_tokens` limits the text, `room_tokens` is the room in the summariser's window for text and thinking
    together (if 0, `max_output_tokens`), `prompt_tokens` the estimate of the prompt (0 if not counted). `beside`:
    further requests that may be answered in parallel (R-120). `in_place`: the prompt follows the chat as it would be
    sent now; `unread_tokens` is the part of it that is in no prompt cache (if 0, all of it).
    """

    prompt: str
    subject: Messages
    max_output_tokens: int
    room_tokens: int = 0
    prompt_tokens: int = 0
    unread_tokens: int = 0
    part: int = 1
    parts: int = 1
    in_place: bool = False
    beside: tuple[SummaryRequest, ...] = ()


class SummaryReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a summary request: the text and its stop reason, or `error` (one sentence) if the call failed.

    `refused`: the provider rejected the request. `usage`: the cost, if reported by the provider; `thinking_tokens`:
    tokens spent before the answer. `source`: a model's text is judged (R-526), a caller's text (on the command line) is
    refused only if it is plainly not a summary. `beside`: the replies to the answered requests beside this one, in
    order.
    """

    text: str = ""
    source: Literal["model", "caller", "code"] = "model"
    stop: str = "stop"
    called_tools: bool = False
    error: str = ""
    refused: bool = False
    usage: Usage | None = None
    thinking_tokens: int = 0
    beside: tuple[SummaryReply, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """The outcome of a stage that does not apply; nothing changes.

    `reason` is a fixed word, `detail` a user message.
    """

    reason: str
    detail: str


class Failed(msgspec.Struct, frozen=True):
    """The outcome of a failed stage; nothing changes (R-530).

    `again`: a retry may help. `by_writer`: the model or caller gave no summary, even if it was asked again.
    """

    reason: str
    again: bool = False
    by_writer: bool = False


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Details of a stage's work for later steps, the log and the named events; None if not reported.

    Summaries: `schema`, its form; `written_by`, its author; `summary_source` and `failure`, the fallback used and why
    (R-434, R-529); `summary_detail`, why the utility model's text was rejected; `in_place`, whether the model wrote it
    within the chat, false if that failed; its budget in tokens, and its size before it was shortened or cut; the number
    of `orders_left_out` of the text; the number of `names` checked against the history, and the number `unverified`;
    the counts of quoted user messages; `ledger_tokens` of the text added by code. The artifact's fields: R-325. Edits:
    `why`, and whether the provider's cache was `cold`; the numbers of calls and results shortened, stripped or dropped.
    """

    pinned_over_target: int | None = None
    shortened_calls: int | None = None
    cold: bool | None = None
    why: str | None = None
    stripped_arguments: int | None = None
    tools_truncated: dict[str, int] | None = None
    schema: str | None = None
    chunks: int | None = None
    omitted_messages: int | None = None
    frontier_turn_id: str | None = None
    consolidated_turn_count: int | None = None
    newly_consolidated_turn_count: int | None = None
    update_reason: str | None = None
    algorithm: str | None = None
    summary_budget_tokens: int | None = None
    ledger_tokens: int | None = None
    written_by: Literal["model", "caller", "code"] | None = None
    in_place: bool | None = None
    summary_shortened_from_tokens: int | None = None
    orders_left_out: int | None = None
    names: int | None = None
    unverified: int | None = None
    unverified_names: tuple[str, ...] | None = None
    user_messages_quoted: int | None = None
    user_messages_excerpted: int | None = None
    user_messages_left_out: int | None = None
    summary_cut_from_tokens: int | None = None
    trimmed: int | None = None
    summary_source: str | None = None
    summary_detail: str | None = None
    failure: str | None = None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one stage.

    `before`: the messages the stage started with; `messages`: the list being built. `removed`: messages that left the
    list, the subject of a summary. `pending`: user messages without an answer, put back after the summary (R-551).
    `request`: the user's words that an interrupted loop works on, quoted in the summary. `entry_sizes`: the token
    counts of the entries of `transcript`, as far as they are known (`transcript.size`). `artifact`: the source of a
    typed summary. `details`: reports of the steps so far.
    """

    before: Messages
    messages: Messages
    removed: Messages = ()
    pending: Messages = ()
    request: str = ""
    transcript: tuple[str, ...] = ()
    entry_sizes: tuple[int, ...] = ()
    summary: str = ""
    cleared: Messages = ()
    artifact: dict[str, Any] | None = None
    details: Details = Details()

    def original_removed(self) -> Messages:
        """Return the removed messages as they were before the stage's steps shortened their results."""
        found = {message.id: message for message in self.before}
        return tuple(found.get(message.id, message) for message in self.removed)

    def with_details(self, **details: Any) -> Work:
        """Return the work with these details added."""
        return msgspec.structs.replace(self, details=msgspec.structs.replace(self.details, **details))


Outcome = Work | Skipped | Failed
Steps = Generator[SummaryRequest, SummaryReply, Outcome]
