"""Defines the parameters of every strategy with their defaults, as written in a policy's steps (pipeline.md 5.4).

They are separate from the strategies, because every policy is checked against them when settings are read, while most
strategies never run in a session: `strategies` imports a function when a step first runs it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from codecompanion.context.thresholds import Size
from codecompanion.placeholders import ARGUMENTS_TRUNCATED
from codecompanion.summary_frame import SummaryHeader

NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Arguments = tuple[Literal["replaced", "written", "other"], ...]
SchemaName = Literal["brief", "cc_9", "cw_9", "flush"]
"""The name of a table in `prompts/schemas.toml`."""
Style = Literal["xml", "labels", "lines"]
Place = Literal["last", "first", "history_head", "after_first_user"]
Above = Literal["always", "target", "trigger"]
"""The size above which a step applies: the policy's target or its trigger."""
EXCERPT_CHARS = 120


class OlderThan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The age limit: messages are old if they are outside the newest `count` units."""

    unit: Literal["cycles", "messages", "turns", "tool_step", "rounds"] = "cycles"
    count: int = 3


class RawTail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The raw budget of finished turns in tokens (R-342): `share` (0..1) of the window.

    `max_tokens` is the upper bound (0 if none) and `min_tokens` the lower bound; the budget never exceeds half of the
    stage's target.
    """

    share: float = 0.125
    max_tokens: int = 0
    min_tokens: int = 512


class ClearToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S2.

    `keep_share` (0..1 of the window): room for more of the newest results, if the unit is tool steps or rounds.

    A result must be larger than `min_size` (in `size_unit`). Only results of `tools` are cleared (of all tools if
    empty), and results of `exclude_tools` never are (R-512). `stop_when`: clear the oldest first, only until the
    finished turns are within that budget; `until_target`: only until the stage's target is met, if possible. `template`
    names a placeholder.
    """

    older_than: OlderThan = OlderThan()
    keep_share: Share = 0.0
    min_size: int = 0
    size_unit: Literal["chars", "bytes"] = "chars"
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    include_errors: bool = True
    template: str = "tool_result_cleared"
    only_if_shorter: bool = True
    stop_when: RawTail | None = None
    until_target: bool = False


class StripToolArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S3: arguments of more than `min_size` characters are replaced by `placeholder`, valid JSON."""

    older_than: OlderThan = OlderThan("messages", 4)
    min_size: int = 200
    placeholder: str = ARGUMENTS_TRUNCATED


class TruncateToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S4: `max_tokens` limits one result, `document_max` an expanded docx, pdf or pptx.

    `array_items`: the number of items kept in a JSON list. If `json_aware` is False, everything is truncated as plain
    text.
    """

    max_tokens: int = 10_000
    document_max: int = 30_000
    json_aware: bool = True
    array_items: int = 50


class FitToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `fit_tool_results`: the results to truncate, and their minimum size, in estimated tokens.

    `newest_only`: only results after the last reply, which the model has not seen. No result is truncated below `least`
    tokens, or below `min_share` (0..1) of the window; the rest of the history must then make room.
    """

    newest_only: bool = False
    least: Positive = 200
    min_share: Share = 0.0


class ReplaceAttachments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S5: names of the templates in `placeholders.py`."""

    file: str = "file_cleared"
    buffer: str = "buffer_cleared"


class KeepReads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of messages for which the newest read of a file is kept after the model last used or named the file.

    `edited…`: the file was edited since the read. `…_spoken`: the user has written since. In addition, a read of a file
    that has not been edited since is kept while fewer than `near_tokens` tokens follow it, and any read is kept if the
    user named the file within the last `named` messages.
    """

    unedited: NotNegative = 200
    unedited_spoken: NotNegative = 80
    edited: NotNegative = 60
    edited_spoken: NotNegative = 40
    near_tokens: NotNegative = 0
    named: NotNegative = 0


class ClearWhenItPays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `clear_when_it_pays`.

    `cache`: run only if the provider's cache has expired (`cold`), or only if it is warm or there is none (`warm`).
    `keep_messages`, `keep_tokens`: the newest messages that stay, whichever keeps more. `keep_reads`: how long file
    reads are kept. Requests whose messages have fewer than `min_tokens` are left alone. `min_size`: tokens that one
    message must lose; `min_freed` tokens and `min_share` (0..1) of the messages: minimum for the whole batch.
    `min_seconds` replaces `min_tokens` for a server whose cache is cold and whose speed is known: the reading time that
    must be saved. `repay`: the factor by which the gain must exceed the cost of the lost cache, or 0 to clear at any
    price. `come_share`, `min_to_come`, `max_to_come`: the assumed number of future requests per past request, within
    bounds; the upper bound is for a cache lifetime of five minutes, and grows with the lifetime. `arguments`: the long
    strings in old calls that are also cleared: text that edits `replaced`, text they have `written` once the file was
    shown again, and text in `other` calls. `reasoning`: also remove the reasoning of finished turns.
    """

    cache: Literal["any", "cold", "warm"] = "any"
    keep_messages: NotNegative = 16
    keep_tokens: NotNegative = 8000
    keep_reads: KeepReads = KeepReads()
    min_tokens: NotNegative = 20000
    min_size: NotNegative = 100
    min_freed: NotNegative = 0
    min_share: Share = 0.05
    min_seconds: NotNegative = 0
    repay: Annotated[float, msgspec.Meta(ge=0)] = 1.5
    come_share: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    min_to_come: NotNegative = 2
    max_to_come: NotNegative = 20
    arguments: Arguments = ("replaced",)
    reasoning: bool = False
    exclude_tools: tuple[str, ...] = ("memory",)
    template: str = "tool_result_cleared"


class PruneToolErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S17: the `markers` (case-insensitive) of errors to prune, and the age at which they are pruned."""

    older_than: OlderThan = OlderThan("messages", 4)
    markers: tuple[str, ...] = ("duplicate", "blocked")


class RequireSavings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `require_savings`: minimum savings in tokens, for an automatic and for a manual compaction.

    An automatic compaction needs to save at most `window_share` (0..1) of the window, because a small window has less
    to free, and the chat would outgrow it.
    """

    automatic: int = 10000
    manual: int = 0
    window_share: Share = 0.2


class RequireTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `require_target`: none, because the stage's target applies."""


class RequireRoom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `require_room`: the number of newest messages that are never dropped, as in S15."""

    protect: int = 4


class TrimToFit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S15: the number of newest messages that are never dropped."""

    protect: int = 4


class SelectWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S6. Protected messages (system, rules, pinned) always stay, under every policy (K8).

    `keep_compacted`: placeholders of an earlier compaction stay. `keep_pending`: unanswered user messages are set aside
    to follow the summary (R-551). `keep_running`: so are the messages that the running turn needs to continue, with its
    newest rounds up to this share (0..1) of the window; if 0, the turn is summarised like the rest. `newest_turn`: only
    messages of the newest turn count as pending or running; a compaction may have removed the answers to older
    messages. `keep_first`: the first message that is neither a system prompt nor attached stays (R-416). `keep_tags`:
    messages with these tags stay (R-420).

    The `count` newest of `unit` stay; `turns` are completed turns, and the running turn stays as well (R-309). `fill`:
    also keep as many of the newest messages as fit the stage's target; `active_path_share` (0..1) of the target is
    first given to older messages that name the files in use. In a window of fewer than `spares_below` tokens, half of
    the room for messages is left for the summary. `half`: remove only the older half of the rest (R-131). With fewer
    than `min_total` messages, or fewer than `min_older` besides the newest, nothing is removed (R-120).
    """

    keep_compacted: bool = True
    keep_pending: bool = True
    keep_running: Share = 0.0
    newest_turn: bool = False
    keep_first: bool = False
    keep_tags: tuple[str, ...] = ()
    unit: Literal["messages", "cycles", "turns"] = "messages"
    count: NotNegative = 0
    fill: bool = False
    active_path_share: Share = 0.0
    spares_below: NotNegative = 0
    half: bool = False
    min_total: NotNegative = 0
    min_older: NotNegative = 0


class RollingChatWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S18, in conversation messages; calls and tool results do not count.

    The `window` newest messages stay. The first summary is due at `trigger_messages` messages or `trigger_tokens`
    tokens, further summaries whenever `refresh_messages` more messages have left the window (R-457, R-458). While the
    provider is known to have the chat in its prompt cache, the removed messages must be worth the call and the lost
    cache: they must have at least `min_tokens` or, in a small window, `min_share` (0..1) of it. If cached tokens are
    free, the chat must also fill `min_full` (0..1) of the window or have `trigger_tokens`.
    """

    window: Positive = 16
    trigger_messages: Positive = 24
    trigger_tokens: Positive = 12_000
    refresh_messages: Positive = 8
    min_tokens: NotNegative = 0
    min_share: Share = 1.0
    min_full: Share = 0.0


class Caps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maximum characters of message text, by author; `call`: the arguments of one call. 0 means no limit (R-436)."""

    user: NotNegative = 0
    assistant: NotNegative = 0
    tool: NotNegative = 0
    call: NotNegative = 0


class FormatTranscript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S7. `style`: an element per message, one element with labels (`labels`, R-126), or lines (R-438).

    `max_entry_chars` caps a whole entry (head 70 %, tail 30 %; under `labels` the head, R-127), `caps` the texts in it
    (R-436, R-437; not under `labels`), `max_chars` the whole transcript (R-439); 0 means no cap. `previous_summary`:
    keep it at its position (`entry`), put it first (`lead`, R-424), or leave it out (`out`).
    """

    style: Style = "xml"
    max_entry_chars: NotNegative = 0
    caps: Caps = Caps()
    max_chars: NotNegative = 0
    previous_summary: Literal["entry", "lead", "out"] = "entry"


class SummarizeOne(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S8. `schema` names a table in `prompts/schemas.toml`; `max_tokens` caps the reply (R-526).

    The cap shrinks to `share_of_available` of the window minus `available_reserve`, system prompt and tools, and to
    `share_of_slack` of the part of it that is free once the removed messages are gone; 0 means no limit. The cap never
    falls below `min_tokens` (R-427, R-428). Only the run's deadline limits the number of calls (R-120). `in_place`: the
    chat's own model is asked in the chat itself if that costs less than a transcript. In a window of fewer than
    `spares_below` tokens, a model is asked once, and only if that can save tokens; otherwise code writes the summary
    from the log. If `asks_unusable` is False, code also writes the summary if the model wrote no usable summary before
    in this chat, or if the user would wait more than `max_wait_s` seconds for a model on their own server (0 means no
    limit).
    """

    schema: SchemaName = "cc_9"
    max_tokens: int = 8000
    in_place: bool = False
    min_tokens: int = 0
    share_of_available: float = 0.0
    share_of_slack: float = 0.0
    available_reserve: int = 8000
    spares_below: NotNegative = 0
    asks_unusable: bool = True
    max_wait_s: NotNegative = 0


class ChunkFormula(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of R-121…R-123 and R-125.

    A chunk takes `ratio` of the window, decreasing to `min_ratio`, and from `min_tokens` to `max_tokens`. The
    summariser's own window must fit a chunk and `overhead` (at most a quarter of that window). A message that takes
    more than `oversize` of the window, including `margin`, is left out.
    """

    ratio: float = 0.4
    min_ratio: float = 0.15
    max_tokens: int = 12_000
    overhead: int = 4096
    min_tokens: int = 256
    margin: float = 1.2
    oversize: float = 0.5


class SummarizeChunked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S9. `schema`: the form of each partial summary; `max_tokens` caps each reply.

    `max_message_chars` caps a message before it is sent (R-127). There may be any number of chunks, which are written
    in parallel; only the deadline ends a run (R-120). `spares_below`, `asks_unusable` and `max_wait_s` as in
    `SummarizeOne`.
    """

    chunk: ChunkFormula = ChunkFormula()
    max_message_chars: int = 10_000
    schema: SchemaName = "brief"
    max_tokens: int = 2048
    spares_below: NotNegative = 0
    asks_unusable: bool = True
    max_wait_s: NotNegative = 0


class SummarySize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maximum length of the rendered summary: window / `share`, clamped, and at most part of the target (R-317)."""

    share: int = 64
    min_tokens: int = 256
    max_tokens: int = 1024
    target_share: int = 4
    bytes_per_token: int = 4


class SummarizeArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S10.

    `reason`: the reason reported for an automatic run (R-325). `overlay`: whether to ask a utility model; `configured`
    asks if there is one. `overlay_in_target`: only if the result fits the stage's target, because otherwise it is
    discarded. `sentences`: besides labelled lines, plain sentences count if they decide, constrain, block, warn or
    announce. `asks_unusable` as in `SummarizeOne`.
    """

    reason: Literal["semantic_closure", "token_pressure"] = "token_pressure"
    overlay: Literal["never", "configured", "always"] = "configured"
    overlay_in_target: bool = False
    overlay_tokens: int = 2000
    sentences: bool = False
    asks_unusable: bool = True
    size: SummarySize = SummarySize()


class DescribePlain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S11: the maximum number of topics, and the maximum length of a topic, including a final `...`.

    `earlier_chars` caps the text kept from an earlier summary, `files_chars` the names of files with gathered code.
    """

    topics: int = 10
    topic_chars: int = 80
    earlier_chars: int = 4000
    files_chars: int = 400


class SummarizeLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S12: the schema of its headings, and the maximum length, in estimated tokens."""

    schema: SchemaName = "cc_9"
    max_tokens: int = 4000


class SummarizeRaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `summarize_raw`: the maximum length of the text, by the formula for summaries (R-427).

    The text has at most `share_of_removed` of the size of the removed messages, because raw text without savings would
    not be accepted. Each user message is quoted in at most `max_quote_chars`.
    """

    max_tokens: int = 4096
    min_tokens: int = 500
    share_of_available: float = 0.08
    share_of_removed: float = 0.5
    max_quote_chars: int = 3000


class SummarizeFlush(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `summarize_flush`: minimum messages, seconds and tokens since the last flush, and sizes.

    `max_tokens` limits the reply; at most `max_chars` of the newest messages are read, and `max_entry_chars` of each.
    In a window of fewer than `spares_below` tokens, no model is asked: the compaction's own summary goes to the memory.
    If `asks_unusable` is False, the model is also not asked if it wrote no usable summary in this chat, or would take
    longer than `max_wait_s` (see `SummarizeOne`).
    """

    min_messages: int = 4
    cooldown_s: float = 120.0
    min_new_tokens: int = 250
    max_tokens: Annotated[int, msgspec.Meta(ge=32, le=600)] = 220
    max_chars: int = 24_000
    max_entry_chars: int = 1_500
    spares_below: NotNegative = 0
    asks_unusable: bool = True
    max_wait_s: NotNegative = 0


class FitSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S13.

    `limit`: maximum size of request and summary together. A larger summary is cut to the room that remains of the
    limit's basis after the other messages and `slack_tokens`, then repeatedly to three quarters, but never below
    `floor_tokens`.
    """

    limit: Size = Size(at=0.95)
    slack_tokens: int = 2000
    floor_tokens: int = 200


class InsertSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S14.

    `place`: `last`: after all kept messages; `first`: after the system prompt; `history_head`: after the rules as well;
    `after_first_user`: after the first message the user typed. `upsert`: in place of the previous summary, if any
    (R-443). If the place is between a call and its result, the summary moves after them.

    `header` names the text before the summary, `wrapper` the element around both ("" for none). `carry`: the previous
    summary was part of the transcript (`in_transcript`) or of a typed artifact (`merge`), or is discarded
    (`overwrite`). `recall_keys`: add a line with the keys of the removed messages, if there is a log.
    """

    role: Literal["user", "assistant", "system"] = "user"
    place: Place = "last"
    tag: Literal["compact_summary"] = "compact_summary"
    header: SummaryHeader = "summary_of_previous"
    wrapper: str = ""
    pinned: bool = False
    upsert: bool = False
    carry: Literal["in_transcript", "merge", "overwrite"] = "in_transcript"
    recall_keys: bool = True


class QuoteUserMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `quote_user_messages`. A quote has at most `max_chars`, an excerpt at most `excerpt_chars`.

    Quotes have a budget separate from the model's text (R-431): `share` (0..1) of the window, at most `max_tokens`, and
    never more than half of the tokens that the compaction frees. A caller's text without sections stays unchanged,
    unless `also_given`. In a window of fewer than `facts_below` tokens, the short facts of each message take precedence
    over whole messages, and may use `facts_share` (0..1) of the window in total.
    """

    max_chars: int = 3000
    excerpt_chars: int = EXCERPT_CHARS
    share: float = 0.125
    max_tokens: int = 16_000
    also_given: bool = False
    facts_below: NotNegative = 0
    facts_share: Share = 0.25


class VerifySummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `verify_summary`: whether to also check the names in a caller's text without sections."""

    also_given: bool = False


class AppendLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `append_ledger`: at most `max_tokens`, and at most this `share` of the window.

    The ledger never takes more than half of the tokens that the compaction frees. With `within_target`, it takes no
    more than the stage's target leaves, so that a tier can reach the target. A caller's text that has no known form
    stays unchanged, unless `also_given`.
    """

    max_tokens: int = 2500
    share: Share = 0.06
    within_target: bool = False
    also_given: bool = False


class ShapeFragments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S19."""

    above: Above = "trigger"


class ShapeSchemas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S20.

    `depth`: the deepest level with descriptions: 0 for the tool only, 1 for its arguments as well.

    `keep_tools`: tools whose schemas stay whole.
    """

    above: Above = "target"
    depth: int = 0
    keep_tools: tuple[str, ...] = ()


class ContextPacket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S21: its maximum size (R-352), and the request size above which it is left out (R-354)."""

    share: int = 20
    max_tokens: int = 2000
    omit_above: Literal["never", "target", "trigger"] = "trigger"
