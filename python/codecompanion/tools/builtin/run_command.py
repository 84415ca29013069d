"""`run_command`: runs a shell command in the workspace and returns its output and exit code.

The command gets no secrets from the environment and no terminal. Only the first and last million bytes of its output
are kept, so that memory is bounded; processes that it leaves running are ended with it.

It runs in the sandbox if there is one (`tools/sandbox/`). The model may request network access there, or a run outside
it. If a command fails because of the sandbox, it may run again with more rights if the user agrees.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

import codecompanion
from codecompanion.errors import ToolError
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, split_lines
from codecompanion.model.messages import Source
from codecompanion.tools.builtin.command_approval import (
    OUTSIDE,
    command_of,
    decided,
    describe,
    folder_of,
    limit_of,
    sandbox_of,
)
from codecompanion.tools.builtin.command_approval import question_about as question_about
from codecompanion.tools.builtin.command_approval import title_of as title_of
from codecompanion.tools.commands.command_environment import clean_environment
from codecompanion.tools.commands.network import (
    network_program,
    only_installs,
    read_paths,
    with_companions,
)
from codecompanion.tools.process import Ended, run_program
from codecompanion.tools.sandbox.confined import Confined, Pipes
from codecompanion.tools.sandbox.host_proxy import HostProxy
from codecompanion.tools.sandbox.sandbox_failure import is_refused_quietly, refused_paths, trouble_of, unresolved_hosts
from codecompanion.tools.tool import ANY_HOST, Place, ToolContext, ToolOutput

KEPT_BYTES = 1_000_000
"""Number of bytes kept from the beginning of a command's output, and from its end."""

_OWN_SOURCE = Path(codecompanion.__file__).resolve().parent.parent
_ESCAPES = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")

_NOTHING_FETCHED = regex(
    r"(?m)^(?:"
    r"curl: \(6\) Could not resolve host: [\w.-]{1,253}"
    r"|curl: \(7\) Failed to connect to [\w.:-]{1,253} port \d{1,5}[^\n:]{0,60}:"
    r" (?:Connection refused|(?:Could not|Couldn't) connect to server)"
    r"|wget: unable to resolve host address [‘'][\w.-]{1,253}[’']"
    r"|ssh: Could not resolve hostname [\w.-]{1,253}: [A-Z][a-z ]{1,60}"
    r"|fatal: unable to access '[^'\s]{1,300}': Could not resolve host: [\w.-]{1,253}"
    r"|(?:/bin/)?(?:ba|da)?sh: (?:line )?(?:\d{1,5}: )?[\w./-]{1,60}: (?:command )?not found"
    r"| *% Total +% Received[^\n]{0,80}| *Dload +Upload[^\n]{0,60}|[\d.:kMG -]{1,100}"
    r")$"
)
"""Matches error messages of programs that could not reach the network, and no other text."""


class KeptOutput:
    """The beginning and end of a byte stream, kept in bounded memory."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._limit = kept_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Add the next chunk."""
        self.total_bytes += len(chunk)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_bytes += len(chunk)
            while self._tail_bytes - len(self._tail[0]) >= self._limit:
                self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        """Return the kept output, with a note in place of the omitted part."""
        tail = b"".join(self._tail)[-self._limit :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        if not left_out:
            return _readable(bytes(self._head) + tail)
        # Whole lines if possible: neither end should begin or stop within a character.
        head = self._head[: self._head.rfind(b"\n") + 1 or len(self._head)]
        tail = tail[tail.find(b"\n") + 1 :]
        left_out = self.total_bytes - len(head) - len(tail)
        note = f"[… {left_out:,} of {self.total_bytes:,} bytes of output were not kept …]"
        return f"{_readable(head)}\n{note}\n{_readable(tail)}"


def _readable(output: bytes | bytearray) -> str:
    """Remove colours and other terminal codes from the output; of a line that was redrawn, keep the last state."""
    text = _ESCAPES.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return printable(text)


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    cwd = folder_of(arguments, context)
    place, allowed = await asyncio.to_thread(decided, arguments, context)
    refusal = context.sandbox.refuses if context.sandbox is not None else ""
    if refusal and place == "none":
        raise ToolError(refusal)
    # Checked before it runs, because the command may change the files that its arguments name.
    is_reader = place != "inside" and await asyncio.to_thread(_reads_workspace, arguments, context)
    ended, text, proxy = await _run_at(place, arguments, context, cwd, allowed)
    if not ended.has_begun:  # a socket to hide was removed in the meantime
        ended, text, proxy = await _run_at(place, arguments, context, cwd, allowed)
    output = _output(ended, text, limit_of(arguments, context), _said(place, context))
    if place == "inside":
        read = await asyncio.to_thread(_outside_files, command_of(arguments), cwd, context.root)
        output = msgspec.structs.replace(output, sources=read)
    elif not is_reader and not (ended.code == 0 and proxy and only_installs(command_of(arguments))):
        output = msgspec.structs.replace(output, printed=without_download_errors(text))
    output, refused = _with_refused(output, proxy), proxy.refused if proxy else ()
    if place not in ("inside", "network") or ended.code is None:
        return output
    if ended.code == 0:
        return _with_hint(output, text) if place == "inside" else output
    wanted = with_companions((*allowed, *refused)) if refused else ()
    if place == "inside" and sandbox_of(context).limits_hosts:
        wanted = with_companions(unresolved_hosts(text))
    is_limited = bool(proxy) and not (proxy and proxy.unreachable)  # more hosts would not help then
    return await _perhaps_again(place, output, text, arguments, context, cwd, is_limited=is_limited, hosts=wanted)


async def _run_at(
    place: Place, arguments: dict[str, Any], context: ToolContext, cwd: Path, hosts: tuple[str, ...] = ()
) -> tuple[Ended, str, HostProxy | None]:
    """Run the command; return how it ended, its output and its proxy.

    `hosts` are the hosts that the command may reach; () means any.
    """
    kept, argv = KeptOutput(), ["/bin/sh", "-c", command_of(arguments)]
    granted = frozenset[str]() if context.narrowed.because else context.chat.granted_hosts()
    is_limited = place == "network" and bool(hosts) and ANY_HOST not in granted
    proxy = HostProxy({*hosts, *granted}) if is_limited else None
    environment = clean_environment(context.environment, _OWN_SOURCE, context.hidden)
    if proxy:
        environment |= dict.fromkeys(("NO_PROXY", "no_proxy"), proxy.not_proxied)

    def confine(pipes: Pipes) -> Confined:
        network = place == "network" and not is_limited
        return sandbox_of(context).confine(argv, context.root, cwd, environment, pipes, network=network)

    try:
        ended = await run_program(
            argv,
            cwd=cwd,
            env=environment,
            on_output=kept.add,
            limit_s=limit_of(arguments, context),
            confine=confine if place in ("inside", "network") else None,
            proxy=proxy,
        )
    finally:
        await context.editor.reload()  # for all its changes, even if it was stopped
    return ended, await asyncio.to_thread(kept.text), proxy


async def _perhaps_again(
    place: Place,
    output: ToolOutput,
    text: str,
    arguments: dict[str, Any],
    context: ToolContext,
    cwd: Path,
    *,
    is_limited: bool,
    hosts: tuple[str, ...],
) -> ToolOutput:
    """Return the result or, if the user agrees, the result of a second run with the network or outside the sandbox.

    `is_limited`: the command could reach only some hosts and may need others. `hosts`: the hosts that it may need (()
    means any).
    """
    trouble, words = trouble_of(text)
    if hosts:
        trouble, words = "network", ""  # the question names them
    elif trouble == "outside" and await asyncio.to_thread(_is_forbidden_outside, refused_paths(text, words)):
        trouble = ""
    if not trouble or (trouble == "network" and place == "network" and not is_limited):
        return output
    wanted: Place = "network" if trouble == "network" else "outside"
    grant = None
    if trouble != "unsure":
        reads = wanted == "outside" and await asyncio.to_thread(sandbox_of(context).only_reads, context.root)
        note = _READ_ONLY if reads else f"The command reported: {words}" if words else ""
        note = _NAMED_BY_OUTPUT if hosts and place == "inside" else note
        about = await asyncio.to_thread(describe, arguments, context)
        question = msgspec.structs.replace(
            about, place=wanted, why=OUTSIDE if wanted == "outside" else "", note=note,
            narrowed=context.narrowed.because, hosts=hosts if wanted == "network" else (),
        )  # fmt: skip
        grant = await context.chat.ask_to_repeat(question)
    if grant:
        context.on_second_run(output.summary, question.where, grant)
        ended, text, proxy = await _run_at(wanted, arguments, context, cwd, question.hosts)
        again = _with_refused(_output(ended, text, limit_of(arguments, context), _said(wanted, context)), proxy)
        where = "with the network" if wanted == "network" else "outside the sandbox"
        told = f"[it failed in the sandbox; this is the output of a second run {where}]\n{again.text}"
        ignores_proxy = proxy is not None and not (proxy.refused or proxy.unreachable or ended.code in (0, None))
        if ignores_proxy and trouble_of(text)[0] == "network":
            told = f"{told}\n[{_IGNORES_PROXY}]"
        return msgspec.structs.replace(again, text=told, printed=without_download_errors(text))
    note = _DECLINED if grant == "" else _REFUSED.format(", ".join(hosts)) if hosts else _HINTS[trouble]
    return msgspec.structs.replace(output, text=f"{output.text}\n[{note}]")


def _is_forbidden_outside(paths: tuple[str, ...]) -> bool:
    """Return whether the user can write to none of the paths, so a second run would fail too (`make install`)."""
    existing = [next(one for one in (Path(path), *Path(path).parents) if one.exists()) for path in paths]
    return bool(existing) and not any(os.access(one, os.W_OK) for one in existing)


_READ_ONLY = (
    "Commands cannot write in a workspace that contains your home folder, your keys or the plugin's own folders:"
    " open Neovim in a project"
)
_NAMED_BY_OUTPUT = "The hosts are taken from the command's output"
_REFUSED = 'If that is why it failed, call again with needs="network" and these hosts: {}.'
_IGNORES_PROXY = (
    "It did not use HTTPS_PROXY, the only way to these hosts. If it cannot, call again with"
    ' needs="network" and no hosts.'
)
_DECLINED = "It ran in the sandbox, which may be why it failed. The user declined to run it again with more rights."
_HINTS = {
    "network": "It ran in the sandbox, which has no network. If that is why it failed, call again with"
    ' needs="network".',
    "outside": "It ran in the sandbox, which can write only in the workspace and /tmp and has no keys. If that is why"
    ' it failed, call again with needs="outside" and a reason.',
    "unsure": 'It ran in the sandbox. If that is why it failed, call again with needs="outside" and a reason.',
}


def _with_refused(output: ToolOutput, proxy: HostProxy | None) -> ToolOutput:
    if proxy is None or not (proxy.refused or proxy.unreachable):
        return output
    said = f"the sandbox refused to connect to {', '.join(proxy.refused)}" if proxy.refused else (
        f"no connection to {', '.join(proxy.unreachable)}, which the sandbox allows"
    )  # fmt: skip
    return msgspec.structs.replace(output, text=f"{output.text}\n[{said}]")


def _with_hint(output: ToolOutput, text: str) -> ToolOutput:
    """Add a hint to the result of a successful command if the sandbox blocked part of it (`curl x | head`)."""
    trouble = "network" if unresolved_hosts(text) else "outside" if is_refused_quietly(text) else ""
    return msgspec.structs.replace(output, text=f"{output.text}\n[{_HINTS[trouble]}]") if trouble else output


def _said(place: Place, context: ToolContext) -> str:
    """Return a note for the command's result line saying where the user allowed the command to run."""
    if place == "network" and context.sandbox is not None and context.sandbox.settings.network:
        return ""
    return f" · {place}" if place in ("network", "outside") else ""


def _output(ended: Ended, text: str, limit_s: float, place: str) -> ToolOutput:
    if ended.code is None:
        status, summary = (
            f"stopped after the time limit of {counted(limit_s, 'second')}",
            f"stopped after {limit_s:g} s",
        )
    elif ended.code < 0:
        status = summary = f"ended by signal {-ended.code}"
    else:
        status, summary = f"exit code {ended.code}", f"exit {ended.code}"
    lines = len(split_lines(text))
    notes = "\n[processes left running in the background were ended]" if ended.left_running else ""
    if ended.excess:
        notes += f"\n[stopped: it exceeded the sandbox's limit of {ended.excess}]"
    body = text.rstrip("\n") if text.strip() else "[no output]"
    return ToolOutput(
        text=f"{status}\n{body}{notes}",
        summary=f"{summary}{place} · {counted(lines, 'line')}",
        is_error=ended.code != 0,
    )


def _reads_workspace(arguments: dict[str, Any], context: ToolContext) -> bool:
    """Return whether a command line is known to print only workspace files and its programs' own output."""
    return bool(describe(arguments, context).offer.families) and not network_program(command_of(arguments))


_OF_THE_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/nix", "/dev", "/proc", "/sys", "/run")
_MAX_NAMED = 20


def _outside_files(command: str, cwd: Path, root: Path) -> tuple[Source, ...]:
    """Return the files outside the workspace that a command line prints; the sandbox does not prevent reading them."""
    found = dict[Source, None]()
    for word in read_paths(command)[:_MAX_NAMED]:
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            real = (cwd / Path(word).expanduser()).resolve()
            of_system = any(real.is_relative_to(folder) for folder in _OF_THE_SYSTEM)
            if real.is_file() and not of_system and not real.is_relative_to(root.resolve()):
                found[Source("outside", str(real))] = None
    return tuple(found)


def without_download_errors(text: str) -> str:
    """Remove messages about failed downloads from a command's output."""
    return _NOTHING_FETCHED.sub("", text).strip()
