"""Unreadable outside text of any kind is bad input: decoding it never ends a chat."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_payload
from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.work import Failed, SummaryReply
from codecompanion.errors import AdapterError, InputError
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.transcript_format import decode_line
from codecompanion.session.actions.forking import next_title
from codecompanion.session.attachments.file_facts import count_pages
from codecompanion.session.attachments.staleness import changed_since
from codecompanion.store.log.totals import SessionInfo
from codecompanion.tools.files.diff import hunks_of

PACKAGE = Path(__file__).resolve().parents[3] / "python" / "codecompanion"
READERS = (
    "json.loads",
    "json.load",
    "msgspec.json.decode",
    "typed.read_json",
    "tomllib.loads",
    "tomllib.load",
)
OURS = {
    "formats/typed.py": "the guard stands around its callers",
    "adapters/transport/sdk_clients.py": "a body that we have rendered ourselves",
    "adapters/entries/options.py": "a table that is part of the package",
    "context/policy/policy_file.py": "policies that are part of the package",
    "engine/bridge.py": "a request of our own Lua that msgspec has read before",
    "model/history.py": "`store.log.encoding.from_bytes` reads damaged payloads",
    "prompts/__init__.py": "tables that are part of the package",
    "formats/package_table.py": "tables that are part of the package",
    "formats/sanitise.py": "a table that is part of the package",
    "settings.py": "the generated defaults",
    "store/search/parsed_question.py": "a table that is part of the package",
    "tools/sandbox/escape_check.py": "what our own check prints, `DecodeError` caught",
    "tools/sandbox/inside/confinement.py": "a table that is part of the package",
    "tools/sandbox/inside/launcher.py": "the order our own process gave",
    "tools/commands/command_environment.py": "a table that is part of the package",
    "tools/builtin/grep_search.py": "what ripgrep prints, or a process of our own",
    "tools/builtin/grep_worker.py": "the order our own process gave",
    "adapters/openai_chat/reasoning_details.py": "what we have written ourselves",
    "adapters/request_gate.py": "the body that our own adapter has just rendered",
    "adapters/openai_responses/decode.py": "`ReplyDecoder` reads every part of a reply in a guard",
}
"""Files in which a decode needs no guard of its own, with the reasons."""


def unguarded(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and call of every decode outside a `try` (or `suppress`) for all possible errors."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        is_decoder = called.endswith((".decode", ".raw_decode")) and (
            called.split(".")[0].strip("_").isupper() or called.startswith("_decoder()")
        )
        if (called in READERS or is_decoder or called.endswith(".raw_decode")) and not _is_guarded(node, parents):
            yield node.lineno, called


def _is_guarded(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while node in parents:
        parent = parents[node]
        if isinstance(parent, ast.Try) and node in parent.body:
            caught = " ".join(ast.unparse(handler.type) for handler in parent.handlers if handler.type)
        elif isinstance(parent, ast.With):
            caught = " ".join(ast.unparse(item) for item in parent.items)
        else:
            caught = ""
        if "NOT_READABLE" in caught or all(name in caught for name in ("ValueError", "RecursionError", "MemoryError")):
            return True
        node = parent
    return False


def test_every_decode_of_outside_text_is_guarded():
    """`RecursionError` and `MemoryError` are ordinary bad input wherever outside text is parsed."""
    found = {
        path.relative_to(PACKAGE).as_posix(): calls
        for path in sorted(PACKAGE.rglob("*.py"))
        if (calls := list(unguarded(path.read_text(encoding="utf-8"))))
    }
    loose = {name: calls for name, calls in found.items() if name not in OURS}
    assert loose == {}, "catch NOT_READABLE around it, or say above why it needs no guard"
    assert sorted(OURS.keys() - found.keys()) == [], "named without need"


@pytest.mark.parametrize(
    "source",
    [
        "import json\nx = json.loads(y)",
        "try:\n    x = json.loads(y)\nexcept (ValueError, RecursionError):\n    pass",
        "try:\n    pass\nexcept NOT_READABLE:\n    x = json.loads(y)",
        "x = _DECODER.decode(y)",
        "x = reader.raw_decode(y)",
    ],
)
def test_the_check_finds_an_unguarded_decode(source):
    """A check that cannot fail is worthless."""
    assert list(unguarded(source))
    assert not list(unguarded(f"try:\n    {source.splitlines()[-1].strip()}\nexcept NOT_READABLE:\n    pass"))


@pytest.mark.parametrize("error", [RecursionError, MemoryError, ValueError])
def test_an_unreadable_reply_is_a_summary_or_not_and_never_a_crash(monkeypatch, error):
    """R-526: an answer in braces that no parser accepts is judged by its words."""

    def refuse(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(json, "loads", refuse)
    assert isinstance(accept_reply(SummaryReply(text='{"error": 1}')), str | Failed)
    with pytest.raises(InputError, match=r"here:1: .*; expected a message"):
        decode_line(b"{}", "here:1", "a message")


DIGITS = "9" * 5000


def test_an_endless_number_is_not_a_number(tmp_path):
    """Python refuses to parse integers of more than 4,300 digits anywhere."""
    assert count_pages(f"%PDF-1.7 /Linearized 1 /N {DIGITS} ".encode()) == 0
    assert count_pages(f"%PDF-1.7 /Type /Pages /Count {DIGITS} ".encode()) == 0
    (tmp_path / "a.txt").write_text(f"{DIGITS}\tx")
    call = ToolCall("c", "read_file", '{"path": "a.txt"}')
    read = Message(id="m", role="tool", tool_call_id="c", content=f"{DIGITS}\tx", ts=1e12)
    assert changed_since(read, call, read.text, tmp_path) == ""
    assert hunks_of(f"--- a\n+++ b\n@@ -1 +{DIGITS} @@\n+x") == []
    titled = SessionInfo("c", f"chat ({DIGITS})", 0.0, 1, "", "", "")
    assert next_title("chat", [titled]) == "chat (2)"


@pytest.mark.parametrize("code", [DIGITS, "²", "4²9", "000000429" + DIGITS])
def test_an_invalid_status_code_is_ignored(code):
    """A character that `isdigit` accepts is not necessarily a number."""
    payload = json.dumps({"error": {"code": code, "message": "no"}}).encode()
    assert isinstance(
        error_from_payload(payload, Endpoint(name="e", base_url="https://a.test", secrets=())), AdapterError
    )


def test_unreadable_text_is_recognised():
    assert {RecursionError, MemoryError, ValueError} <= set(NOT_READABLE)
