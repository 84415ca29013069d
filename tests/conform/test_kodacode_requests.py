"""KodaCode's requests in a chat: placeholders, short forms, the packet, other parameters (R-340…R-362)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from codecompanion.model.history import RequestSent
from codecompanion.tools import check_arguments
from codecompanion.tools.files.open_files import NoEditor
from codecompanion.wire.requests import Diagnostic
from tests.conform.chat import Chat, Given, chat_with, talk, tool_step
from tests.unit.session.fakes import calls, says


async def kodacode(root, messages: list[Given], window: int = 1_000_000, policy: str = "kodacode", **more) -> Chat:
    """Return an idle chat without the instruction to be terse, so that its prompt has 100 tokens."""
    return await chat_with(root, policy, messages, window, **{"response_style": "default", **more})


def hit(size: int) -> str:
    """Return two lines of `size` bytes, as reported by a search."""
    return "\n".join(("hay " + "x" * 200, "hay " + "x" * (size - 243)))


async def test_large_results_before_the_newest_step_are_placeholders(tmp_path):
    """R-340, R-341: results of listed tools from 512 bytes on are replaced.

    Errors, reads, edits and results shorter than a placeholder are not.
    """
    files = {"a.txt": hit(511), "b.txt": hit(512), "long.txt": "a line of words\n" * 60}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    wanted = [
        ("c0", "grep_search", {"query": "hay", "include": "a.txt"}),
        ("c1", "grep_search", {"query": "hay", "include": "b.txt"}),
        ("c2", "grep_search", {"query": "hay", "include": "b.txt"} | {f"{n:060}": n for n in range(20)}),
        ("c3", "read_file", {"path": "long.txt"}),
        ("c4", "insert_edit", {"path": "long.txt", "code": "z" * 900}),
        ("c" * 600, "grep_search", {"query": "hay", "include": "b.txt", "max_results": 9}),
        ("c6", "grep_search", {"query": "hay", "include": "b.txt", "max_results": 8}),
        ("c7", "grep_search", {"query": "hay", "include": "b.txt", "max_results": 7}),
    ]
    steps = iter([calls((call, name, json.dumps(given))) for call, name, given in wanted])
    chat = await kodacode(tmp_path, [], tools=True, replies=lambda request: next(steps, says("done")))
    await chat.say("look")
    stored = {m.tool_call_id: m for m in chat.view if m.role == "tool"}
    sent = {m.tool_call_id: m.text for m in chat.request if m.role == "tool"}
    assert [len(stored[name].text.encode()) for name in ("c0", "c1")] == [511, 512]
    assert stored["c2"].is_error
    for name in ("c2", "c3"):
        assert len(stored[name].text.encode()) >= 512
    changed = {name for name, text in sent.items() if text != stored[name].text}
    assert changed == {"c1", "c6"}
    assert sent["c1"] == "[older retained output from grep_search turn-1 c1 pruned for prompt budget]"


def searching(number: int, size: int, name: str) -> list[Given]:
    """Return a turn with one call of a tool and its result of `size` characters."""
    step = tool_step(number, "r" * size, name=name)
    return [{"role": "user", "content": "go"}, *step, {"role": "assistant", "content": "ok"}]


async def test_edits_stay_in_finished_turns_too(tmp_path):
    """R-340: above the budget of the raw tail, all other large results are replaced, including errors and reads."""
    names = ("read_file", "grep_search", "insert_edit", "create_file")
    turns = [m for n, name in enumerate(names) for m in searching(n, 4_000, name)]
    chat = await kodacode(tmp_path, [*turns, *talk(1)], 9_000)
    await chat.say()
    assert [m.text[:30] for m in chat.request if m.role == "tool"] == [
        "[older retained output from re", "[older retained output from gr", "r" * 30, "r" * 30,
    ]  # fmt: skip


@pytest.mark.parametrize("above", [False, True])
async def test_the_short_form_of_the_prompt_is_sent_above_the_trigger(tmp_path, above):
    """R-344: the difference counts as saved tokens."""
    chat = await kodacode(tmp_path, [], 8_000, system_prompt=None)
    full = chat.session.control.system_message.text
    await chat.say("y" * 4 * (6_380 if above else 5_000))
    system = chat.sent[0].messages[0].text
    assert (system != full) is above
    saved = [e.payload.shaping for e in chat.bench.store.load_events("chat-1") if isinstance(e.payload, RequestSent)]
    assert saved == ([{"prompt": -(-len(full) // 4) + -len(system) // 4}] if above else [{}])
    assert chat.named("prompt_compiled")[0]["shape"] == ("compact" if above else "full")


def plain(schema: object, *, is_names: bool = False) -> object:
    """Return a schema without its descriptions; a property called `description` is kept."""
    if isinstance(schema, list | tuple):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: plain(value, is_names=key == "properties" and not is_names)
        for key, value in schema.items()
        if is_names or key != "description"
    }


@pytest.mark.parametrize("above", [False, True])
async def test_schemas_lose_their_nested_descriptions_above_the_target(tmp_path, above):
    """R-345: the tool's own description and everything that validates arguments are kept."""
    chat = await kodacode(tmp_path, [], 10_000, tools=True, chars4=False)
    whole = chat.session.control.specs
    await chat.say("word " * (5_000 if above else 1_000))
    sent = chat.sent[0].tools
    assert [(one.name, one.description) for one in sent] == [(one.name, one.description) for one in whole]
    assert all('"description": "' in json.dumps(one.parameters) for one in whole if one.name != "get_diagnostics")
    if not above:
        assert sent == whole
        return
    assert [one.parameters for one in sent] == [plain(one.parameters) for one in whole]
    tried: list[dict] = [
        {},
        {"path": "a"},
        {"path": 1},
        {"query": "x", "max_results": 2},
        {"query": "x", "other": True},
    ]
    for one, before in zip(sent, whole, strict=True):
        for given in tried:
            assert check_arguments.problems(given, one.parameters) == check_arguments.problems(given, before.parameters)


# ---- the packet, and older parameters


def repository(folder: Path) -> None:
    for command in (["init", "-q", "-b", "topic"], ["add", "f00.py"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


async def test_the_packet_has_no_contents_and_no_hunks(tmp_path):
    """R-355: it lists at most 20 changed files.

    A line break in a path is harmless, and diagnostics do not quote files.
    """
    for n in range(25):
        (tmp_path / f"f{n:02}.py").write_text(f"secret_{n} = 1\n")
    (tmp_path / "a\n- M b.py").write_text("secret = 1\n")
    repository(tmp_path)
    (tmp_path / "f00.py").write_text("secret_0 = 2\n")
    found = Diagnostic(path=str(tmp_path / "f00.py"), line=1, severity="ERROR", message="undefined name")

    class Says(NoEditor):
        async def diagnostics(self):
            return (found,)

    sections = ["repo", "git", "git_dirty_summary", "diagnostics"]
    chat = await kodacode(tmp_path, [], context_packet={"enabled_sections": sections})
    chat.bench.services.editor = Says()
    await chat.say("fix the errors")
    (packet,) = [m.text for m in chat.request if m.tag == "context_packet"]
    assert [key for key in sections if f'<section key="{key}"' in packet] == sections
    assert "secret" not in packet
    assert "@@" not in packet
    assert packet.count("</section>") == 4
    assert "listed_changed_files: 20\nomitted_changed_files: 6\n" in packet
    assert len([line for line in packet.splitlines() if line[:2] == "- " and ".py" in line]) == 21


OLDER = {
    "id": "history", "event": "context_compacted", "manual": True,
    "trigger": {"at": 0.9, "basis": "input_limit"},
    "step": [
        {"use": "clear_tool_results", "older_than": {"unit": "turns", "count": 10},
         "stop_when": {"share": 0.01, "min_tokens": 40_000}},
        {"use": "require_savings", "automatic": 20_000},
    ],
}  # fmt: skip
"""The parameters of older documents: 0.9 of the window, ten turns, 40,000 tokens, at least 20,000 saved."""


async def test_parameters_of_older_documents_are_possible_but_not_defaults(tmp_path):
    """R-362: by default a summary is written at 89 % of the window.

    With them none is, and above 90 % results are cleared.
    """
    turns = [m for n in range(30) for m in searching(n, 12_000, "memo")]
    own = {"policies": {"older": {"extends": "kodacode strict", "stage": [OLDER]}}}
    by_default = await kodacode(tmp_path, turns, 102_000)
    await by_default.say()
    assert [m.role for m in by_default.request if m.role == "tool"] == ["tool"] * 2
    for window, cleared in ((102_000, 0), (100_000, 17)):
        chat = await kodacode(tmp_path, turns, window, "older", **own)
        await chat.say()
        results = [m for m in chat.view if m.role == "tool"]
        assert [m.edited for m in results] == [True] * cleared + [False] * (30 - cleared)
