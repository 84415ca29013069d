"""A user's own tool in Python: a plain function, loaded once and run with the user's permissions.

A function that is not `async` runs in a separate thread, so that it does not block anything else if it never returns;
the thread cannot be ended, only abandoned. Any exception that a function raises becomes a result that the model reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from codecompanion.errors import ToolError
from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import OwnToolSettings
from codecompanion.tools.own.approval_question import question_of, title_of
from codecompanion.tools.own.loading import format_error, load_function
from codecompanion.tools.own.lua_tool import as_schema
from codecompanion.tools.own.signature import CONTEXT, CallContext, Signature, read_signature
from codecompanion.tools.tool import Tool, ToolContext, ToolOutput

MAX_LEFT_BEHIND = 8
"""Maximum number of timed-out calls of a tool that may still be running; beyond that, the tool is not called again."""
_MAX_RESULT_CHARS = 20_000_000


def python_tool(name: str, given: OwnToolSettings, failed: Callable[[str], None] = lambda sentence: None) -> Tool:
    """Load the function and return the tool. Runs the user's code: call it in a thread.

    `failed` receives a sentence with the key, file and line if a call raises an exception.

    Raises:
        ConfigError: the function cannot be loaded, or has no derivable schema; the message gives the file and line.
    """
    key = f"interactions.chat.tools.{name}"
    function = load_function(given.python, key)
    signature = read_signature(function, key)
    run = _runner(name, function, signature, lambda error: failed(f"{key}: {format_error(error)}"))
    parameters = signature.parameters if given.parameters is None else as_schema(given.parameters)
    return Tool(
        spec=ToolSpec(name, given.description or signature.description, parameters),
        run=run,
        title=title_of(name),
        question=question_of(name),
        effect="execute",
        settings=given.settings,
    )


def _runner(
    name: str, function: Callable[..., Any], signature: Signature, failed: Callable[[BaseException], None]
) -> Callable[[dict[str, Any], ToolContext], Coroutine[Any, Any, ToolOutput]]:
    left_behind: list[threading.Thread] = []

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        wanted = signature.arguments(arguments)
        if signature.wants_context:
            wanted[CONTEXT] = CallContext(context.root, Path(context.snapshot.cwd or context.root), context.chat_id)
        try:
            if inspect.iscoroutinefunction(function):
                result = await function(**wanted)
            else:
                left_behind[:] = [thread for thread in left_behind if thread.is_alive()]
                if len(left_behind) >= MAX_LEFT_BEHIND:
                    raise ToolError(
                        f"{len(left_behind)} earlier calls to {name} are still running, so it was not called."
                    )
                result = await _in_own_thread(name, lambda: function(**wanted), left_behind)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ToolError(f"{name} failed: it cancelled itself.") from None
        except ToolError:
            raise
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the user's code must not end the host
            failed(error)
            raise ToolError(f"{name} failed: {format_error(error)}.") from error
        if isinstance(result, _Raised):
            failed(result.error)
            raise ToolError(f"{name} failed: {format_error(result.error)}.") from result.error
        return ToolOutput(text=text_of(name, result))

    return run


async def _in_own_thread(name: str, work: Callable[[], Any], left_behind: list[threading.Thread]) -> Any:
    """Run `work` in a new thread; return its result or exception. Add an abandoned thread to `left_behind`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            # As a value: neither a future nor a coroutine takes StopIteration, and SystemExit would end the loop.
            done.set_result(_Raised(error))

    def body() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the host has exited
            loop.call_soon_threadsafe(settle, result, error)

    thread = threading.Thread(target=body, name=f"tool {name}", daemon=True)
    thread.start()
    try:
        return await done
    finally:
        if not done.done() or done.cancelled():
            left_behind.append(thread)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def text_of(name: str, result: Any) -> str:
    """Convert a result for the model; text is unchanged, everything else becomes JSON.

    Raises:
        ToolError: the result is too long, or is neither text nor convertible to JSON.
    """
    if result is None:
        return ""
    if isinstance(result, bytes):
        text = result.decode("utf-8", "replace")
    elif isinstance(result, str):
        text = result.encode("utf-8", "replace").decode()
    else:
        from pydantic_core import PydanticSerializationError, to_json

        try:
            text = to_json(result, fallback=str).decode("utf-8", "replace")
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise ToolError(
                f"{name} returned a {type(result).__name__} that is neither text nor JSON: {error}."
            ) from error
    if len(text) > _MAX_RESULT_CHARS:
        many = f"{len(text):,} characters; the limit is {_MAX_RESULT_CHARS:,}"
        raise ToolError(f"The result of {name} has {many}.")
    return text
