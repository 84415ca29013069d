"""Runs one tool call so that it cannot harm the session.

Any exception that a tool raises becomes a one-sentence error result, and a time limit ends the tool. Cancelling the
awaiting task ends the tool (tools kill their process groups) and then raises `CancelledError` as usual.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import CodeCompanionError, ToolError
from codecompanion.formats.plural import counted
from codecompanion.tools.approval import Approvals
from codecompanion.tools.limit import STORED_PREFIX
from codecompanion.tools.narrowing import is_narrowed_away
from codecompanion.tools.tool import ApprovalQuestion, Tool, ToolContext, ToolOutput

_log = logging.getLogger(__name__)


class ResolveOnce:
    """Resolves each path only once, so that the approved file is the one changed even if a link replaces a folder."""

    def __init__(self, resolve: Callable[[str], Path]) -> None:
        self._resolve = resolve
        self._known: dict[str, Path] = {}

    def __call__(self, path: str) -> Path:
        """Return the real path, as resolved the first time."""
        if path not in self._known:
            self._known[path] = self._resolve(path)
        return self._known[path]

    def forget(self) -> None:
        """Forget resolved paths, because the user is asked again."""
        self._known.clear()


async def run_call(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run the tool with checked arguments (`tool_registry.validate`) and return its whole result, errors included.

    Raises:
        asyncio.CancelledError: the awaiting task was cancelled; the tool has ended.
    """
    started = time.monotonic()
    try:
        limit_s = None if tool.keeps_time else context.timeout_s
        async with asyncio.timeout(limit_s):
            context = await look(tool, arguments, context)
            output = _with_silence(await tool.run(arguments, context), context)
    except TimeoutError:
        output = failed(
            f"{tool.spec.name} did not finish within {counted(context.timeout_s, 'second')} and was stopped."
        )
    except (ToolError, CodeCompanionError) as error:
        output = failed(str(error))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # Rust panics and SystemExit do not derive from `Exception`
        output = _unexpected(tool, error)
    return msgspec.structs.replace(output, duration_ms=round((time.monotonic() - started) * 1000))


class Decided(msgspec.Struct, frozen=True):
    """The decision about a call: the question to ask, or None with the `grant` that lets the call run.

    `about` is the call's question even if the user is not asked, or None if there is no question.
    """

    question: ApprovalQuestion | None = None
    grant: str = "asked"
    about: ApprovalQuestion | None = None

    @property
    def where(self) -> str:
        """Return where a command runs (`ApprovalQuestion.where`), or "" for other tools."""
        return self.about.where if self.about is not None else ""


async def decided(tool: Tool, arguments: dict[str, Any], context: ToolContext, approvals: Approvals) -> Decided:
    """Return the question, or the grant that lets the call run without one. `context.narrowed` adds questions.

    Raises: ToolError: the call is certain to fail (no such file, path outside, text not found), so there is no
    question; the error is the call's result.
    """
    narrowed = context.narrowed
    if tool.why_asked is not None and (why := await asyncio.to_thread(tool.why_asked, arguments, context)):
        told = narrowed.because
        title = tool.title(arguments)
        return Decided(ApprovalQuestion(key=tool.spec.name, title=title, body="", why=why, narrowed=told))
    if not approvals.may_ask(tool) and not (narrowed.because and tool.effect != "read"):
        question = await question_now(tool, arguments, context, approvals) if tool.effect == "execute" else None
        return Decided(grant=approvals.granted_by(tool, question), about=question)
    question = await question_now(tool, arguments, context, approvals)
    if not approvals.needs_question(tool, question) and not is_narrowed_away(
        narrowed,
        tool,
        question,
        str(arguments.get("path", "")),
        str(context.root),
        granted=approvals.covers(tool, question),
    ):
        return Decided(grant=approvals.granted_by(tool, question), about=question)
    question = question or ApprovalQuestion(key=tool.spec.name, title=tool.title(arguments), body="")
    question = msgspec.structs.replace(question, narrowed=narrowed.because)
    return Decided(question, about=question)


async def question_now(
    tool: Tool, arguments: dict[str, Any], context: ToolContext, approvals: Approvals
) -> ApprovalQuestion | None:
    """Return the tool's question for the current state, including why it asks regardless of grants.

    Raises:
        ToolError: the call can only fail; the message gives the reason.
    """
    try:
        seen = await look(tool, arguments, context)
        question = await asyncio.to_thread(tool.question, arguments, seen)
        if question is None:
            return None
        given_path = str(arguments.get("path", ""))
        return await asyncio.to_thread(approvals.with_reason, question, given_path, str(context.root))
    except CodeCompanionError as error:
        raise ToolError(str(error)) from error
    except Exception as error:
        raise ToolError(_unexpected(tool, error).text) from error


async def look(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolContext:
    """Return the context with the current editor state that the tool needs."""
    if tool.looks_at == "unsaved":
        return msgspec.structs.replace(context, opened=await context.editor.look(None))
    if tool.looks_at == "path" and not arguments["path"].startswith(STORED_PREFIX):
        try:
            path = await asyncio.to_thread(context.resolve, arguments["path"])
        except CodeCompanionError:  # the tool itself reports this
            return context
        return msgspec.structs.replace(context, opened=await context.editor.look([path]))
    return context


def _with_silence(output: ToolOutput, context: ToolContext) -> ToolOutput:
    if not context.opened.silent:
        return output
    note = "[The editor did not answer. This shows the files on disk; unsaved changes are unknown.]"
    return msgspec.structs.replace(output, text=f"{output.text}\n{note}")


def failed(text: str) -> ToolOutput:
    """Return an error result."""
    return ToolOutput(text=text, summary="failed", is_error=True)


def _unexpected(tool: Tool, error: BaseException) -> ToolOutput:
    _log.error("tool %s failed unexpectedly", tool.spec.name, exc_info=error)
    sentence = " ".join(str(error).split())[:300]
    return failed(f"{tool.spec.name} failed unexpectedly: {type(error).__name__}{': ' if sentence else ''}{sentence}.")
