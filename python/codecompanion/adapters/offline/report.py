"""Writes the replies of the offline adapter: reports on tool results, and lists of the instructions it understands."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.formats.cutting import cut_line
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Message, ToolCall

HELP = """No model answered. To set one up, press `ga`, or run
`:CodeCompanion adapter`: it lists what each adapter needs.

I am the offline adapter, and nothing leaves this machine. Tell me what to do in plain words:

- `read lua/foo.lua lines 1-40`
- `search for "needle" in src`
- `find files *.py`
- `replace "old" with "new" in notes.txt`
- `create hello.txt with "Hello"`
- `run make test`
- `show diagnostics`

Join steps with `then`, `;` or one per line."""
_QUOTED_LINES = 3
_QUOTED_CHARS = 200


def report(messages: Sequence[Message], not_understood: Sequence[str], missing_tools: Sequence[str]) -> str:
    """Return the report on the tool results in `messages`, which is everything after the user's message."""
    calls = [call for message in messages for call in message.tool_calls]
    results = [message for message in messages if message.role == "tool"]
    lines = [_line(call, result) for call, result in zip(calls, results, strict=False)]
    lines.extend(f"- The tool `{name}` is not available in this chat." for name in missing_tools)
    if not lines:
        return HELP
    failed = sum(1 for result in results if result.is_error)
    problems = failed + len(missing_tools)
    head = f"Finished; {problems} of {len(lines)} steps failed." if problems else "Done."
    if not_understood:
        clauses = "; ".join(cut_line(clause, _QUOTED_CHARS) for clause in not_understood)
        lines.append(f"- I did not understand: {clauses}")
    return "\n".join((head, "", *lines))


def _line(call: ToolCall, result: Message) -> str:
    what = f"- `{call.name}`{_target(call)}"
    text = result.text.strip()
    if not text:
        return f"{what}: no output."
    count = len(text.splitlines())
    size = f"{count} lines" if count > 1 else "1 line"
    begin = " / ".join(line.strip() for line in text.splitlines()[:_QUOTED_LINES] if line.strip())
    verdict = "failed: " if result.is_error else f"{size}: "
    return f"{what} {verdict}{cut_line(begin, _QUOTED_CHARS)}"


def _target(call: ToolCall) -> str:
    try:
        arguments = msgspec.json.decode(call.arguments)
    except NOT_READABLE:
        return ""
    given = arguments if isinstance(arguments, dict) else {}
    target = next((given[key] for key in ("path", "query", "pattern", "command") if key in given), "")
    return f" {cut_line(str(target), _QUOTED_CHARS)}" if target else ""
