"""The code in `doc/dev/how-to` works as printed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_generated import find_nvim

from codecompanion.adapters.base import AdapterSettings, ChatRequest, Finished, StreamEvent, TextDelta
from codecompanion.adapters.completion.endpoints import (
    CodeReply,
    CodeRequest,
    CompletionEndpoint,
    read_reply,
    render,
)
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.completion.families import Family
from codecompanion.completion.prompt import build_prompt
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_file import read_policy_file
from codecompanion.errors import StreamCut
from codecompanion.model.messages import Message
from codecompanion.settings import builtin_adapters
from codecompanion.workspace.syntax.languages import Language
from tests.providers.loopback.answers import Answer
from tests.providers.loopback.server import LoopbackServer, Received

REPO = Path(__file__).parents[2]
HOW_TO = REPO / "doc/dev/how-to"


def blocks(name: str, language: str) -> list[str]:
    """Return the code blocks of a page that are in the given language."""
    text = (HOW_TO / name).read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


def test_the_policy_is_valid() -> None:
    (text,) = blocks("policy.md", "toml")
    policy = read_policy_file(text, "policies/tidy.toml")
    assert [stage.id for stage in policy.stages] == ["editing", "compaction"]
    assert set(policy.options) == {"editing.trigger", "editing.keep_cycles", "compaction.trigger"}


def test_the_users_own_policy_is_valid(tmp_path: Path) -> None:
    """The policy is loaded as the host loads it from a user's configuration."""
    (text,) = blocks("policy.md", "lua")
    script = tmp_path / "policy.lua"
    script.write_text(f"local options = {{ {text} }}\nio.stdout:write(vim.json.encode(options.policies))", "utf-8")
    command = [find_nvim(), "--clean", "--headless", "-l", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    mine = load_policy("mine", json.loads(done.stdout))
    assert [stage.id for stage in mine.stages] == ["editing", "compaction"]
    assert mine.stages[0].trigger.tokens == 40_000
    assert [step.use for step in mine.stages[0].tiers[0].steps] == ["clear_tool_results", "require_savings"]


@pytest.mark.parametrize(("page", "parts"), [("strategy.md", 3), ("tool.md", 2)])
def test_the_python_is_valid(page: str, parts: int) -> None:
    found = blocks(page, "python")
    assert len(found) == parts
    for text in found:
        if not text.startswith(" "):
            ast.parse(text)


def test_the_adapter_has_the_fields_of_its_neighbours() -> None:
    (text,) = blocks("adapter.md", "json")
    adapter = json.loads(f"{{{text.strip().rstrip(',')}}}")["somehost"]
    assert set(adapter) <= {"about", "key_page", "documented_at", *AdapterSettings.__struct_fields__}
    assert set(adapter) <= set(builtin_adapters()["groq"])


def test_the_slash_command_has_the_shape_of_its_neighbours() -> None:
    (text,) = blocks("slash-command.md", "lua")
    neighbours = (REPO / "lua/codecompanion/chat/slash/groups/report_commands.lua").read_text(encoding="utf-8")
    assert '    name = "help",' in neighbours
    for field in re.findall(r"(?m)^    (\w+) = ", text):
        assert re.search(rf"(?m)^    {field} = ", neighbours), field


def test_family_and_endpoint_are_parsed_like_their_neighbours() -> None:
    family, endpoint = (tomllib.loads(text) for text in blocks("completion.md", "toml"))
    [granite] = msgspec.convert(family["family"], list[Family])
    assert build_prompt(granite, "", "a = ", "\n").prompt == "<fim_prefix>a = <fim_suffix>\n<fim_middle>"
    made = msgspec.convert({**endpoint["tabby"], "name": "tabby"}, CompletionEndpoint)
    request = CodeRequest(model="m", prompt="a = ", suffix="\n", max_tokens=9, temperature=0.5)
    sent = {"segments": {"prefix": "a = ", "suffix": "\n"}, "temperature": 0.5}
    assert json.loads(render(made, request)) == sent
    assert read_reply(made, {"choices": [{"text": "1"}]}) == CodeReply("1")


def test_the_language_is_parsed_like_its_neighbours() -> None:
    (text,) = blocks("language.md", "toml")
    assert msgspec.convert(tomllib.loads(text), dict[str, Language])["zig"].extensions == ("zig", "zon")


def test_the_strategy_passes_its_own_test(tmp_path: Path) -> None:
    """The strategy and its test are written to their places, the strategy in a copy of the package."""
    source, _, test = blocks("strategy.md", "python")
    copy = tmp_path / "python"
    subprocess.run(["cp", "-r", str(REPO / "python"), str(copy)], check=True)
    (copy / "codecompanion/context/editing/shorten_replies.py").write_text(source, encoding="utf-8")
    (tmp_path / "test_shorten_replies.py").write_text(test, encoding="utf-8")
    run_tests(tmp_path, copy, "test_shorten_replies.py")


@pytest.mark.slow("runs another pytest")
def test_the_tool_passes_its_own_test(tmp_path: Path) -> None:
    source, test = blocks("tool.md", "python")
    copy = tmp_path / "python"
    subprocess.run(["cp", "-r", str(REPO / "python"), str(copy)], check=True)
    builtin = copy / "codecompanion/tools/builtin"
    (builtin / "count_lines.py").write_text(source, encoding="utf-8")
    registry = (builtin / "__init__.py").read_text(encoding="utf-8")
    registry = "from codecompanion.tools.builtin.count_lines import COUNT_LINES\n" + registry.partition('"""\n')[2]
    (builtin / "__init__.py").write_text(registry.replace("    RECALL,\n", "    COUNT_LINES,\n    RECALL,\n"))
    (tmp_path / "conftest.py").write_text("from tests.unit.tools.conftest import *\n", encoding="utf-8")
    (tmp_path / "test_count_lines.py").write_text(test, encoding="utf-8")
    run_tests(tmp_path, copy, "test_count_lines.py")


async def test_the_wire_format_supports_a_conversation() -> None:
    """Against its own server: text arrives, an error in the stream and a missing end are reported as such."""
    (source,) = blocks("adapter.md", "python")
    module: dict[str, Any] = {}
    exec(compile(source, "say.py", "exec"), module)  # noqa: S102 - the page is ours

    class Server(LoopbackServer):
        pieces: tuple[dict[str, Any], ...] = ()

        def answer(self, request: Received) -> Answer:
            asked = [one["say"] for one in request.json["texts"]]
            events = ({"say": f"{asked[-1]}, "}, *self.pieces)
            return Answer(parts=tuple(b"data: %s\n\n" % msgspec.json.encode(event) for event in events))

    async with Server() as server:
        settings = AdapterSettings(name="say", kind="openai", base_url=server.url, max_retries=0)
        adapter = HttpAdapter(settings, module["Say"](), read_key=lambda settings: "k")
        request = ChatRequest(messages=[Message(id="a", role="user", content="hello")], model="m")

        async def ask(*pieces: dict[str, Any]) -> list[StreamEvent]:
            server.pieces = pieces
            return [event async for event in adapter.stream(request)]

        assert await ask({"say": "you"}, {"end": True}) == [TextDelta("hello, you"), Finished("stop")]
        with pytest.raises(StreamCut, match="incomplete"):
            await ask({"say": "you"})
        with pytest.raises(StreamCut, match="no more words"):
            await ask({"error": {"message": "no more words"}})
        await adapter.aclose()


def run_tests(folder: Path, package: Path, name: str) -> None:
    """Run a test file in the folder against the given package."""
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--confcutdir", str(folder), name],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(REPO)))},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
