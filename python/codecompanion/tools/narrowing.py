"""Narrows the grants of a chat while its context contains text from unknown authors. Pure.

Such text comes from a web page, an MCP server, a program that uses the network, or a file in an untrusted folder
(`model.provenance`). While it is in the context:

- A command that reaches the network asks, regardless of grants. A sandbox that blocks the network is more reliable than
  the words of a command line: without one, YOLO and `require_approval_before = false` cover no command, and an "always"
  or a prefix covers none once the chat has changed a file that the command may run.
- A call of an MCP server asks, unless all of that text came from the same server; then an "always" for the server still
  covers its calls.
- The user's own tools ask, unless they only read. Guarded files ask, including those that `guarded_files` excludes.
- "Always" is not offered, so nothing new is granted.

Grants for reads, and for changes of other workspace files, still apply.
"""

from __future__ import annotations

from codecompanion.tools.commands.network import network_program
from codecompanion.tools.files.code_files import why_it_runs_code
from codecompanion.tools.tool import ApprovalQuestion, Narrowed, Tool


def is_narrowed_away(
    narrowed: Narrowed, tool: Tool, question: ApprovalQuestion | None, given_path: str, root: str, *, granted: bool
) -> bool:
    """Return whether the call asks regardless of grants; `granted`: an "always" or a prefix covers it."""
    if not narrowed.because or tool.effect == "read":
        return False
    if question is not None and question.command:
        if question.place in ("inside", "network", "outside"):  # the sandbox decides, not the words of the command line
            return question.place != "inside"
        return not granted or narrowed.has_changed_files or bool(network_program(question.command))
    if tool.server:
        return tool.server != narrowed.only_server
    if question is not None and question.path:
        return bool(why_it_runs_code((question.path, given_path or question.path), root, ()))
    return tool.effect == "execute"
