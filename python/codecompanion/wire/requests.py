"""Defines the editor's requests to the host: verb + one JSON object (`rpcnotify(chan, "codecompanion", verb, json)`).

`decode(verb, json)` returns the typed value or raises an `InputError` that names the verb and the field. Requests with
an `id` > 0 are answered by one `reply` event. The editor never waits (`rpcnotify`, never `rpcrequest`). All verbs are
in this one file, despite its length: it is the full list of the editor's requests, and `types.lua` is generated from
it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests. `id` > 0 requests a `reply` event; `chat`: the chat id ("" for the host)."""

    id: int = 0
    chat: str = ""

    def __repr__(self) -> str:
        """Hide the values from logs and tracebacks, because they may be secrets."""
        return f"{type(self).__name__}(id={self.id}, chat={self.chat!r}, …)"


class Buffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A listed buffer of the snapshot: name, whether it has unsaved changes, and if so its `b:changedtick`."""

    name: str
    modified: bool = False
    tick: int = 0


class Diagnostic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A diagnostic (the answer to `ask` "diagnostics"): path, 1-based line, severity name, source, message."""

    path: str
    line: int
    severity: str
    message: str
    source: str = ""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the editor at one moment, so that a turn needs no callbacks.

    `cursor`: (row, column) in the file `current`; `visible`: the file's first and last line on the screen, and its
    number of lines; rows and lines are 1-based. `send_code` is False if the user does not allow code to be sent
    (`opts.send_code`). The editor sends the `buffers` with unsaved changes; the bridge adds the others, which
    `GiveOpenFiles` names.
    """

    cwd: str = ""
    buffers: tuple[Buffer, ...] = ()
    current: str = ""
    cursor: tuple[int, int] = (1, 0)
    visible: tuple[int, int, int] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    send_code: bool = True


class EditorText(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text from the editor. `title`: its description, shown before the file and its lines.

    `path`: its file ("" if none); `first`: the 1-based line at which it begins there (0 if it is not text from the
    file); `whole`: it is the whole file; `partial`: its lines are parts of the file's lines. `language`: the language
    of the code block.
    """

    text: str
    title: str = ""
    path: str = ""
    first: int = 0
    whole: bool = False
    language: str = ""
    unsaved: bool = False
    partial: bool = False


class EditorItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Editor content that a message mentions (`written`: `#{diff:staged}`), as it was when the message was sent.

    If `texts` is empty, `nothing` is the reason that there is no content. `error`: the reason that the message cannot
    be sent. If the content does not fit, the end named by `keep` is kept. `comes`: whether the content comes with this
    request, in a later request (`editor_context`), or from the host, which reads it by `name` and `argument`.
    """

    written: str
    name: str
    argument: str = ""
    texts: tuple[EditorText, ...] = ()
    nothing: str = ""
    error: str = ""
    keep: Literal["head", "tail"] = "head"
    comes: Literal["now", "later", "by_host"] = "now"


class Hello(Request, frozen=True, kw_only=True):
    """The first request: the user's settings (see `settings.py`), folders, Neovim version, shell and language.

    `shell`: the value of Neovim's option; `language`: the configured language or the locale ("" if unknown).
    `adapters`: the user's own entries by name (`adapters/entries`); `proxy`: the proxy for all adapters ("" for none).
    `environment`: variables withheld from the process at start, because programs of the same user could read them
    there. `mistakes`: errors in the settings that the editor found, which must be shown before a chat is used;
    `wrong_options`: errors in options that policies read, each sentence beginning with its key.
    """

    settings: dict[str, Any]
    data_dir: str
    cache_dir: str
    log_path: str
    nvim: str
    shell: str = ""
    language: str = ""
    state_dir: str = ""
    config_dir: str = ""
    adapters: dict[str, Any] = {}
    proxy: str = ""
    secrets: dict[str, str] = {}
    environment: dict[str, str] = {}
    mistakes: tuple[str, ...] = ()
    wrong_options: tuple[str, ...] = ()


class OpenChat(Request, frozen=True, kw_only=True):
    """Open a new chat (the editor chooses its id, `chat`), or the stored chat `resume`; `chat` is then the same id.

    `unconfirmed`: keys of submits for which the editor does not know whether they were stored. `copy`: the id of this
    copy of the chat, unique among all editors; its input has its own draft. `shown`: the displayed part of a reply that
    a host was receiving when it was killed. `purpose`: the chat has no buffer and serves one kind of request; it is
    listed only after the user gives it a title or opens it in a window. With the purpose `edit_in_place` it is a chat
    like any other; with any other purpose, its system prompt is `prompts/purpose_<purpose>.md`, and it has no tools,
    rules or gathered code.
    """

    snapshot: Snapshot
    purpose: Literal["", "command_line", "commit_message", "edit_in_place"] = ""
    adapter: str = ""
    model: str = ""
    resume: str = ""
    unconfirmed: tuple[str, ...] = ()
    copy: str = ""
    shown: str = ""


class EditPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lines that may be replaced, the surrounding lines, and the file's indentation; lines have no line endings.

    Empty `region`: a position between two lines. `width`: columns per indentation level.
    """

    region: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    filetype: str = ""
    tabs: bool = False
    width: int = 4


class EditTarget(EditPlace, frozen=True, kw_only=True, omit_defaults=True):
    """The target of an edit in place: the lines, their file, and the first line's number (1-based).

    A follow-up (`is_follow_up`) refers to the lines as changed by an earlier edit in this chat.
    """

    path: str
    first: int
    is_follow_up: bool = False


class Submit(Request, frozen=True, kw_only=True):
    """Send the text of the input region. `submit_id` increases with each submit, so each is sent exactly once.

    `key`: unique among all editors and logged with the message. With `edit`, the text is the instruction of an edit in
    place: no tools are offered in its turn, and its reply is also sent as `edit_text` and `edit_ended`. `items`: the
    editor content that the text mentions.
    """

    submit_id: int
    text: str
    snapshot: Snapshot
    key: str = ""
    edit: EditTarget | None = None
    items: tuple[EditorItem, ...] = ()


class EditorContext(Request, frozen=True, kw_only=True):
    """Send editor content that a submit mentions and waits for, because it was not ready then."""

    submit_id: int
    items: tuple[EditorItem, ...]


class Cancel(Request, frozen=True, kw_only=True):
    """Stop all running work in the chat (stream, tool, compaction, retry delay). Queued submits become drafts again."""


class Compact(Request, frozen=True, kw_only=True):
    """`/compact [instructions]` (R-533). The editor asks the user for confirmation.

    With `go_on` the model continues afterwards, even in an idle chat (R-528).
    """

    instructions: str = ""
    go_on: bool = False


class Attach(Request, frozen=True, kw_only=True):
    """→ `{label, tokens}`. Attach a file, a buffer, an image … to the next request; 0 tokens while a turn is running.

    `text`: the content, for kinds that the host does not read itself.

    The host reads a `file`, an `image`, the `symbols` of a file, and a `diff`, which `path` selects ("" for all
    uncommitted changes).

    Only attachments of the kind `file` or `buffer` are live; a `text` attachment never changes, whatever its label.

    A `.pdf` file is attached as a document. `live`: notify the model when the file or buffer changes (None: as
    configured).
    """

    kind: Literal["file", "buffer", "image", "symbols", "diff", "terminal", "help", "now", "text"]
    path: str
    text: str = ""
    live: bool | None = None


class FetchPage(Request, frozen=True, kw_only=True):
    """→ one sentence. Attach the readable text of a page (`/fetch`); `again`: ignore the copy cached for an hour."""

    url: str
    again: bool = False


class CancelFetch(Request, frozen=True, kw_only=True):
    """Stop fetching pages for the chat."""


class Detach(Request, frozen=True, kw_only=True):
    """Remove context items (deleted lines of the context block) from the next request."""

    items: tuple[str, ...]


class SetLive(Request, frozen=True, kw_only=True):
    """→ one sentence. Start or stop sending the model the changes to these context items."""

    items: tuple[str, ...]
    live: bool


class AddRules(Request, frozen=True, kw_only=True):
    """Add a group of rules to the chat (`/rules`)."""

    group: str


class Approve(Request, frozen=True, kw_only=True):
    """Answer an approval. `always` applies to this tool (for a shell: this command) in this chat.

    `text`: the proposal (`after`) as edited by the user, which is written instead; the model sees the difference.
    `family` with `always`: the commands in `ApprovalRequested.covers` run without asking in this chat.
    """

    call_id: str
    decision: Literal["once", "always", "reject", "cancel"]
    reason: str = ""
    text: str | None = None
    family: bool = False


class Answer(Request, frozen=True, kw_only=True):
    """Answer an `ask` event; `error`: the reason for a failure."""

    ask_id: int
    ok: bool
    error: str = ""
    result: Any = None


class SetYolo(Request, frozen=True, kw_only=True):
    """Turn YOLO mode on or off for the chat; while `on`, approvals are skipped."""

    on: bool


class SetModel(Request, frozen=True, kw_only=True):
    """Change adapter and model (`ga`)."""

    adapter: str
    model: str = ""
    secrets: dict[str, str] = {}


class SetPolicy(Request, frozen=True, kw_only=True):
    """Use another policy in the chat (`/policy`); "" selects the configured policy."""

    policy: str


class ListPolicies(Request, frozen=True, kw_only=True):
    """→ `[{name, description, current}]`: the policies the chat may choose."""


class GiveSecrets(Request, frozen=True, kw_only=True):
    """Send keys returned by functions in the configuration, by adapter name, for adapters not in `hello`."""

    secrets: dict[str, str]


class GiveEnvironment(Request, frozen=True, kw_only=True):
    """Send variables as in `Hello.environment` that have since changed in the editor or been removed."""

    changed: dict[str, str] = {}
    gone: tuple[str, ...] = ()


class GiveOpenFiles(Request, frozen=True, kw_only=True):
    """Send the names of all listed file buffers; sent after changes, before the request whose snapshot needs them."""

    names: tuple[str, ...]


class SetOverrides(Request, frozen=True, kw_only=True):
    """Send the values of functions in the configuration (R-502, R-503): the subtree `context_management` for this chat.

    `wrong`: a sentence for each function that failed or returned a value of the wrong type, beginning with the key.
    """

    context_management: dict[str, Any]
    wrong: tuple[str, ...] = ()


class Clear(Request, frozen=True, kw_only=True):
    """Empty the view (`/clear`); the log keeps everything."""


class Regenerate(Request, frozen=True, kw_only=True):
    """Answer the last user message again."""

    snapshot: Snapshot


class GoOn(Request, frozen=True, kw_only=True):
    """Continue the model's last reply, which was cut off or ended at the output limit."""

    snapshot: Snapshot


class RedrawChat(Request, frozen=True, kw_only=True):
    """Send the editor the whole content of the chat's buffer, beginning with `redrawn`."""


class CloseChat(Request, frozen=True, kw_only=True):
    """Release the chat, whose buffer was deleted."""


class SaveDraft(Request, frozen=True, kw_only=True):
    """Save the text of the input region (debounced by the editor).

    `copy`: the read-only copy in which the text was typed; the chat's owner has a different draft.
    """

    text: str
    copy: str = ""


class ListSessions(Request, frozen=True, kw_only=True):
    """→ `[{id, title, updated, created, messages, cwd, adapter, model, owned, draft, first_question, …}]`.

    The newest chats come first; times are in seconds since the epoch. `forked_from` and `family` name other chats (""
    if the chat is not a branch). With `chat`, only that chat, even if it is empty.
    """

    cwd: str = ""
    limit: int = 100


class ListMissing(Request, frozen=True, kw_only=True):
    """→ `{text, chats: [{chat, title, time, messages, lost}]}`: chats in checkpoints that the database lacks.

    `text` is one sentence, or "" if none is missing; `time` is in ms; `lost` is -1 if the chat exists but ends earlier.
    """


class BringBack(Request, frozen=True, kw_only=True):
    """→ one sentence. Restore every missing chat from its checkpoint."""


class RenameSession(Request, frozen=True, kw_only=True):
    """→ one sentence. Rename the stored chat `chat`, open or not."""

    title: str


class ExportChat(Request, frozen=True, kw_only=True):
    """→ `{path, text}`: write a stored chat to a shareable file; `text` is one sentence.

    `path` is absolute; "" means a name derived from the chat's title, in `cwd`. An existing file is not overwritten.
    Keys are masked, and the home folder becomes `~`.
    """

    cwd: str
    path: str = ""
    form: Literal["html", "md"] = "html"


class DeleteSession(Request, frozen=True, kw_only=True):
    """→ one sentence. Permanently delete the stored chat `chat` unless it is open. The editor asks for confirmation."""


class ForkChat(Request, frozen=True, kw_only=True):
    """→ the branch's id. Copy the chat up to (not including) its message `at`, or all of it, into the new chat `fork`.

    `draft` is stored with the branch. Repeating the request for an existing branch does nothing; if `fork` is "", the
    host chooses an id.
    """

    fork: str = ""
    at: str = ""
    title: str = ""
    draft: str = ""


class ListBranches(Request, frozen=True, kw_only=True):
    """→ `[{…, depth, current}]`: the tree of branches of the chat, rows as in `list_sessions`."""


class ListCheckpoints(Request, frozen=True, kw_only=True):
    """→ `[{id, chat, kind, time, messages, title}]` of one chat (`of`) or all, newest first; `time` is in ms."""

    of: str = ""


class RestoreChat(Request, frozen=True, kw_only=True):
    """→ `{chat, source, note}`. Create a chat from a checkpoint (`<chat>/<name>`) or from the best one (`<chat>`)."""

    checkpoint: str
    snapshot: Snapshot


class ShowMemory(Request, frozen=True, kw_only=True):
    """→ `{folder, user, project, unused, of, others, entries}`: a project's memory; with a `query`, the best hits.

    The project is that of the chat, or of `cwd` if the host does not have the chat open. `folder`: the folder of the
    project's notes; `user`, `project`: the files that the user writes ("" if not used); `unused`: sentences about
    unused files; `of`: the number of entries; `others`: the number of entries in other projects, which `everything`
    includes. `entries`: `{path, line, origin, scope, is_private, title, first, time, can_delete}`, newest first, at
    most 500; `origin` is "you", "model" or "compaction".
    """

    cwd: str = ""
    query: str = ""
    everything: bool = False


class DeleteMemory(Request, frozen=True, kw_only=True):
    """→ one sentence. Delete a memory file that the user did not write (`can_delete`)."""

    path: str


class RestoreMemory(Request, frozen=True, kw_only=True):
    """→ one sentence. Restore the most recent memory file deleted since the host started."""


class ListModels(Request, frozen=True, kw_only=True):
    """→ `[{adapter, models: [{name, window, about}], problem, brief}]`, "" for all adapters; see `model_choice`."""

    adapter: str = ""


class ServerCards(Request, frozen=True, kw_only=True):
    """→ `[{adapter, text, advice}]` of the requested adapters whose servers report anything; see `server_card`."""

    adapters: tuple[str, ...]


class Login(Request, frozen=True, kw_only=True):
    """→ `{user, models, problem, notice}`: log in to an adapter that uses a login instead of a key.

    The event `login_code` tells the user what to do. `account`: "" for the last account used, "new" for another
    account, or one of the event's `accounts`. `notice`: a `{title, text}` to show at the first login, or empty.
    `answer` passes the `address` to which the browser was redirected. `stop` cancels the login; the waiting request
    then fails. `forget` deletes our own login → `{forgotten, note}`.
    """

    adapter: str
    action: Literal["start", "answer", "stop", "forget"] = "start"
    account: str = ""
    address: str = ""


class ListRules(Request, frozen=True, kw_only=True):
    """→ `[{name, description, files}]`."""

    snapshot: Snapshot


class ListPrompts(Request, frozen=True, kw_only=True):
    """→ `{prompts: [{name, description, alias, messages, origin, label, path, sha256, state, …}], problems}`.

    These are the prompt files of `own_folder` and `folders`, and of the project at `cwd`. The `state` of a project's
    prompt is "allowed", or "waits" if it needs the user's trust (`show_trust`) and comes without `messages`.
    `problems`: a sentence for each unusable file; `notes`: the unusable parts of a prompt.
    """

    cwd: str
    own_folder: str = ""
    folders: tuple[str, ...] = ()


class ShowTrust(Request, frozen=True, kw_only=True):
    """→ `{folder, why, since, identity, files, others, waiting, silenced, problem}`: a folder's files, all decisions.

    The folder is that of the chat, or `cwd` if the host does not have the chat open. `why`: why the folder is trusted:
    "user", "setup" (`trust.folders`), "off" (`trust.enabled`), or "" if it is not. `files`: `{kind, label, path,
    sha256, text, does, is_trusted, runs, leads_out, cut}`; `others`: `{path, kind, since, here}` of every decision.
    `folders` and `own_folder`: the prompt folders (`list_prompts`).
    """

    cwd: str = ""
    folders: tuple[str, ...] = ()
    own_folder: str = ""


class ShownFile(msgspec.Struct, frozen=True):
    """A file of a folder, with the hash of the content shown to the user."""

    path: str
    sha256: str


class ChangeTrust(Request, frozen=True, kw_only=True):
    """→ one sentence. Trust a folder or files, revoke trust, or silence the reminder about waiting files (`silence`).

    `folder` and `identity`: the folder that was shown, or "" for the folder of the chat or of `cwd`. `files`: the files
    to trust as shown; if `what` is "folder", all files shown. `path`: a file to trust with its current content, or the
    file or folder to `revoke` ("" for the folder).
    """

    what: Literal["folder", "files", "revoke", "silence"]
    cwd: str = ""
    folder: str = ""
    identity: str = ""
    files: tuple[ShownFile, ...] = ()
    path: str = ""
    folders: tuple[str, ...] = ()
    own_folder: str = ""


class CheckMentions(Request, frozen=True, kw_only=True):
    """→ `{written: why}`: mentions in external text of files outside the project at `cwd`, or of files with secrets."""

    cwd: str
    text: str


class Inspect(Request, frozen=True, kw_only=True):
    """→ `{rows: [{id, role, tag, name, tokens, cycle, age, state, preview, cache, cost}], total, window, cost}`.

    This describes the next request, message by message; `cache` is `hit`, `miss` or "", `cost` is in US dollars or
    null. With `request`, it describes the request with that number (1-based, −1 for the newest) as it was sent, with
    its `turn` (or its purpose `asked` for a summary), a `note`, the number of `requests`, and whether its `total` is
    `exact`.
    """

    request: int = 0


class ShowRequest(Request, frozen=True, kw_only=True):
    """→ `{title, text, filetype, state}`: the body of a request as JSON (0 for the next request), or a message in it.

    The text differs from the bytes sent only in whitespace between JSON values. `item`: the id of a message, `system`
    or `tools`.
    """

    request: int = 0
    item: str = ""


class Preview(Request, frozen=True, kw_only=True):
    """→ `{title, text, filetype, state}`: the policy's next changes, as a diff; nothing is sent (R-546).

    With `last_request`: the difference between the next request and the last one sent.
    """

    against: Literal["policy", "last_request"] = "policy"


class ForecastCompaction(Request, frozen=True, kw_only=True):
    """→ `{before, after, pins, rules, why}`: an estimate of the effect of /compact now, for its confirmation."""


class ShowOriginal(Request, frozen=True, kw_only=True):
    """→ `{title, text, filetype, state, summary}`: the stored content for a message id or call id.

    `summary`: the summary of a tool result, as on its line ("" for other messages).
    """

    item: str


class ShowCost(Request, frozen=True, kw_only=True):
    """→ `{title, text, spans}`: the cost of the chat as Markdown (R-356). Read from the log; the chat may be closed.

    `spans`: the colours of the chart, as (0-based line, first byte, end, ink). `ascii`: draw the chart without Braille
    characters.
    """

    width: int = 80
    ascii: bool = False


class ShowTrace(Request, frozen=True, kw_only=True):
    """→ `{title, text, turn, turns}`: a turn request by request, by default the newest (R-357). Read from the log."""

    turn: int | None = None
    width: int = 80


class ShowAudit(Request, frozen=True, kw_only=True):
    """→ `{title, text, said}`: the audit log as Markdown, for the chat `of` or all; `file`: the file to export to."""

    of: str = ""
    file: str = ""


class ShowSystemPrompt(Request, frozen=True, kw_only=True):
    """→ `{text, tools}`: the system prompt and the tool names of the next request."""


class UndoChange(Request, frozen=True, kw_only=True):
    """→ one sentence naming the undone change. `change_id` "": the newest change (R-545); any other id is refused."""

    change_id: str = ""


class RedoChange(Request, frozen=True, kw_only=True):
    """→ one sentence naming the redone change."""

    change_id: str = ""


class RestoreMessage(Request, frozen=True, kw_only=True):
    """→ one sentence. Restore the original message with this message or call id to the view (R-516)."""

    item: str


class ClearMessage(Request, frozen=True, kw_only=True):
    """→ one sentence. Clear one tool result, as editing would (R-511, R-513)."""

    item: str


class Pin(Request, frozen=True, kw_only=True):
    """→ one sentence. Pin a message by message or call id ("" for the newest), or `text` as an instruction (R-361).

    `source`: the project file that the instruction comes from, or "" if the user wrote it. `again`: pinning an already
    pinned message succeeds without effect.
    """

    item: str = ""
    text: str = ""
    source: str = ""
    again: bool = False


class Unpin(Request, frozen=True, kw_only=True):
    """→ one sentence. Unpin a message by message or call id, or by its `number` in the list of pins."""

    item: str = ""
    number: int = 0


class ListPins(Request, frozen=True, kw_only=True):
    """→ `[{number, id, role, tokens, text}]`, in the order of the request."""


class Recall(Request, frozen=True, kw_only=True):
    """→ `{rows: [{key, id, title, cycle, tokens, removed, changed, snippet}], total}`: search in removed messages."""

    words: str = ""


class PreviewCode(Request, frozen=True, kw_only=True):
    """→ `{title, head, rows, text, root, can_choose}`: the code that would be gathered for a question (`/context`).

    Without a question, the user's newest message is used; nothing is sent. A row is `{path, start, end, what, source,
    score, tokens, state, why, kind, name, anchor, anchor_at, chosen_at}`. `state` is "in", "out" (`why`: the reason),
    or "left out" or "pinned" by the user; `chosen_at`: the line at which the code was pinned (0 means `start`).
    """

    snapshot: Snapshot
    question: str = ""


class ShowGathered(Request, frozen=True, kw_only=True):
    """→ as `preview_code`: the code gathered for a message; `item`: the id of the gathered message.

    `tokens`: the size of the message as the chat shows it, which all figures follow; 0 = the current estimate.
    """

    item: str
    tokens: int = 0


class ChooseCode(Request, frozen=True, kw_only=True):
    """→ one sentence. Leave a snippet out of the next question, or pin it in this chat; "" means neither."""

    path: str
    start: int = 0
    end: int = 0
    kind: str = ""
    name: str = ""
    anchor: str = ""
    anchor_at: int = 0
    choice: Literal["left_out", "pinned", ""] = ""


class ListChanges(Request, frozen=True, kw_only=True):
    """→ `[{change_id, path, name, turn, turn_id, question, kind, tool, added, removed, state, reverted, time, …}]`.

    The file changes that tools made in this chat (`kind` "tool"), and those by which the user reverted or reapplied
    them ("revert", "reapply"; `tool` ""), newest first. Unsaved changes that were saved or discarded meanwhile are
    updated first, in the buffer too. With `hunks` each row has its `hunks`
    (`tools.files.diff.Hunk`), and whether each is `reverted`.
    """

    hunks: bool = False


class ShowChange(Request, frozen=True, kw_only=True):
    """→ `{title, text, filetype, state}`: the whole diff of a file change.

    With `texts`, the result also has the full contents as `before` and `after`.
    """

    change_id: str
    texts: bool = False


class RevertChanges(Request, frozen=True, kw_only=True):
    """→ `{text, reverted, reapplied, conflicts: [{path, name, reason, changes, can_compare, can_mark}]}`.

    Revert file changes with a three-way merge against later changes; files with conflicts are unchanged. `reverted`:
    the number of files changed; `reapplied`: whether they have the tools' changes again. With `markers` the conflict is
    put into the file's buffer, unsaved. `hunk`: revert only this hunk of a single change (0-based, as in the `hunks`
    of `list_changes`), or reapply it if it is reverted.
    """

    changes: tuple[str, ...]
    markers: bool = False
    hunk: int | None = None


class ListGrants(Request, frozen=True, kw_only=True):
    """→ `[{grant, tool, scope, configured}]`: calls allowed without asking in this chat; `scope` is a `GrantScope`."""


class ListTools(Request, frozen=True, kw_only=True):
    """→ `{tools, groups, tokens, all_tokens, is_default, note, coming}`: tools, groups, token costs, enabled state.

    `sent`: the tool is part of the next request; `why_not`: why an enabled tool is not sent. `coming`: the names and
    states of servers whose tools are not known yet.
    """


class ChooseTools(Request, frozen=True, kw_only=True):
    """→ one sentence. Enable or disable these tools and groups in the chat from now on.

    `how`: `on`, `off` and `toggle` switch the named tools; `only` offers just these, or the configured tools if `names`
    is empty.
    """

    names: tuple[str, ...]
    how: Literal["on", "off", "toggle", "only"] = "toggle"


class RevokeGrant(Request, frozen=True, kw_only=True):
    """→ one sentence. Revoke `grant`, so that the calls it allowed need approval again."""

    grant: str


class Doctor(Request, frozen=True, kw_only=True):
    """→ `[{name, ok, text, advice}]` for `:checkhealth`."""


class ShowMcp(Request, frozen=True, kw_only=True):
    """Return the MCP servers of a folder, one table each: state, tools with their sizes, resources, prompts, log.

    The folder (`root`) is that of the chat, or `cwd` if the host does not have the chat open. `files`: the server
    files, each with its path, the names of its servers, whether it is trusted, and its problem.
    """

    cwd: str = ""


class ChangeMcp(Request, frozen=True, kw_only=True):
    """Start, stop or restart an MCP server, or enable or disable one of its tools (by the server's own name)."""

    what: Literal["start", "stop", "restart", "offer", "withhold"]
    server: str = ""
    tool: str = ""
    cwd: str = ""


class ReadMcp(Request, frozen=True, kw_only=True):
    """Return the text of a server's resource (`uri`), or of a server's prompt with its arguments filled in (`prompt`).

    A stopped server is started. With `attach`, the resource is instead attached to the chat's next request.
    """

    server: str
    uri: str = ""
    prompt: str = ""
    arguments: dict[str, str] = {}
    cwd: str = ""
    attach: bool = False


class IndexProject(Request, frozen=True, kw_only=True):
    """→ `{root, phase, done, total, why, files, chunks, symbols, vectors, bytes, complete, left_out, no_vectors}`.

    Build the code index, or report its state.

    `start`: build it in the background if it is out of date; `rebuild`: build it from scratch. `index_progress` events
    report the progress. With neither, only the state of the current index is reported, with `left_out`: a sentence that
    lists the files not searched and gives the reason. `no_vectors`: why the last run that computed vectors ended early,
    or "" if it did not.
    """

    cwd: str
    start: bool = False
    rebuild: bool = False


class ReadStaged(Request, frozen=True, kw_only=True):
    """→ `{diff, stat, subjects, secret}`: the staged changes (`diff` is "" if none). `secret`: files left out (R-266).

    `index`, `git_dir` and `work_tree`: the paths that `git commit` passed to its editor ("" for the folder's defaults).
    """

    cwd: str
    index: str = ""
    git_dir: str = ""
    work_tree: str = ""


class ListNames(Request, frozen=True, kw_only=True):
    """→ the file names that git lists below a folder, each preceded by a NUL, or "" if there are none."""

    cwd: str


class FilesChanged(Request, frozen=True, kw_only=True):
    """Report files (absolute paths) that the editor wrote or found changed, so that indexes check them first."""

    paths: tuple[str, ...]


class RecentLines(msgspec.Struct, frozen=True):
    """Lines of a file that were edited or visited, 1-based and inclusive."""

    path: str
    start: int
    end: int


class CompleteCode(Request, frozen=True, kw_only=True):
    """→ `{items: [{text}], model, ms, cached, why, failed, off}`: completions at the cursor, or the reason for none.

    `failed`: the server was unreachable or returned an error; the editor shows `why` once and waits before the next
    request. `off`: this file never gets completions (a secret file); the editor stops asking for it.

    `before`: the text before the cursor (≤ 8,000 characters), `after`: the text after it (≤ 2,000), `head`: the text
    above `before`, from the top of the file (≤ 20,000). `line` and `column` of the cursor are 0-based, in bytes.
    `recent`: newest first. `manual`: the user requested the completion. `count`: the number of different completions; 0
    sends no request and only checks whether a server is available. A newer request from the same editor cancels this
    one, whose reply then has neither items nor a reason.
    """

    path: str
    filetype: str = ""
    before: str = ""
    after: str = ""
    head: str = ""
    line: int = 0
    column: int = 0
    cwd: str = ""
    recent: tuple[RecentLines, ...] = ()
    manual: bool = False
    count: int = 1


class CancelCompletion(Request, frozen=True, kw_only=True):
    """Cancel the completion requested by `of` (0 for the running one) and close its connection."""

    of: int = 0


def _verb(kind: type[Request]) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in kind.__name__)[1:]


VERBS = {_verb(kind): kind for kind in Request.__subclasses__()}
"""The request types by verb, which is the class name in snake_case."""


def decode(verb: str, payload: str) -> Request:
    """Return the typed request.

    Raises:
        InputError: the verb is unknown, or a field is invalid; the message names both.
    """
    kind = VERBS.get(verb)
    if kind is None:
        raise InputError(f"unknown verb {verb!r}; expected one of {', '.join(sorted(VERBS))}")
    try:
        return typed.read_json(payload, type=kind)
    except NOT_READABLE as error:
        raise InputError(f"{verb}: {error}") from error
