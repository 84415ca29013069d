"""No secret is sent that the user did not choose: files by content, each automatic path with a planted canary.

Formats: `tests/secret_shapes.py`, with other values in each run of ATTACKS=full. Ordinary files: Python's standard
library and this project. Paths: each one that sends text automatically.
"""

from __future__ import annotations

import asyncio
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion import settings
from codecompanion.session.code.indexing import build
from codecompanion.session.code.left_out_files import left_out_sentence
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.complete.project_view import ProjectReader
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.gather_code import GatherResources, gather
from codecompanion.session.gather.gatherers import beside
from codecompanion.tools.approval import Approvals
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.runner import decided, run_call
from codecompanion.tools.tool import ToolContext
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire.requests import Snapshot
from codecompanion.workspace.excluded_files import why_left_out
from codecompanion.workspace.files import walk
from codecompanion.workspace.git_diff import read_diff
from codecompanion.workspace.git_staged import read_staged
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.project_files import Choice, why_no_text
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import find_secrets, hide_keys, why_secret, without_secrets
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.secret_shapes import Fake, Shape, shapes

GATHERING = settings.load({}).context
GOAL_HELD, GOAL_ASKED = 0.95, 0.01
ROOT = Path(__file__).parents[2]
FAKE = Fake(20)
CANARY = FAKE.alnum(36, "gh" + "p_")
PASSWORD = FAKE.chosen_password()
FILES = {
    "src/client.py": f'"""Client of the forge."""\n\nTOKEN = "{CANARY}"\n\n\ndef connect_forge():\n    return TOKEN\n',
    "src/user.py": "from client import connect_forge\n\n\ndef use_forge():\n    return connect_forge()\n",
    "deploy/forge.yml": f"forge:\n  url: https://forge.example.org\n  db_password: {PASSWORD}\n  api_token: {CANARY}\n",
    "deploy/für uns.yml": f"forge:\n  db_password: {PASSWORD}\n",
    "notes.md": f"# connect_forge\n\nThe forge takes {CANARY} until Friday.\n",
}


def held(shape: Shape) -> bool:
    """Return whether the value is never sent unasked: the file is withheld by name, or the value by its format."""
    text, why = without_secrets(shape.text, shape.path)
    return is_secret(shape.path) or bool(why) or not any(value in text for value in shape.values)


def test_files_with_secrets_are_withheld(tally: Tally) -> None:
    tried = [shape for seed in range(100, 100 + amount(2, full=20)) for shape in shapes(seed)]
    count = sum(map(held, tried))
    assert count / len(tried) >= GOAL_HELD
    tally("secrets: shapes of files withheld", tried=len(tried), held=count)


def ordinary_files() -> Iterator[tuple[str, str]]:
    """Yield paths and texts of files without secrets."""
    folders = (Path(sysconfig.get_paths()["stdlib"]), ROOT / "python", ROOT / "lua", ROOT / "doc")
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            is_test = any(part in ("test", "tests", "idle_test", "site-packages") for part in path.parts)
            if is_test or not path.is_file() or path.stat().st_size > 300_000 or why_left_out(name, is_tracked=True):
                continue
            content = path.read_bytes()
            if content and not why_no_text(content):
                yield name, content.decode("utf-8", "replace")


@pytest.mark.slow("reads the sources of Python")
def test_ordinary_files_are_read_unasked(tally: Tally) -> None:
    files = list(ordinary_files())
    step = max(1, len(files) // amount(250, full=len(files)))
    tried = files[::step]
    asked = [name for name, text in tried if find_secrets(text, name)]
    assert len(asked) <= GOAL_ASKED * len(tried), asked
    tally("secrets: ordinary files left alone", tried=len(tried), held=len(tried) - len(asked))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with one commit and the uncommitted canary in program text, data and prose."""
    root = tmp_path / "project"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("def connect_forge():\n    return 1\n" if name.endswith(".py") else "forge\n")
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def context(project: Path, tmp_path: Path) -> ToolContext:
    """Return the context that the session passes to tools."""
    workspace = Workspace(project)
    return ToolContext(
        root=workspace.root,
        resolve=workspace.resolve,
        memory_dir=tmp_path / "memory",
        snapshot=Snapshot(cwd=str(project)),
        read_stored={}.__getitem__,
        walk=walk,
        is_secret=is_secret,
        why_secret=why_secret,
        without_secrets=without_secrets,
        timeout_s=30,
    )


def is_clean(*texts: str | bytes) -> bool:
    """Return whether none of the texts contains the canary."""
    return not any(
        one in text if isinstance(text, str) else one.encode() in text for text in texts for one in (CANARY, PASSWORD)
    )


async def test_no_automatic_path_sends_the_canary(
    project: Path, context: ToolContext, tmp_path: Path, tally: Tally
) -> None:
    roads = dict[str, bool]()
    choice = Choice()
    index = ProjectIndex(project, tmp_path / "cache", choice)
    build(project, index.path, choice, now_ns=lambda: 1)
    unsaved = {"src/user.py": f'KEY_TOKEN = "{CANARY}"\n', "deploy/forge.yml": FILES["deploy/forge.yml"]}
    texts = [index.read_text(name) or "" for name in FILES]
    roads["code search: texts"] = is_clean(*texts)
    await index.refresh(unsaved)
    roads["code search: unsaved buffers"] = is_clean(*(index.read_text(name) or "" for name in unsaved))
    roads["index: withheld file is named with its reason"] = (
        "deploy/forge.yml: password on line 3" in left_out_sentence(await index.left_out())
    )
    await index.close()
    roads["index: file on disk"] = is_clean(*(path.read_bytes() for path in (tmp_path / "cache").rglob("*.db*")))
    question = "How does connect_forge work in this project with db_password of forge.yml?"
    found = await gather(
        Ask(question=question, root=project, active="deploy/forge.yml", budget=4000, always=True),
        GatherResources(GATHERING, time.monotonic),
    )
    roads["gathered code"] = is_clean(found.text) and "connect_forge" in found.text
    kept = beside("memory", "\n".join(FILES.values())).text
    roads["memories and the team's text"] = is_clean(kept) and "connect_forge" in kept
    reader = ProjectReader(project, None, is_secret)
    pieces = [repr(reader._read(name)) for name in FILES]
    roads["completion: pieces of other files"] = is_clean(*pieces)
    roads["#{diff}"] = is_clean(read_diff(project, "").text)
    await asyncio.to_thread(subprocess.run, ["git", "-C", str(project), "add", "."], check=True)
    staged = read_staged(project)
    roads["commit message"] = is_clean(staged.diff) and "deploy/forge.yml" in staged.secret
    command = [
        "git",
        "-C",
        str(project),
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-qm",
        CANARY,
    ]
    await asyncio.to_thread(subprocess.run, command, check=True)
    committed = read_diff(project, "HEAD").text
    roads["#{diff} of a commit: its message, and names in quotes"] = (
        is_clean(committed) and "src/client.py" in committed
    )
    registry = ToolRegistry(BUILTIN_TOOLS)
    for query in ("forge", "ghp_", "password"):
        output = await run_call(registry.get("grep_search"), {"query": query}, context)
        roads[f"grep_search {query}"] = is_clean(output.text)
    for name in FILES:
        asked = (await decided(registry.get("read_file"), {"path": name}, context, Approvals(yolo=True))).question
        roads[f"read_file {name}"] = (asked is not None) == (name != "src/user.py")
    tool = registry.get("run_command")
    for line, asks in {"cat deploy/forge.yml": True, "head -3 src/client.py": True, "cat src/user.py": False}.items():
        told = tool.question({"command": line}, context)
        roads[f"run_command {line}"] = told is not None and (not told.offer.families) == asks
    roads["output of a command"] = is_clean(hide_keys(FILES["src/client.py"] + FILES["notes.md"]))
    tally("secrets: a canary by each automatic road", tried=len(roads), held=sum(roads.values()))
    assert not [road for road, is_held in roads.items() if not is_held]
