"""The servers that a project brings along (`.mcp.json`), and those of Claude Desktop: used once the user agrees.

Asked by a block in the chat with every command line and address. An answer is about a folder, a file and its content,
and counts for all chats in the folder: "this time" until this Neovim ends, "always" and "no" in every Neovim until the
file changes. Without an answer none of its servers runs: one that ran for what the file said before has ended. All of
it is looked up before each request, so that a "no" of another chat, or of another Neovim, ends servers here, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import InputError, StoreError
from codecompanion.formats.plural import counted
from codecompanion.session.chat import Chat
from codecompanion.session.mcp.entries import Entry
from codecompanion.session.mcp.project_file import ServerFile, server_files
from codecompanion.session.mcp.servers import McpServers
from codecompanion.session.permits import Answered, Permits, read_permits
from codecompanion.session.services import Services
from codecompanion.store.store import durable
from codecompanion.wire.events import ApprovalRequested, McpAnswered, Severity
from codecompanion.wire.requests import Approve, McpAnswer


class _Question(msgspec.Struct, frozen=True):
    """A block that stands in a chat."""

    chat: Chat
    call_id: str
    root: Path
    file: ServerFile


class FileServers:
    """What the user said of these files, and the servers that follow from it.

    `chats` are the open ones by id, `answers` what was said of files to hosts of this Neovim before this one.
    """

    def __init__(
        self,
        servers: McpServers,
        services: Services,
        chats: Callable[[], Mapping[str, Chat]],
        answers: Iterable[McpAnswer] = (),
    ) -> None:
        self._servers, self._services, self._chats = servers, services, chats
        self._this_time = {(Path(one.root), one.path): (one.sha256, one.allowed) for one in answers}
        """(folder, file) → content, and what was answered for it until Neovim ends."""
        self._questions: list[_Question] = []
        self._files: dict[Path, list[tuple[ServerFile, Answered]]] = {}
        self._told: set[str] = set()
        self._lock = asyncio.Lock()

    async def look(self, chat: Chat) -> None:
        """Read the files of a chat's folder again; use what was agreed to, end what was not, ask about the rest."""
        async with self._lock:
            await self._look(chat, chat.root())

    async def _look(self, chat: Chat, root: Path) -> bool:
        """Do it; return whether servers have ended, which was said."""
        files = await asyncio.to_thread(server_files, self._services.settings.mcp, root)
        if not files and root not in self._files:
            return False
        permits = await asyncio.to_thread(self._permits, root)
        found = [(file, self._answered(root, file, permits)) for file in files]
        self._files[root] = found
        used: dict[str, Entry] = {}
        for file, answered in found:
            if file.problem and file.problem not in self._told:
                self._told.add(file.problem)
                chat.notice(Severity.WARN, file.problem)
            if answered == "allowed":
                for entry in file.entries:
                    used.setdefault(entry.name, entry)
        ended = self._servers.use_of_files(root, used.values())
        self._say_what_ended(root, ended, found)
        asking = {file.path: file for file, answered in found if answered == "unasked" and file.usable}
        self._close(root, lambda question: asking.get(question.file.path) != question.file)
        for file in asking.values():
            self._ask(chat, root, file)
        return bool(ended)

    def _answered(self, root: Path, file: ServerFile, permits: Permits) -> Answered:
        kept = permits.state_of(str(file.path), file.sha256)
        content, allowed = self._this_time.get((root, str(file.path)), ("", False))
        if kept == "refused" or content != file.sha256:
            return kept
        return "allowed" if allowed else "refused"

    def _say_what_ended(self, root: Path, ended: list[Entry], found: list[tuple[ServerFile, Answered]]) -> None:
        """Tell every chat in the folder that tools are gone, and why."""
        answers = {str(file.path): answered for file, answered in found}
        for source in dict.fromkeys(entry.source for entry in ended):
            names = ", ".join(entry.name for entry in ended if entry.source == source)
            why = {"refused": "you said no", "unasked": "the file has changed and you have not agreed to it yet"}.get(
                answers.get(source, ""), "the file does not name them any more"
            )
            self._tell(root, f"MCP servers of {Path(source).name} that are not used any more: {names} ({why}).")

    def _tell(self, root: Path, sentence: str) -> None:
        for chat in self._chats().values():
            if chat.root() == root and not chat.control.purpose:
                chat.notice(Severity.INFO, sentence)

    # ---- asking

    def _ask(self, chat: Chat, root: Path, file: ServerFile) -> None:
        if any(one.chat is chat and one.file.path == file.path for one in self._questions):
            return
        question = _Question(chat, f"mcp-{chat.services.new_token()}", root, file)
        self._questions.append(question)

        async def take(given: Approve) -> None:
            self._questions.remove(question)
            if given.decision != "cancel":  # which closes the block alone
                await self._take(question, given)

        chat.desk.offer(
            ApprovalRequested(
                chat=chat.chat_id,
                call_id=question.call_id,
                name="mcp",
                title=f"let {file.path.name} start {counted(len(file.usable), 'MCP server')}?",
                body=self._servers.hide("\n".join(entry.line() for entry in file.usable)),
                kind="mcp",
            ),
            take,
        )

    async def _take(self, question: _Question, given: Approve) -> None:
        root, file = question.root, question.file
        async with self._lock:
            await self._keep(root, file, given)
            same = [one for one in self._questions if one.root == root and one.file == file]
            self._close(root, lambda one: one in same, given)
            was_said = await self._look(question.chat, root)
        names = ", ".join(entry.name for entry in file.usable)
        text = f"Not used: the MCP servers of {file.path.name} ({names}). It is asked again when the file changes."
        if given.decision == "reject" and was_said:
            return
        if given.decision != "reject":
            text = f"MCP servers that start with the next message: {names}."
            if not await asyncio.to_thread(self._servers.have_packages):
                text = f"MCP servers that start once the packages for them are installed: {names}."
        for chat in dict.fromkeys((question.chat, *(one.chat for one in same))):
            chat.notice(Severity.INFO, text)

    async def _keep(self, root: Path, file: ServerFile, given: Approve) -> None:
        allowed = given.decision != "reject"
        if given.decision == "once":
            self._remember(root, file, allowed=True)
            return
        self._forget(root, str(file.path))
        permits = (await asyncio.to_thread(self._permits, root)).with_answer(
            [(str(file.path), file.sha256)], allowed=allowed
        )
        try:
            await self._save(root, permits)
        except StoreError:  # the store says so itself; the answer counts until Neovim ends
            self._remember(root, file, allowed=allowed)

    def _remember(self, root: Path, file: ServerFile, *, allowed: bool) -> None:
        path = str(file.path)
        self._this_time[root, path] = (file.sha256, allowed)
        self._services.emit(McpAnswered(root=str(root), path=path, sha256=file.sha256, allowed=allowed))

    def _forget(self, root: Path, path: str) -> None:
        if self._this_time.pop((root, path), None):
            self._services.emit(McpAnswered(root=str(root), path=path))

    def _close(self, root: Path, which: Callable[[_Question], bool], given: Approve | None = None) -> None:
        """Take questions of a folder away, and forget those whose chat was closed."""
        open_chats = self._chats().values()
        for question in [one for one in self._questions if one.root == root and which(one)]:
            self._questions.remove(question)
            with contextlib.suppress(KeyError):  # answered just now
                question.chat.desk.withdraw(question.call_id, given.decision if given else "cancel")
        self._questions = [one for one in self._questions if one.chat in open_chats]

    # ---- the page

    async def files(self, root: Path) -> list[dict[str, Any]]:
        """Return what the page says of the files of a folder: as a chat last saw them, else as they are now."""
        rows = []
        for file, answered in await self._seen(root):
            once = self._this_time.get((root, str(file.path)), ("", False)) == (file.sha256, True)
            state = "this time" if answered == "allowed" and once else answered
            names = [entry.name for entry in file.usable]
            asked = any(one.root == root and one.file.path == file.path for one in self._questions)
            row = {"path": str(file.path), "answer": state, "servers": names, "problem": file.problem, "asked": asked}
            rows.append(row)
        return rows

    async def _seen(self, root: Path) -> list[tuple[ServerFile, Answered]]:
        if root in self._files:
            return self._files[root]
        files = await asyncio.to_thread(server_files, self._services.settings.mcp, root)
        permits = await asyncio.to_thread(self._permits, root) if files else Permits()
        return [(file, self._answered(root, file, permits)) for file in files]

    async def ask_again(self, path: str, root: Path, chat: Chat | None) -> None:
        """Forget what was answered about a file: its servers end, and it is asked in the chat, or in the next one.

        Raises:
            InputError: there is no such file in the folder.
        """
        async with self._lock:
            if not any(str(file.path) == path for file, _ in await self._seen(root)):
                raise InputError(f"This folder brings no file of MCP servers named {path[:200]}.")
            self._forget(root, path)
            permits = (await asyncio.to_thread(self._permits, root)).without([path])
            await self._save(root, permits)
            asked = chat or next((one for one in self._chats().values() if one.root() == root), None)
            if asked is not None:
                await self._look(asked, root)

    # ---- the store

    def _permits(self, root: Path) -> Permits:
        return read_permits(self._services.store.load_permits(_key(root)))

    async def _save(self, root: Path, permits: Permits) -> None:
        await durable(self._services.store.save_permits(_key(root), permits.as_text()))


def _key(root: Path) -> str:
    return f"mcp:{root.resolve()}"
