"""Provides the stdio transport: runs a server under a supervisor, limits lines, and separates standard error.

The SDK's own transport starts servers as direct children, which outlive a killed host, and buffers an endless line;
this one provides the same two streams without these faults. SDK: modelcontextprotocol python-sdk 2.x, class
`Transport`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from codecompanion.formats.bounded import Turns, has_too_many_values
from codecompanion.formats.byte_limits import MAX_EVENT_BYTES, MAX_MESSAGE_VALUES
from codecompanion.formats.cutting import cut
from codecompanion.mcp.server_types import McpError
from codecompanion.waiting import made_or_undone

MAX_STRAY_LINES = 1_000
"""Maximum skipped lines that are not messages; a program that prints more is not an MCP server."""
MAX_UNANSWERED = 1_000
"""Maximum pending requests of a server, which take 7 kB each; a server that does not read responses could send more."""
LEAVE_S = 1.0
"""Seconds that a server has to exit after its input was closed."""
END_S = 5.0
"""Seconds that the supervisor then has to end the server."""
_Pipe = TypeVar("_Pipe")
_CHUNK = 65_536
_MAX_STDERR_LINE = 4_000
_MAX_STDERR_BYTES = 4 * _MAX_STDERR_LINE + 4
_STRAY_SHOWN = 20
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


def find_program(command: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    """Return the path of the program to run.

    Raises:
        McpError: the program or the folder does not exist.
    """
    if cwd and not Path(cwd).is_dir():
        raise McpError(f"its working folder {cwd} does not exist")
    program = os.path.expanduser(command[0])  # noqa: PTH111 also "~user" and a bare name
    if os.sep in program and not Path(program).is_absolute():
        program = str(Path(cwd or ".") / program)
    found = shutil.which(program, path=env.get("PATH"))
    if found is None:
        where = "" if os.sep in program else " on the PATH"
        raise McpError(f"{command[0]} was not found{where}")
    return found


@contextlib.asynccontextmanager
async def stdio_streams(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    on_stderr: Callable[[str], None],
    on_fault: Callable[[str], None],
    on_end: Callable[[], None],
) -> AsyncIterator[Any]:
    """Start a server and provide the two streams that the SDK's session reads and writes.

    If the server ends the connection, `on_fault` receives a sentence with the reason; `on_end` is called after the
    last message.

    Raises:
        McpError: the program or the folder does not exist, or it cannot be started.
    """
    import anyio

    program = await asyncio.to_thread(find_program, command, env, cwd)
    lifeline, held = os.pipe()
    argv = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(lifeline), program, *command[1:]]
    try:
        process = await made_or_undone(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd or None,
                env=dict(env),
                pass_fds=(lifeline,),
                start_new_session=True,
            ),
            lambda started: _end(started, held, leave_s=0),
        )
    except (OSError, ValueError) as error:
        os.close(held)
        raise McpError(f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    finally:
        os.close(lifeline)
    incoming, read_stream = anyio.create_memory_object_stream[Any](0)
    write_stream, outgoing = anyio.create_memory_object_stream[Any](0)
    unanswered = _Unanswered()
    pipes = [
        asyncio.create_task(_read_messages(_pipe(process.stdout), incoming, unanswered, on_stderr, on_fault, on_end)),
        asyncio.create_task(_write_messages(_pipe(process.stdin), outgoing, incoming, unanswered)),
    ]
    stderr = asyncio.create_task(_read_stderr(_pipe(process.stderr), on_stderr))
    try:
        yield read_stream, write_stream
    finally:
        await asyncio.shield(asyncio.create_task(_end(process, held, [*pipes, stderr])))
        for stream in (incoming, read_stream, write_stream, outgoing):
            stream.close()


def _pipe(stream: _Pipe | None) -> _Pipe:
    if stream is None:  # requested above
        raise McpError("its input or output is not available")
    return stream


class _Unanswered:
    """Counts a server's pending requests."""

    count = 0


async def _read_messages(
    stdout: asyncio.StreamReader,
    incoming: Any,
    unanswered: _Unanswered,
    on_stray: Callable[[str], None],
    on_fault: Callable[[str], None],
    on_end: Callable[[], None],
) -> None:
    """Pass on one message per line, until the output ends or an invalid or excessive message arrives."""
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCRequest, jsonrpc_message_adapter

    stray, turns = 0, Turns()
    with contextlib.suppress(Exception):  # the session has ended
        async for line in _lines(stdout):
            if line is None:
                on_fault(f"it sent a message longer than {MAX_EVENT_BYTES // 1_000_000} MB")
                break
            if has_too_many_values(line, MAX_MESSAGE_VALUES):
                on_fault(f"it sent a message with more than {MAX_MESSAGE_VALUES:,} values")
                break
            await turns.pause()
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except (ValueError, RecursionError):
                if not line.strip():
                    continue
                stray += 1
                if stray <= _STRAY_SHOWN:
                    on_stray(f"(no message) {cut(line[:_MAX_STDERR_LINE].decode('utf-8', 'replace'), 200)}")
                elif stray == _STRAY_SHOWN + 1:
                    on_stray("(no message) more lines of this kind are not shown")
                if stray > MAX_STRAY_LINES:
                    on_fault(f"it printed {MAX_STRAY_LINES:,} lines that are not messages")
                    break
                continue
            if isinstance(message, JSONRPCRequest):
                unanswered.count += 1
                if unanswered.count > MAX_UNANSWERED:
                    on_fault(f"it sent {MAX_UNANSWERED:,} requests without reading an answer")
                    break
            await incoming.send(SessionMessage(message))
        else:
            on_fault("it ended")
    incoming.close()
    on_end()
    with contextlib.suppress(Exception):
        while await stdout.read(_CHUNK):  # a full pipe would prevent the server from exiting
            pass


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Yield the lines without line endings, or None for a line that is too long; parts of a line are joined once."""
    held = bytearray()
    while chunk := await stream.read(_CHUNK):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = bytes(held + end) if held else end
            held = bytearray()  # checked before parsing, so that it is not in memory twice
            yield line
            del line
        held += rest
        if len(held) > MAX_EVENT_BYTES:
            yield None
            return
    if held:
        yield bytes(held)


async def _write_messages(stdin: asyncio.StreamWriter, outgoing: Any, incoming: Any, unanswered: _Unanswered) -> None:
    from mcp.types import JSONRPCError, JSONRPCResponse

    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode("utf-8", "surrogatepass") + b"\n")
            await stdin.drain()
            unanswered.count -= isinstance(message.message, JSONRPCResponse | JSONRPCError)
    except Exception:  # the server stopped reading; the session will see the connection end
        incoming.close()


async def _read_stderr(stderr: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
    def say(line: bytes) -> None:
        on_line(cut(line[:_MAX_STDERR_BYTES].decode("utf-8", "replace").rstrip(), _MAX_STDERR_LINE))

    rest, turns = b"", Turns()
    while chunk := await stderr.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:_MAX_STDERR_BYTES]
        for line in lines:
            say(line)
            await turns.pause()
    if rest:
        say(rest)


async def _end(
    process: asyncio.subprocess.Process, held: int, tasks: Sequence[asyncio.Task[None]] = (), leave_s: float = LEAVE_S
) -> None:
    """Close the server's input, wait for it to exit, then end all its processes."""
    if process.stdin is not None:
        process.stdin.close()
    await _ended(process, leave_s)
    os.close(held)
    if not await _ended(process, END_S):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await _ended(process, END_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()  # a process that escaped may keep the pipes open


async def _ended(process: asyncio.subprocess.Process, limit_s: float) -> bool:
    deadline = asyncio.get_running_loop().time() + limit_s
    while process.returncode is None:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
