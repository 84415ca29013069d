"""Defines the typed events from the host to the editor, the wire format of `lua/codecompanion/types.lua`.

A batch is one JSON array of these objects, decoded by `require("codecompanion.host").on_events(json)`. Every object has
`type` (the tag) and, unless it concerns the whole host, `chat` (id). Events have no state of their own: each view can
be rebuilt from the log. Token counts are integers, times are in milliseconds, `ratio` is 0..1. All events are in this
one file, despite its length: it is the full list of messages to the editor, and `types.lua` is generated from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec


class Severity(StrEnum):
    """The severity of a notice; the names are those of `vim.log.levels`."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class Event(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    """Base of all events; `chat` is empty when the event concerns the host."""

    chat: str = ""


class HostReady(Event, frozen=True, kw_only=True, tag="host_ready"):
    """The host answered `hello`. `mistakes`: a sentence for each setting that the host cannot use."""

    version: str
    python: str
    pid: int
    mistakes: tuple[str, ...] = ()


class Mistakes(Event, frozen=True, kw_only=True, tag="mistakes"):
    """The complete list of configuration mistakes, sent again because more were found.

    `mistakes` as in `HostReady`; `failures`: sentences about user-defined tools and strategies that failed.
    """

    mistakes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class Reply(Event, frozen=True, kw_only=True, tag="reply"):
    """The response to a request with an `id`: `result` or, if `ok` is false, `error` (one sentence)."""

    id: int
    ok: bool
    result: object = None
    error: str = ""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """One sentence for the user.

    With `while_paused`, it is removed when the meter shows that nothing is paused; with `until_compacted`, when a
    compaction succeeds; with `until_restored`, when no chat is missing. `help`: the help tag that explains it.
    """

    level: Severity
    text: str
    while_paused: bool = False
    until_compacted: bool = False
    until_restored: bool = False
    help: str | msgspec.UnsetType = msgspec.UNSET


class StoredSubmit(msgspec.Struct, frozen=True):
    """A submit that was stored although the host could not confirm it."""

    key: str
    message_id: str
    text: str
    tokens: int = 0


class ChatOpened(Event, frozen=True, kw_only=True, tag="chat_opened"):
    """The chat exists in the log (new or resumed). `draft`: the last saved text of the input region.

    `beside`: text typed into read-only copies that no longer exist. `stored`: the request's `unconfirmed` submits that
    are in the log, in log order.
    """

    title: str
    adapter: str
    model: str
    window: int
    policy: str
    resumed: bool = False
    read_only: bool = False
    draft: str = ""
    beside: str = ""
    stored: tuple[StoredSubmit, ...] = ()


class TitleChanged(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The chat got a new title."""

    title: str


class Redrawn(Event, frozen=True, kw_only=True, tag="redrawn"):
    """The buffer must be redrawn from the events that follow (context block, marks, restored entries, running work)."""


class ModelChanged(Event, frozen=True, kw_only=True, tag="model_changed"):
    """The chat switched to another adapter or model."""

    adapter: str
    model: str
    window: int


class PolicyChanged(Event, frozen=True, kw_only=True, tag="policy_changed"):
    """The chat switched to another policy."""

    policy: str
    description: str


class State(Event, frozen=True, kw_only=True, tag="state"):
    """The session's state changed; `label`: the activity (`running grep_search`), or "" when idle."""

    state: str
    label: str = ""


class Queued(Event, frozen=True, kw_only=True, tag="queued"):
    """A submit is queued until the next request boundary."""

    submit_id: int


class MessageSent(Event, frozen=True, kw_only=True, tag="message_sent"):
    """A user message is stored and may be shown as sent. `number`: its position among the user's messages, 1-based."""

    submit_id: int
    message_id: str
    text: str
    cycle: int
    tokens: int = 0
    number: int = 0


class Gathering(Event, frozen=True, kw_only=True, tag="gathering"):
    """Attachments of a submit are being gathered; until `message_sent` or `submit_failed`, the submit is a draft.

    `what`: the current step, in two words.
    """

    submit_id: int
    what: str = "gathering code"


class CodeGathered(Event, frozen=True, kw_only=True, tag="code_gathered"):
    """Code was placed before the last message (R-253), shown as one line with the snippets in a fold.

    `title`: the amount; `body`: a line for each snippet, beginning with its location (`path:10-40`).
    """

    message_id: str
    title: str
    body: str
    tokens: int = 0
    duration_ms: int = 0


class FileUpdated(Event, frozen=True, kw_only=True, tag="file_updated"):
    """Changes to a live attachment were placed before the last message, shown as one line with the diff in a fold."""

    message_id: str
    title: str
    body: str
    tokens: int = 0


class EditorContextSent(Event, frozen=True, kw_only=True, tag="editor_context_sent"):
    """Editor content mentioned in the last message was placed before it, shown as one line with its text in a fold."""

    message_id: str
    title: str
    body: str
    tokens: int = 0


class SubmitFailed(Event, frozen=True, kw_only=True, tag="submit_failed"):
    """A submit could not be stored; its text returns to the input region."""

    submit_id: int
    text: str
    error: str


class ReplyStarted(Event, frozen=True, kw_only=True, tag="reply_started"):
    """The model's reply begins (once per provider request); a header is drawn unless this turn already has one."""

    adapter: str
    model: str


class Text(Event, frozen=True, kw_only=True, tag="text"):
    """A chunk of the reply, to be appended to it."""

    text: str


class EditText(Event, frozen=True, kw_only=True, tag="edit_text"):
    """A chunk of streamed code for an edit in place, with the file's indentation; `edit_ended` has the complete lines.

    The first `kept` of the lines sent so far are kept; `lines` follow them.
    """

    lines: tuple[str, ...]
    kept: int = 0
    placement: Literal["replace", "after", "before", "new", "chat"] = "replace"


class EditEnded(Event, frozen=True, kw_only=True, tag="edit_ended"):
    """The result of an edit in place, sent exactly once per edit, after the end of its turn.

    `proposal`: `lines` for `placement`, in `language` (as the reply names it); `note`: a warning sentence. `answer`:
    text to show in the chat. `failed`: no edit was produced; `error` is the reason ("" if it was cancelled).
    """

    outcome: Literal["proposal", "answer", "failed"]
    placement: Literal["replace", "after", "before", "new", "chat"] = "replace"
    lines: tuple[str, ...] = ()
    language: str = ""
    note: str = ""
    error: str = ""


class Reasoning(Event, frozen=True, kw_only=True, tag="reasoning"):
    """A chunk of the model's reasoning, shown folded."""

    text: str


class ReplyFinished(Event, frozen=True, kw_only=True, tag="reply_finished"):
    """The reply of one provider request is complete and logged. `cut`: the stream ended before its end marker.

    `other_model`: the model that wrote the reply, if it is not the chat's model.
    """

    message_id: str
    stop: Literal["stop", "tool_calls", "length", "cut", "cancelled", "filtered", "paused", "compacted", "window"]
    prompt_tokens: int = 0
    output_tokens: int = 0
    other_model: str | msgspec.UnsetType = msgspec.UNSET


class Ask(Event, frozen=True, kw_only=True, tag="ask"):
    """A request to the editor, answered by the verb `answer` with this `ask_id` (0 if no answer is expected).

    `look`: return which of `paths` are open (without `paths`, all files with unsaved changes) → `{files}`. `change`:
    make `text` the content of buffer `buffer` at `tick` → `{state, text, reason}`. `reload`: reload files that changed
    on disk. `run_tool`: call the user-defined tool `name` with `arguments` → `{text, is_error}`, at any later time;
    `stop_tool`: the answer to `ask_id` is no longer needed. The call must not be started after `until_ms` (milliseconds
    since the epoch, 0 for no limit), because the host no longer waits for it.
    """

    ask_id: int
    what: str
    until_ms: int
    fields: dict[str, object] = {}


class FileChange(msgspec.Struct, frozen=True):
    """A file change made by a tool; `change_id` identifies it in `revert_changes` and `show_change`.

    `unsaved`: it is only in the editor's buffer.
    """

    change_id: str
    path: str
    added: int
    removed: int
    reverted: bool = False
    unsaved: bool = False


class ChangesReverted(Event, frozen=True, kw_only=True, tag="changes_reverted"):
    """The complete lists of file changes that are currently reverted and unsaved, as their folds show."""

    change_ids: tuple[str, ...]
    unsaved_ids: tuple[str, ...] = ()


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A tool call began or waits for approval. `title`: the fold title's first half, `read_file lua/foo.lua 1-120`."""

    call_id: str
    name: str
    title: str
    reply_id: str = ""


class ToolFinished(Event, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool call has a result. `summary`: the second half of the fold's title, such as `120 lines · 1.4k tokens`.

    `reply_id`: the message that made the call. `preview`: the text that the buffer shows inside the fold (head and tail
    of a long result), never the whole result; for a file `change`, the diff.
    """

    call_id: str
    message_id: str
    name: str
    title: str
    summary: str
    preview: str
    status: Literal["ok", "error", "cancelled", "rejected"]
    tokens: int = 0
    duration_ms: int = 0
    change: FileChange | None = None
    reply_id: str = ""


class GrantScope(msgspec.Struct, frozen=True):
    """The calls that a grant allows. `what`: text after "always allow" ("" = every call of the tool).

    `still_asks`: a clause on calls that the grant does not allow; `until`: the end of the grant, as "until …".
    """

    what: str = ""
    still_asks: str = ""
    until: str = ""


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A tool call asks for approval. `body`: the exact command or diff, `filetype`: its syntax (`sh`, `diff`).

    A file change also has its absolute `path` and whole contents with Unix line endings: `before` or `after` is "" for
    a missing file, and both are "" for a file too large to compare in the editor. `why`: the reason to ask regardless
    of grants, in which case `always` grants nothing; `again`: why an earlier grant no longer applies. `exact`: what
    `always` grants; `covers`: the commands that it could cover instead (`what` is "" if none). `narrowed`: why nothing
    can be granted (the text in the context that prevents it), in one line.

    `kind` "compact": a request does not fit while compaction is paused; the answer "once" compacts and sends it;
    `reason`: the focus of the summary. "sampling": a server wants a model reply. "elicitation": a server wants input;
    `form` is a JSON list of `{name, label, default, choices, required, secret}` and the answer's `text` a JSON object
    of strings by name. `place`: where a command runs (`ApprovalQuestion`); `note`: why the command needs the network,
    in a sentence; `retry`: the command failed in the sandbox and would run again in `place`; `cwd` and `limit_s`: its
    folder and time limit.
    """

    call_id: str
    name: str
    title: str
    body: str
    filetype: str = "text"
    path: str = ""
    before: str = ""
    after: str = ""
    why: str = ""
    again: str = ""
    exact: GrantScope = GrantScope()
    covers: GrantScope = GrantScope()
    narrowed: str = ""
    kind: Literal["call", "compact", "sampling", "elicitation"] = "call"
    form: str = ""
    place: Literal["", "inside", "network", "outside", "none", "off"] = ""
    note: str = ""
    hosts: tuple[str, ...] = ()
    retry: bool = False
    cwd: str = ""
    limit_s: float = 0.0


class ApprovalClosed(Event, frozen=True, kw_only=True, tag="approval_closed"):
    """The approval was answered (or the turn cancelled), so its block is removed."""

    call_id: str
    decision: str


class Meter(Event, frozen=True, kw_only=True, tag="meter"):
    """The size of the next request. `exact` is false while it is estimated (`~`). `edit_at`/`compact_at`: 0 means off.

    `assumed`: the window is a guess (`?`, R-506). `paused`: automatic edits and compactions are paused after an undo,
    until the user compacts, redoes or chooses a policy. `stopped`: the chat's configured policy, if it is stopped
    because the option named by `stopped_by` is invalid; otherwise neither field is sent. `no_tools`: why the model
    would not see tools, so that none are sent. `held_back`: the tools that are not sent in a small context window.
    """

    tokens: int
    window: int
    ratio: float
    exact: bool
    assumed: bool = False
    edit_at: int = 0
    compact_at: int = 0
    paused: bool = False
    stopped: str | msgspec.UnsetType = msgspec.UNSET
    stopped_by: str | msgspec.UnsetType = msgspec.UNSET
    no_tools: str | msgspec.UnsetType = msgspec.UNSET
    held_back: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class ContextItem(msgspec.Struct, frozen=True):
    """One line of the context block. `kind`: the message tag; `label`: the path or name; `note`: additional text.

    `live`: the model is sent changes to the item.
    """

    id: str
    kind: str
    label: str
    tokens: int = 0
    note: str = ""
    live: bool = False


class ContextItems(Event, frozen=True, kw_only=True, tag="context_items"):
    """The complete context block: attachments and rules in the order they are sent."""

    items: tuple[ContextItem, ...]


class ContextEdited(Event, frozen=True, kw_only=True, tag="context_edited"):
    """`cleared` tool results were cleared from the view (R-516), or truncated. `call_ids`: the affected folds.

    `code`: the number of messages whose gathered code was cleared (included in `cleared`). `why`: the reason in a few
    words, or "" if none is needed. `changed`: messages whose text is now shorter; `removed`: messages that left the
    view. `cut`: the percentage still sent of truncated messages, by id (R-524).
    """

    cleared: int
    tokens_before: int
    tokens_after: int
    call_ids: tuple[str, ...]
    change_id: str = ""
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    cut: dict[str, int] = {}
    why: str = ""
    code: int = 0


class Replaced(msgspec.Struct, frozen=True):
    """A replaced answer: the ids of its messages.

    `undone`: the change was undone, so `items` are the messages of the new answer.
    """

    change_id: str
    items: tuple[str, ...]
    undone: bool = False


class ViewMarks(Event, frozen=True, kw_only=True, tag="view_marks"):
    """All marks of the view, sent whenever the user or a provider change undoes or redoes something.

    `undone`: ids of undone changes (for a compaction, its `compaction_id`). `cleared`, `pinned`: ids of shortened and
    of pinned messages. `cut`: the percentage still sent of messages that were only truncated, by id. `gone`: the
    messages that are not in the view, by the kind of change that removed them. `lost`: messages that refer to text
    which is no longer sent. `next_undo`, `next_redo`: the changes that can be undone and redone now; `undo_kind`: the
    kind of the `next_undo` change.
    """

    undone: tuple[str, ...]
    cleared: tuple[str, ...]
    pinned: tuple[str, ...]
    cut: dict[str, int] = {}
    gone: dict[str, tuple[str, ...]] = {}
    next_undo: str = ""
    next_redo: str = ""
    replaced: tuple[Replaced, ...] = ()
    undo_kind: str = ""
    lost: tuple[str, ...] = ()


class CompactionStarted(Event, frozen=True, kw_only=True, tag="compaction_started"):
    """A compaction began (R-543); exactly one `compacted` or `compaction_failed` follows. `label`: the text shown."""

    compaction_id: str
    trigger: Literal["proactive", "reactive", "manual"]
    summariser: str
    label: str = ""


class SummarySection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A section of a summary: the 0-based line of its heading, its number or 0, and whether the card shows it open."""

    line: int
    title: str
    number: int = 0
    open: bool = False


class Compacted(Event, frozen=True, kw_only=True, tag="compacted"):
    """The history so far was replaced in the view by `summary` (R-543).

    `removed`: the messages that left the view; `summary_ids`: the messages that replaced them; `before`: the next
    message in the view, above which the card is placed ("" if no such message is drawn). `title` and `folded` describe
    the card (with CoWork's title it shows its document's text, R-453), `sections` its folds. `tier` > 0: the tier of
    the policy that was used, with the `counts` of messages before and after (R-137).
    """

    compaction_id: str
    trigger: Literal["proactive", "reactive", "manual"]
    summariser: str
    summary: str
    messages: int
    cycles: tuple[int, int]
    tokens_before: int
    tokens_after: int
    duration_ms: int
    title: str = "Summary"
    folded: bool = False
    sections: tuple[SummarySection, ...] = ()
    tier: int = 0
    counts: tuple[int, int] = (0, 0)
    removed: tuple[str, ...] = ()
    summary_ids: tuple[str, ...] = ()
    before: str = ""


class CompactionFailed(Event, frozen=True, kw_only=True, tag="compaction_failed"):
    """A compaction failed and changed nothing. `reason`: one sentence for the user."""

    compaction_id: str
    reason: str
    cancelled: bool = False


class PolicyEvent(Event, frozen=True, kw_only=True, tag="policy_event"):
    """An event documented by a policy; nothing is drawn, `User CodeCompanion<NameInCamelCase>` fires with `fields`."""

    name: str
    fields: dict[str, object]
    compaction_id: str = ""


class Retrying(Event, frozen=True, kw_only=True, tag="retrying"):
    """The provider request failed with an error worth retrying; the next attempt is in `wait_ms`.

    `reason`: the whole sentence; `brief`: two or three words, or "". `waiting`: the pending condition while a local
    server starts; the event is repeated at every check.
    """

    reason: str
    attempt: int
    wait_ms: int
    brief: str = ""
    waiting: str = ""


class TurnFinished(Event, frozen=True, kw_only=True, tag="turn_finished"):
    """The turn ended. `error`: one sentence if `reason` is `failed` or `limit`.

    `unsent`: the message was not sent, so the error applies until the message is sent; with `reason` `stopped`, no
    reply can be regenerated.
    """

    reason: Literal["done", "stopped", "failed", "limit"]
    error: str = ""
    unsent: bool = False
    duration_ms: int = 0


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of a restored chat, in buffer order.

    kind: `user` | `updated` | `gathered` | `mentioned` | `reply` | `reasoning` | `tool` | `edited` | `compacted` |
    `cleared` | `changed` | `note`; fields as in the live events. `change_id`: the change that made `edited`,
    `compacted` and `cleared`; `undone`: that change is currently undone. `gone`: the message is not in the view; the
    value is the kind of change that removed it. `opens`: the entry is the first of the model's side of a turn, or of
    a new answer to the same message. `kept_percent`: the percentage still sent of a truncated tool result, or of each
    result that an edit truncated. `level`: the severity of a note; `ended`: the outcome of a turn, in the note on its
    end. `changes`: file changes by the tools of a turn that ends here.
    """

    kind: str
    text: str = ""
    message_id: str = ""
    call_id: str = ""
    name: str = ""
    title: str = ""
    summary: str = ""
    status: str = ""
    adapter: str = ""
    model: str = ""
    cut: bool = False
    cleared: bool = False
    kept_percent: tuple[int, ...] = ()
    pinned: bool = False
    gone: str = ""
    opens: bool = False
    number: int = 0
    reply_id: str = ""
    summary_ids: tuple[str, ...] = ()
    level: Severity = Severity.INFO
    ended: str = ""
    change_id: str = ""
    undone: bool = False
    trigger: str = ""
    summariser: str = ""
    messages: int = 0
    code: int = 0
    cycles: tuple[int, int] = (0, 0)
    tokens: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    duration_ms: int = 0
    folded: bool = False
    sections: tuple[SummarySection, ...] = ()
    tier: int = 0
    counts: tuple[int, int] = (0, 0)
    change: FileChange | None = None
    changes: tuple[FileChange, ...] = ()


class Restored(Event, frozen=True, kw_only=True, tag="restored"):
    """A batch of entries of a restored chat; batches arrive newest first, and each belongs above the previous ones.

    The first batch (`first`) is enough to fill a screen; `last` ends the restore.
    """

    entries: tuple[Entry, ...]
    first: bool = False
    last: bool = False


class IndexProgress(Event, frozen=True, kw_only=True, tag="index_progress"):
    """Progress of the code index of `root`: `done` of `total` files while it is built (`total` is 0 if not counted).

    `why`: one sentence if the index cannot be used or was not finished. `of_vectors`: the event is about the vectors of
    code chunks, which `done` and `total` count.
    """

    root: str
    phase: Literal["absent", "building", "ready", "unusable"]
    done: int = 0
    total: int = 0
    why: str = ""
    of_vectors: bool = False


class LoginCode(Event, frozen=True, kw_only=True, tag="login_code"):
    """A login waits until the user enters `code` ("" if none) on the page `url`, for at most `expires_s` seconds.

    `redirects`: the page redirects to an address on this machine; if that fails because the browser runs elsewhere,
    the user may enter the address (`login` with `answer`). `account`: the requested account; `accounts`: other known
    accounts.
    """

    adapter: str
    code: str
    url: str
    expires_s: int
    redirects: bool = False
    account: str = ""
    accounts: tuple[str, ...] = ()


class RequestFailed(Event, frozen=True, kw_only=True, tag="request_failed"):
    """A request without `id` failed; `verb`: its name, `error`: one sentence. `busy`: only until the reply ends."""

    verb: str
    error: str
    busy: bool = False


class McpChanged(Event, frozen=True, kw_only=True, tag="mcp_changed"):
    """The state of an MCP server, or its list of tools, resources or prompts, has changed."""

    server: str


class TrustWaits(Event, frozen=True, kw_only=True, tag="trust_waits"):
    """Lists, as text, the files of the chat's folder that wait for the user's trust ("" if none)."""

    waits: str
    count: int = 0


class PackagesMissing(Event, frozen=True, kw_only=True, tag="packages_missing"):
    """A requested feature needs the packages of an extra (`:CodeCompanion install`)."""

    extra: str
