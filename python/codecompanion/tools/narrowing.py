"""What a chat may not do unasked while text that nobody chose is in its context (issue 20, section 5). Pure.

Such text is a page, what an MCP server or a program of the network said, and files of a folder the user does not trust
(`model.provenance`). While it is there:

- a command that reaches the network is asked about, whatever was granted. A sandbox that keeps commands off the network
  decides that better than the words of a command line: without one, YOLO and `require_approval_before = false` cover no
  command, and an "always" or a prefix covers none once the chat has changed a file, which the command may run;
- a call of an MCP server is, unless all of that text is its own: an "always" for a server goes on covering its calls;
- the user's own tools that do more than read are; so are guarded files, also those `guarded_files` has taken out;
- nothing new is granted: "always" is not offered.

Reading, and changes of other files of the workspace, go on as they were granted.
"""

from __future__ import annotations

from codecompanion.tools.base import ApprovalQuestion, Narrowed, Tool
from codecompanion.tools.commands.network import network_program
from codecompanion.tools.files.code_files import why_it_runs_code


def is_narrowed_away(
    narrowed: Narrowed, tool: Tool, question: ApprovalQuestion | None, given_path: str, root: str, *, granted: bool
) -> bool:
    """Return whether the call is asked about whatever was granted; `granted`: an "always" or a prefix covers it."""
    if not narrowed.because or tool.effect == "read":
        return False
    if question is not None and question.command:
        if question.place in ("inside", "network", "outside"):  # the sandbox decides, not the words of the line
            return question.place != "inside"
        return not granted or narrowed.has_changed_files or bool(network_program(question.command))
    if tool.server:
        return tool.server != narrowed.only_server
    if question is not None and question.path:
        return bool(why_it_runs_code((question.path, given_path or question.path), root, ()))
    return tool.effect == "execute"
