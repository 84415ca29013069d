"""Third-party MCP servers for both generations of the protocol: everything, filesystem, git, time.

`make test-mcp` installs them and runs these tests (MCP=required: a missing server is a failure). `make test` runs them
where they are installed, and skips them with a message otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from codecompanion.mcp.server_connection import Connection
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import ElicitationRequest, SamplingReply, SamplingRequest
from codecompanion.session.mcp.server_tools import server_tools
from codecompanion.tools.parameter_schema import problem_with_parameters
from tests.mcp.listener import Listener, until
from tests.patience import PATIENCE_S

REPO = Path(__file__).resolve().parents[2]
CACHE = REPO / ".cache" / "mcp"
NPM, PYPI = CACHE / "npm" / "node_modules" / ".bin", CACHE / "pypi" / "bin"


class Willing(Listener):
    """A listener that grants every request."""

    def __init__(self, root: str = "") -> None:
        super().__init__()
        self._root = root

    def roots(self) -> Sequence[str]:
        return (self._root,) if self._root else ()

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        return SamplingReply(text=f"answer to {len(request.messages)} message", model="test-model")

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        return {"name": "Eve"} if "name" in request.fields else None


@contextlib.asynccontextmanager
async def running(program: Path, *arguments: str, listener: Listener | None = None) -> AsyncIterator[Connection]:
    """Yield a connection to an installed server."""
    if not program.exists():
        sentence = f"{program.name} is not installed: run make test-mcp"
        pytest.fail(sentence, pytrace=False) if os.environ.get("MCP") == "required" else pytest.skip(sentence)
    spec = ServerSpec(name=program.name, command=(str(program), *arguments), start_timeout_s=PATIENCE_S)
    server = Connection(spec, dict(os.environ), listener or Listener())
    await server.open()
    try:
        yield server
    finally:
        await server.close()


async def test_everything_returns_text_images_links_structure_progress_and_prompts() -> None:
    listener, told = Willing("/tmp"), list[str]()
    async with running(NPM / "mcp-server-everything", listener=listener) as server:
        assert (await server.call("echo", {"message": "hello"}, 30)).text == "Echo: hello"
        assert [image.mime for image in (await server.call("get-tiny-image", {}, 30)).images] == ["image/png"]
        assert "demo://resource" in (await server.call("get-resource-links", {"count": 2}, 30)).text
        assert "temperature" in (await server.call("get-structured-content", {"location": "New York"}, 30)).text
        slow = {"duration": 0.3, "steps": 3}
        await server.call("trigger-long-running-operation", slow, 30, lambda done, total, text: told.append(str(done)))
        assert told == ["1.0", "2.0", "3.0"]
        wrong = await server.call("get-sum", {"a": "x"}, 30)
        assert wrong.is_error
        uri = next(one.uri for one in server.offer.resources if not one.is_template)
        assert (await server.read(uri, 30)).text
        name = next(one.name for one in server.offer.prompts if not one.arguments)
        assert "simple prompt" in (await server.prompt(name, {}, 30)).text


async def test_everything_asks_for_a_reply_values_and_folders() -> None:
    async with running(NPM / "mcp-server-everything", listener=Willing("/tmp")) as server:
        await until(lambda: any(tool.name == "get-roots-list" for tool in server.offer.tools), "all its tools")
        sampled = await server.call("trigger-sampling-request", {"prompt": "p", "maxTokens": 5}, 30)
        assert "answer to 1 message" in sampled.text
        assert "Eve" in (await server.call("trigger-elicitation-request", {}, 30)).text
        assert "file:///tmp" in (await server.call("get-roots-list", {}, 30)).text


async def test_filesystem_reads_below_its_folder_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    async with running(NPM / "mcp-server-filesystem", str(tmp_path)) as server:
        assert (await server.call("read_text_file", {"path": str(tmp_path / "a.txt")}, 30)).text == "hello"
        assert (await server.call("read_text_file", {"path": "/etc/hostname"}, 30)).is_error


async def test_git_reports_the_state_of_a_repository(tmp_path: Path) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x")
    async with running(PYPI / "mcp-server-git", "--repository", str(tmp_path)) as server:
        assert "new.txt" in (await server.call("git_status", {"repo_path": str(tmp_path)}, 30)).text


async def test_time_returns_the_time() -> None:
    async with running(PYPI / "mcp-server-time") as server:
        assert "UTC" in (await server.call("get_current_time", {"timezone": "UTC"}, 30)).text


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (NPM / "mcp-server-everything", ()),
        (NPM / "mcp-server-filesystem", ("/tmp",)),
        (PYPI / "mcp-server-git", ()),
        (PYPI / "mcp-server-time", ()),
    ],
    ids=["everything", "filesystem", "git", "time"],
)
async def test_every_tool_of_theirs_can_be_offered(program: Path, arguments: tuple[str, ...]) -> None:
    async def call(*_: Any) -> Any:
        raise AssertionError

    async with running(program, *arguments) as server:
        made = server_tools(server.spec, server.offer.tools, call)
        assert {tool.own_name: tool.problem for tool in made if tool.problem} == {}
        assert [problem_with_parameters(one.tool.spec.parameters) for one in made if one.tool] == [""] * len(made)
