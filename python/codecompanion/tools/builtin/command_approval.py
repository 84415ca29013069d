"""Creates the question about a shell command: where it runs, which hosts it may reach, and its displayed text.

`run_command` runs it as decided here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import ToolError
from codecompanion.tools.builtin.wording import one_line, shown_path, why_secret_on_disk
from codecompanion.tools.commands.grant_offer import Workspace, offer_for
from codecompanion.tools.commands.network import Surroundings, hidden_needs, hosts_of, needs_network
from codecompanion.tools.commands.offer import exact_key
from codecompanion.tools.sandbox.host_proxy import HOST
from codecompanion.tools.sandbox.sandbox import Sandbox
from codecompanion.tools.tool import ApprovalQuestion, Place, ToolContext

MAX_HOSTS = 12
"""Maximum number of hosts for a command; more would not fit into the approval window."""

TITLE_CHARS = 1_000
"""Maximum length of a command in the heading of its approval; the editor truncates it after masking characters."""
REASON_CHARS = 160
OUTSIDE = "it would run outside the sandbox"


def sandbox_of(context: ToolContext) -> Sandbox:
    """Return the sandbox; raises `ToolError` if there is none."""
    if context.sandbox is None:
        raise ToolError("There is no sandbox.")
    return context.sandbox


def folder_of(arguments: dict[str, Any], context: ToolContext) -> Path:
    """Return the folder the command runs in; raises `ToolError` if it does not exist."""
    folder = context.resolve(arguments.get("cwd") or ".")
    if not folder.is_dir():
        raise ToolError(f"There is no folder {shown_path(folder, context)} to run the command in.")
    return folder


def limit_of(arguments: dict[str, Any], context: ToolContext) -> float:
    """Return the command's time limit in seconds."""
    return min(float(arguments.get("timeout_s", context.timeout_s)), context.timeout_s)


def command_of(arguments: dict[str, Any]) -> str:
    """Return the command that is shown and run, without trailing line breaks."""
    command: str = arguments["command"]
    return command.rstrip("\n")


def title_of(arguments: dict[str, Any]) -> str:
    """Return the one-line title of the call."""
    return f"run_command {one_line(arguments['command'])}"


def _first_line(text: str, limit: int) -> str:
    """Return the first line, cut without an ellipsis, which would be masked as part of the command."""
    return text.strip().partition("\n")[0].rstrip()[:limit]


def place_of(arguments: dict[str, Any], context: ToolContext) -> Place:
    """Return where the command is to run. Call it in a thread: the first call tests the sandboxes."""
    sandbox = context.sandbox
    if sandbox is None or sandbox.settings.mode == "off":
        return "" if sandbox is None else "off"
    if not sandbox.kind:
        return "none"
    if arguments.get("needs") == "outside":
        return "outside"
    if _hidden_need(arguments, context):
        return "outside"
    if sandbox.settings.network:
        return "network"
    asks = arguments.get("needs") == "network" or bool(arguments.get("hosts"))
    return "network" if asks or needs_network(command_of(arguments), _around(arguments, context)) else "inside"


def _hidden_need(arguments: dict[str, Any], context: ToolContext) -> str:
    """Return a clause that names a program in the command and the hidden path it needs, or "" if there is none."""
    needs = hidden_needs(command_of(arguments), _around(arguments, context))
    found = (f"{name} needs {place}" for name, place in needs if sandbox_of(context).hides(context.root, place))
    return next(found, "")


def decided(arguments: dict[str, Any], context: ToolContext) -> tuple[Place, tuple[str, ...]]:
    """Return where the command runs, and the hosts it may reach (() means any).

    An earlier decision is reused, because the repository's remotes may have changed since the user was asked.
    """
    if context.decided is not None:
        return context.decided.place, context.decided.hosts
    place = place_of(arguments, context)
    return place, _hosts(arguments, context) if place == "network" else ()


def _hosts(arguments: dict[str, Any], context: ToolContext) -> tuple[str, ...]:
    """Return the hosts that a command may reach over the network (() means any). Blocks: reads the git remotes.

    Raises:
        ToolError: the model names something that is not a host, or the command needs too many.
    """
    if not sandbox_of(context).limits_hosts:
        return ()
    command, given = command_of(arguments), tuple(str(host).lower() for host in arguments.get("hosts") or ())
    for host in given:
        if not HOST.fullmatch(host):
            raise ToolError(f"{host[:80]!r} in hosts is not a host; expected a name such as pypi.org.")
    around = _around(arguments, context)
    needs = needs_network(command, around)
    known = hosts_of(command, context.environment, around) if needs else ()
    if needs and not known and not given:
        return ()
    found = tuple(dict.fromkeys((*known, *given)))
    if len(found) > MAX_HOSTS:
        raise ToolError(f"The command needs {len(found):,} hosts; the limit is {MAX_HOSTS}. Run it in parts.")
    return found


def _around(arguments: dict[str, Any], context: ToolContext) -> Surroundings:
    cwd, root = folder_of(arguments, context).resolve(), context.root.resolve()
    above = [folder for folder in cwd.parents if folder.is_relative_to(root)]
    return Surroundings(tuple(_remotes(context)), (cwd, *above))


def _remotes(context: ToolContext) -> list[tuple[str, str]]:
    """Return the repository's remotes; if they cannot be read, return a single remote without a readable host."""
    try:
        entries = context.read_git_config(context.root / ".git" / "config")
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return [("", "unknown://")]
    return [
        (key.removeprefix("remote.").removesuffix("url").removesuffix("push").rstrip("."), value)
        for key, value in entries
        if key.startswith("remote.") and key.endswith("url")
    ]


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question to ask before the command runs. Blocks; raises `ToolError` if it may not run at all."""
    place = place_of(arguments, context)
    if place == "none" and context.sandbox is not None and context.sandbox.refuses:
        raise ToolError(context.sandbox.refuses)
    why = note = ""
    reason = _first_line(arguments.get("reason") or "", REASON_CHARS)
    if place == "outside":
        need = _hidden_need(arguments, context)
        why = f"{OUTSIDE}: {need}" if need else OUTSIDE
        why = f"{why}. The model says: {reason}" if reason else why
    hosts = _hosts(arguments, context) if place == "network" else ()
    if place == "network" and reason:
        note = f"The model says: {reason}"
    return msgspec.structs.replace(describe(arguments, context), place=place, why=why, note=note, hosts=hosts)


def describe(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion:
    """Return the question about the command, without its place and hosts. Blocks."""
    command, real = command_of(arguments), folder_of(arguments, context).resolve()
    workspace = Workspace(
        context.root.resolve(),
        context.is_secret,
        context.walk,
        context.environment,
        context.read_git_config,
        lambda path: why_secret_on_disk(path, context) != "",
    )
    offer = offer_for(command, real, workspace)
    folder = shown_path(real, context)
    folder = "" if folder == "." else folder
    head = _first_line(command, TITLE_CHARS)
    return ApprovalQuestion(
        key=exact_key(folder, command, offer.digest),
        title=f"{head} (in {folder})" if folder else head,
        body=command,
        filetype="sh",
        command=command,
        folder=folder,
        cwd=str(real),
        limit_s=limit_of(arguments, context),
        offer=offer,
    )
