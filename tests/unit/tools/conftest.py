"""A workspace in a temporary folder, and tools called like in the session."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.runner import run_call
from codecompanion.tools.sandbox.sandbox import Sandbox
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire.requests import Snapshot
from codecompanion.workspace.files import walk
from codecompanion.workspace.git_config import read_certainly
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.secret_files import is_secret

Call = Callable[..., Awaitable[ToolOutput]]


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace, next to a folder that no tool may reach."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret\n")
    return folder


@pytest.fixture
def stored() -> dict[str, str]:
    """Stored results by sha256."""
    return {}


SANDBOX = SandboxSettings(mode="auto", write=(), read=(), network=False)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The sandbox of this machine, or none."""
    return Sandbox(SANDBOX, tmp_path_factory.mktemp("private"))


@pytest.fixture
def context(root: Path, tmp_path: Path, stored: dict[str, str], sandbox: Sandbox) -> ToolContext:
    """The session's context for tools."""
    workspace = Workspace(root)
    return ToolContext(
        root=workspace.root,
        resolve=workspace.resolve,
        memory_dir=tmp_path / "memory",
        snapshot=Snapshot(cwd=str(root)),
        read_stored=stored.__getitem__,
        walk=walk,
        is_secret=is_secret,
        read_git_config=read_certainly,
        timeout_s=30,
        sandbox=sandbox,
    )


@pytest.fixture
def call(context: ToolContext) -> Call:
    """Call a tool like the model: JSON arguments, validated, run; `in_context` changes the context."""
    registry = ToolRegistry(BUILTIN_TOOLS)

    async def run(tool: str, in_context: dict[str, Any] | None = None, **arguments: Any) -> ToolOutput:
        checked = registry.validate(tool, json.dumps(arguments))
        return await run_call(registry.get(tool), checked, msgspec.structs.replace(context, **in_context or {}))

    return run


@pytest.fixture
def ask(context: ToolContext) -> Callable[..., ApprovalQuestion | None]:
    """Return the question of a tool call; the tool's `ToolError` is passed on."""
    registry = ToolRegistry(BUILTIN_TOOLS)

    def question(tool: str, **arguments: Any) -> ApprovalQuestion | None:
        return registry.get(tool).question(registry.validate(tool, json.dumps(arguments)), context)

    return question


@pytest.fixture
def as_nobody(root: Path) -> Iterator[Path]:
    """Return a folder owned by an unprivileged user, who runs the test: root may do everything.

    Must follow the fixtures that create folders as root.
    """
    del root
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, 65534, 65534)
        os.setegid(65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
            os.setegid(0)
        shutil.rmtree(folder)
