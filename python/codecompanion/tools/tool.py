"""Defines a tool: a spec for the model, a rule for approval, and a coroutine that runs it.

Tools import only vocabulary packages (architecture.md); they get the path rule of `workspace` only through
`ToolContext`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from codecompanion.model.history import FileChangeState, HunksGone
from codecompanion.model.messages import Source, ToolSpec
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.code_lookup import CodeLookup, no_code_lookup
from codecompanion.tools.commands.command_environment import HiddenVariables
from codecompanion.tools.commands.offer import Offer
from codecompanion.tools.files.open_files import Editor, NoEditor, Opened
from codecompanion.tools.memory_interface import NoProjectMemory, ProjectMemory

if TYPE_CHECKING:
    from codecompanion.tools.sandbox.sandbox import Sandbox
    from codecompanion.wire.requests import Snapshot


class Walk(Protocol):
    """Lists the files below a folder, sorted by path parts, without ignored files and links."""

    def __call__(self, folder: Path, *, include_ignored: bool = False) -> Iterator[Path]:
        """Yield the files in the order of their path parts."""


def walk_everything(folder: Path, *, include_ignored: bool = False) -> Iterator[Path]:
    """Yield every file below the folder; `workspace` provides a walk with ignore rules."""
    entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from walk_everything(Path(entry.path), include_ignored=include_ignored)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def find_no_secret(text: str, path: str) -> str:
    """Return "": no text contains a secret. A default for the command line and tests."""
    del text, path
    return ""


def withhold_nothing(text: str, path: str) -> tuple[str, str]:
    """Return the text unchanged, with no reason to withhold it."""
    del path
    return text, ""


def skip_audit(summary: str, place: str, grant: str) -> None:
    """Ignore a second run instead of recording it in the audit log."""


def refuse_git_config(file: Path) -> list[tuple[str, str]]:
    """Raise `OSError` instead of reading a git configuration; `workspace` provides the actual reader."""
    raise OSError(f"{file} is not read")


def is_never_secret(name: str) -> bool:
    """Return False for every file name; `workspace` provides the actual check for key files."""
    del name
    return False


class RemovedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the model no longer sees in its original form (R-516).

    `key` is its short name; `how` is the operation that removed it (`cleared`, `summarised` …); `changed` is the state
    of the file it came from if the file is known to be changed or deleted, otherwise "". `snippet` marks matches with «
    ». `times`: the number of times that the same call gave this result; this message is the newest. `sources`: the
    sources of its text.
    """

    key: str
    id: str
    title: str
    cycle: int
    tokens: int
    how: str
    changed: str = ""
    snippet: str = ""
    times: int = 1
    sources: tuple[Source, ...] = ()


class Recall(Protocol):
    """Finds messages that the model no longer sees in this chat. Reads disk and store: call it in a thread."""

    def find(self, words: str) -> Sequence[RemovedMessage]:
        """Return messages that match a question or keywords, best first; without words return all, newest first."""

    def read(self, key: str) -> tuple[RemovedMessage, str]:
        """Return a message and its full text; raises `KeyError` if no removed message has that key."""

    def sources_of_stored(self, sha256: str) -> tuple[Source, ...]:
        """Return the sources of stored text of the chat, or () if no message contains it."""


class NothingRemoved:
    """A `Recall` for a chat from which nothing was removed."""

    def find(self, words: str) -> Sequence[RemovedMessage]:
        """Return nothing."""
        return ()

    def read(self, key: str) -> tuple[RemovedMessage, str]:
        """Raise `KeyError`: nothing was removed."""
        raise KeyError(key)

    def sources_of_stored(self, sha256: str) -> tuple[Source, ...]:
        """Return no sources."""
        return ()


class Accepted(msgspec.Struct, frozen=True):
    """The proposal that the user saw (`before` and `after`, as in `ApprovalQuestion`) and the accepted `text`."""

    before: str
    after: str
    text: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A completed change to one file: its id in the log, the numbers of lines added and removed, and its diff.

    `unsaved`: the change is only in the editor's buffer.
    """

    change_id: str
    path: str
    name: str
    added: int
    removed: int
    diff: str
    unsaved: bool = False


class RevertedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the changes that another change reverts, and the places of tools' changes that it removes."""

    changes: tuple[str, ...] = ()
    gone: tuple[HunksGone, ...] = ()


NOTHING = RevertedChanges()


class PendingChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file about to be changed, with its contents before and after (None if the file does not exist).

    `mode` is the file's permissions, `link` the target of a symbolic link that is deleted.
    """

    path: Path
    name: str
    before: bytes | None
    after: bytes | None
    mode: int = 0
    link: str = ""
    reverts: RevertedChanges = NOTHING


class ChangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a change ended; `after` is set if the content differs from the intended one."""

    state: FileChangeState
    after: bytes | None = None
    added: int = 0
    removed: int = 0
    reason: str = ""


class Recorder(Protocol):
    """The log of file changes: each record is durable before the method returns."""

    async def begin(self, change: PendingChange) -> str:
        """Log that a file is about to be changed; return the change's id."""

    async def end(self, change_id: str, how: ChangeResult) -> None:
        """Log how the change ended."""


class NotRecorded:
    """A `Recorder` that logs nothing, for the command line and tests."""

    async def begin(self, change: PendingChange) -> str:
        """Log nothing."""
        del change
        return ""

    async def end(self, change_id: str, how: ChangeResult) -> None:
        """Log nothing."""


class CallingChat(Protocol):
    """The operations of a chat that a tool call may use."""

    def progress(self, label: str) -> None:
        """Show the current step of the running call in the status line."""

    async def attach_image(self, name: str, content: bytes, source: Source) -> None:
        """Attach an image from that source to the next request; raises `InputError` if it is not an image."""

    async def ask_to_repeat(self, question: ApprovalQuestion) -> str | None:
        """Ask whether a command that failed in the sandbox may run again, and return the grant for it.

        Return "" if the user declined, and None if the user cannot be asked.
        """

    def granted_hosts(self) -> frozenset[str]:
        """Return the hosts that commands of this chat may reach after "always" (`ANY_HOST` means all)."""


class NoChat:
    """A `CallingChat` without a chat, for the command line and tests."""

    def progress(self, label: str) -> None:
        """Show nothing."""

    async def attach_image(self, name: str, content: bytes, source: Source) -> None:
        """Attach nothing."""

    async def ask_to_repeat(self, question: ApprovalQuestion) -> str | None:
        """Return None: the user cannot be asked."""
        del question
        return None

    def granted_hosts(self) -> frozenset[str]:
        """Return no hosts."""
        return frozenset()


class Narrowed(msgspec.Struct, frozen=True):
    """Why the grants of a chat are narrowed (`tools.narrowing`): `because` in one line, or "" if they are not.

    `only_server`: the MCP server that is the only source of the text, or "" if there are others. `has_changed_files`:
    the chat has changed files since the text arrived.
    """

    because: str = ""
    only_server: str = ""
    has_changed_files: bool = False


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a running tool. `resolve` maps a path to an absolute path inside the workspace.

    `resolve` raises `errors.OutsideWorkspace`. `memory_dir` is the real folder of `/memories` (R-550), `memory` the
    interface to everything else remembered. `walk` is `workspace.files.walk` (with ignore rules). `is_secret` returns
    whether a file's name suggests keys or passwords, `why_secret(text, path)` describes the secret in a string ("" if
    none). `without_secrets(text, path)` returns the text without secret values, and why the file is withheld ("" if it
    is not). `read_git_config` is `workspace.git_config.read_certainly`. `read_stored(sha256)` returns a stored result,
    and raises `KeyError` or a `CodeCompanionError` if there is none. `environment` is the user's environment, including
    secrets; `hidden` decides which variables are withheld from programs that the model runs. `recall` finds the text
    removed from the chat. `accepted` is the proposal as the user edited it, or None without edits; the tool writes
    exactly that content. `opened` is the editor's state of the tool's files at the last query of `editor`; `recorder`
    logs changes of files; `look_up_code` queries the project's index. `narrowed` describes the text in the context that
    narrows grants. `chat_id` is "" outside a chat; `chat` has the operations that a call may use there. `sandbox` is
    the sandbox for commands; with None, they run as the user. `on_second_run(summary, where, grant)` is called if a
    command that ended with that summary is run again with more access. `decided` is the question that was answered or
    that a grant covers; the call gets no more access than the question allows.
    """

    root: Path
    resolve: Callable[[str], Path]
    memory_dir: Path
    snapshot: Snapshot
    read_stored: Callable[[str], str]
    timeout_s: float = 60.0
    walk: Walk = walk_everything
    is_secret: Callable[[str], bool] = is_never_secret
    why_secret: Callable[[str, str], str] = find_no_secret
    without_secrets: Callable[[str, str], tuple[str, str]] = withhold_nothing
    read_git_config: Callable[[Path], list[tuple[str, str]]] = refuse_git_config
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    hidden: HiddenVariables = HiddenVariables()
    recall: Recall = NothingRemoved()
    memory: ProjectMemory = NoProjectMemory()
    accepted: Accepted | None = None
    decided: ApprovalQuestion | None = None
    editor: Editor = NoEditor()
    opened: Opened = Opened()
    recorder: Recorder = NotRecorded()
    look_up_code: CodeLookup = no_code_lookup
    narrowed: Narrowed = Narrowed()
    chat_id: str = ""
    chat: CallingChat = NoChat()
    sandbox: Sandbox | None = None
    on_second_run: Callable[[str, str, str], None] = skip_audit


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: `text` for the model, `summary` for the fold (`120 lines`), and the file `change`.

    `text` is complete, whatever its length; `limit.shorten` derives the model's version. `runner` sets `duration_ms`.
    `sources`: the sources of the text; if (), they are derived from the tool and its arguments
    (`session.provenance.result_sources`). `printed`: the output of a program that may have read anything, or "" if
    there was no output, or output only from files of the workspace and the system.
    """

    text: str
    summary: str = ""
    is_error: bool = False
    change: FileChange | None = None
    duration_ms: int = 0
    sources: tuple[Source, ...] = ()
    printed: str = ""


Place = Literal["", "inside", "network", "outside", "none", "off"]


ANY_HOST = "*"
"""The entry in a list of allowed hosts that stands for the whole network."""


class ApprovalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An approval question for the user. Answering `always` grants `key`.

    For most tools, `key` is the tool's name; for a shell, the folder and the exact command; for a deletion, the path.
    File tools set the complete contents: `before` or `after` is "" for a missing file, and both are "" for a file too
    large to compare in the editor. A shell sets `command`, `folder` ("" for the root), the absolute `cwd`, the time
    limit `limit_s` and `offer`, the families of commands that "always" can cover. File tools set `becomes`: why the
    change turns the file into one that a program runs. `why` is the reason to ask regardless of grants, `again` the
    reason that a grant no longer covers the call; `approval` sets both. `narrowed` describes the text that prevents new
    grants. `place` is where a command runs, or "" for other tools: outside an existing sandbox, without one (`none`),
    or with the sandbox disabled (`off`). `note`: why the command needs the network, as a sentence; `hosts` are the
    hosts it would reach, () for any.
    """

    key: str
    title: str
    body: str
    filetype: str = "text"
    path: str = ""
    before: str = ""
    after: str = ""
    command: str = ""
    folder: str = ""
    cwd: str = ""
    limit_s: float = 0.0
    offer: Offer = Offer()
    becomes: str = ""
    why: str = ""
    again: str = ""
    narrowed: str = ""
    place: Place = ""
    note: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Return the place where a command runs and the hosts it requested, for the audit log."""
        return f"{self.place}: {', '.join(self.hosts)}" if self.hosts else self.place

    def same_change(self, other: ApprovalQuestion) -> bool:
        """Return whether both questions show the user the same change to the same file."""
        mine = (self.path, self.before, self.after, self.title, self.body)
        return mine == (other.path, other.before, other.after, other.title, other.body)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in the registry.

    `title(arguments)` starts the fold's title (`read_file lua/foo.lua 1-120`). `question(arguments, context)` returns
    the action to approve, or None if the call may run at once; it may read files, so it is called in a thread, and it
    raises `errors.ToolError` if the call is certain to fail. `run` raises `errors.ToolError` for a failure that the
    model should read. `keeps_time`: `run` ends by itself at `context.timeout_s`, so that its partial result is not
    lost. `only_when_removed`: offered to the model only after text was removed from the chat. `short`: the spec for a
    small context window; with None, a built-in tool is not offered there. `looks_at`: the editor state that the tool
    needs, either the open file at its argument `path` or all unsaved files. `why_asked(arguments, context)` returns why
    this call asks regardless of grants, or "" if it does not; it may read the disk, so it is called in a thread.
    `settings` apply unless the user configures this tool. `server`: the MCP server that runs the tool, or "".
    """

    spec: ToolSpec
    run: Callable[[dict[str, Any], ToolContext], Awaitable[ToolOutput]]
    title: Callable[[dict[str, Any]], str]
    question: Callable[[dict[str, Any], ToolContext], ApprovalQuestion | None]
    effect: Literal["read", "write", "execute"] = "read"
    keeps_time: bool = False
    only_when_removed: bool = False
    short: ToolSpec | None = None
    looks_at: Literal["", "path", "unsaved"] = ""
    why_asked: Callable[[dict[str, Any], ToolContext], str] | None = None
    settings: ToolSettings | None = None
    server: str = ""
