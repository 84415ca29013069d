"""Arrows point one way: the imports of `python/codecompanion` are walked and compared with the design.

Vocabulary (the single-file modules and `prompts`) ← pure (`context`, `reports`, …) and edges (`adapters`, `store`, …)
← `session` ← `engine` ← `cli`. Imports inside functions and under TYPE_CHECKING count: they are arrows too.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "python" / "codecompanion"

PURE = frozenset({"context", "memory", "reports", "completion", "retrieval", "edit_in_place"})
EDGES = frozenset({"adapters", "store", "workspace", "rules", "prompt_library", "tools", "mcp", "web"})
VOCABULARY_PACKAGES = frozenset({"prompts"})
# Modules with effects, or with results that differ between calls.
EFFECTS = frozenset(
    {
        *("asyncio", "concurrent", "ctypes", "fcntl", "ftplib", "glob", "http", "importlib", "io", "logging"),
        *("multiprocessing", "os", "pynvim", "random", "sched", "secrets", "selectors", "shutil", "signal", "socket"),
        *("socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib", "uuid"),
    }
)
# Modules of a pure package that are edges nevertheless: none.
EFFECTFUL_MODULES = frozenset[str]()
# Built-in policies, families of code models and forms of imports are package data, read once like code.
DATA_READERS = frozenset(
    {
        "context.policy.policy_catalog",
        "retrieval.ranking.tables",
        "completion.prompt_budgets",
        "completion.families",
        "completion.forms",
        "completion.imports",
    }
)
BRIDGE = "engine.bridge"


def layer_of(module: str) -> str:
    """Return the layer of a module name relative to the package (`context.editing.clear_tool_results` → `pure`)."""
    first = module.partition(".")[0]
    if module in EFFECTFUL_MODULES:
        return "edge"
    if first in PURE:
        return "pure"
    if first in EDGES:
        return "edge"
    if first in ("session", "engine", "cli"):
        return first
    if first == "__main__":
        return "cli"
    return "vocabulary"


ALLOWED = {
    "vocabulary": {"vocabulary"},
    "pure": {"vocabulary", "pure"},
    "edge": {"vocabulary", "edge"},
    "session": {"vocabulary", "pure", "edge", "session"},
    "engine": {"vocabulary", "pure", "edge", "session", "engine"},
    "cli": {"vocabulary", "pure", "edge", "session", "engine", "cli"},
}


def imported_names(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of every import, including those by `import_module("…")`."""
    parts = ["codecompanion", *module.split(".")] if module else ["codecompanion"]
    package = parts if is_package else parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield node.lineno, str(node.args[0].value)


@cache
def imports_of(path: Path, module: str) -> tuple[tuple[int, str], ...]:
    """Return line and name of every import of a file, read once for all walks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(imported_names(tree, module, path.name == "__init__.py"))


def find_violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return one line for every import of `source` (the module `module`) that the design forbids."""
    tree = ast.parse(source)
    layer = layer_of(module)
    found = [
        f"{module}:{line} ({layer}) imports {name}: {why}"
        for line, name in imported_names(tree, module, is_package)
        if (why := why_forbidden(module, layer, name))
    ]
    if layer == "pure":
        found += [
            f"{module}:{node.lineno} (pure) calls {node.func.id}()"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "print", "input")
        ]
    return found


def why_forbidden(module: str, layer: str, name: str) -> str:
    """Return the broken rule, "" when the import is fine."""
    top = name.partition(".")[0]
    if top == "codecompanion":
        return why_forbidden_arrow(module, layer, name.removeprefix("codecompanion").lstrip("."))
    if top == "pynvim":
        return "" if module == BRIDGE else "only engine.bridge and the rplugin file may"
    if layer == "vocabulary" and top not in sys.stdlib_module_names and top != "msgspec":
        return "vocabulary knows only the standard library and msgspec"
    if layer == "pure" and module not in DATA_READERS:
        if top in EFFECTS or (top == "pathlib" and not name.startswith("pathlib.Pure")):
            return "pure code has no effects"
        if top not in sys.stdlib_module_names and top not in ("msgspec", "tree_sitter"):
            return "pure code knows only the standard library and msgspec"
    return ""


def why_forbidden_arrow(module: str, layer: str, target: str) -> str:
    """Return the broken rule of an import within the package."""
    target_layer = layer_of(target) if target else "vocabulary"
    if target_layer not in ALLOWED[layer]:
        return f"{layer} may not import {target_layer}"
    one, other = module.partition(".")[0], target.partition(".")[0]
    if layer == target_layer == "edge" and one != other:
        return "edges never import each other"
    return ""


def modules() -> Iterator[tuple[Path, str]]:
    """Yield every file with its module name relative to the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_imports_point_one_way() -> None:
    """The rules are in architecture.md, Layers and rooms, 1-4."""
    violations = [
        violation
        for path, module in modules()
        for violation in find_violations(
            path.read_text(encoding="utf-8"), module, is_package=path.name == "__init__.py"
        )
    ]
    assert not violations, "\n".join(violations)


def circles(arrows: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
    sorter = TopologicalSorter(arrows)
    try:
        sorter.prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        without = {module: set(targets) - set(found[:1]) for module, targets in arrows.items() if module != found[0]}
        return [found, *circles(without)]
    return []


def arrows_of_the_package() -> dict[str, set[str]]:
    """Return each module's imports from the package, including those under TYPE_CHECKING and inside functions."""
    known = {module: path for path, module in modules()}
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        names = [name for _, name in imports_of(path, module)]
        ours = [name.removeprefix("codecompanion.") for name in names if name.startswith("codecompanion.")]
        found[module] = {name if name in known else name.rpartition(".")[0] for name in ours} - {module, ""}
    return found


def test_no_module_imports_itself_indirectly() -> None:
    """Without cycles every module can be read, and tested, with only the modules below it."""
    assert circles(arrows_of_the_package()) == []


def test_a_cycle_is_found() -> None:
    """The check must report a cycle."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_scripts_import_existing_modules() -> None:
    """Scripts in `bench/` and `tools/` without tests would break silently when a module moves."""
    for path in [*(REPO / "bench").glob("*.py"), *(REPO / "tools").rglob("*.py")]:
        for line, name in imported_names(ast.parse(path.read_text(encoding="utf-8")), "", False):
            if name.startswith("codecompanion."):
                module, _, member = name.rpartition(".")
                is_there = hasattr(importlib.import_module(module), member) or importlib.util.find_spec(name)
                assert is_there, f"{path.name}:{line}: there is no {name}"


def test_the_walk_sees_the_package() -> None:
    """Otherwise the check above would pass for an empty folder."""
    layers = {layer_of(module) for _, module in modules()}
    assert layers >= {"vocabulary", "pure", "edge", "session", "engine"}


def test_only_the_rplugin_file_and_the_bridge_name_pynvim() -> None:
    """architecture.md, Layers and rooms, 4: one door to the editor."""
    named = dict(modules())
    files = [*named, *(REPO / "rplugin").rglob("*.py")]
    naming = {
        path.relative_to(REPO).as_posix()
        for path, module in ((path, named.get(path, "")) for path in files)
        for _, name in imports_of(path, module)
        if name.partition(".")[0] == "pynvim"
    }
    assert naming == {"python/codecompanion/engine/bridge.py", "rplugin/python3/codecompanion_host.py"}


def test_lua_requires_no_message_model() -> None:
    """architecture.md, Layers and rooms, 5: Lua draws and asks; it counts no tokens and knows no policy."""
    forbidden = ("tiktoken", "estimate_tokens", "count_tokens")
    naming = [
        f"{path.relative_to(REPO)}: {word}"
        for path in (REPO / "lua").rglob("*.lua")
        for word in forbidden
        if word in path.read_text(encoding="utf-8")
    ]
    assert not naming


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model.messages", "import openai"),
        ("model.messages", "from codecompanion.context import editing"),
        ("model.messages", "def f():\n    from ..store import db"),
        ("context.editing.trimming", "import time"),
        ("context.editing.trimming", "import pynvim"),
        ("context.editing.trimming", "from pathlib import Path"),
        ("context.editing.trimming", "text = open('x').read()"),
        ("context.editing.trimming", "from codecompanion.adapters.base import Adapter"),
        ("context.editing.trimming", "from ...store import db"),
        ("context.editing.trimming", "import importlib\nimportlib.import_module('codecompanion.store.db')"),
        ("context.editing.trimming", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sqlite3"),
        ("adapters.openai_chat", "from codecompanion.context import budget"),
        ("adapters.openai_chat", "from codecompanion.store import db"),
        ("tools.runner", "from codecompanion.session import turn"),
        ("session.turn.turn", "from codecompanion.engine import runtime"),
        ("session.turn.turn", "import pynvim"),
        ("engine.runtime", "import pynvim"),
        ("engine.runtime", "from codecompanion.cli import doctor"),
    ],
)
def test_a_wrong_arrow_is_found(module: str, source: str) -> None:
    """The check must report each of these."""
    assert find_violations(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model.messages", "import msgspec\nimport hashlib\nfrom codecompanion.errors import InputError"),
        (
            "context.editing.trimming",
            "from pathlib import PurePosixPath\nfrom ..work import Work\nimport codecompanion.counting.tokens",
        ),
        (
            "adapters.openai_chat",
            "import openai\nfrom .base import Adapter\nimport codecompanion.model.messages",
        ),
        (
            "session.turn.turn",
            "import asyncio\nfrom codecompanion.context import pipeline\nimport codecompanion.store",
        ),
        ("engine.bridge", "import pynvim\nfrom codecompanion.session import session"),
    ],
)
def test_a_correct_arrow_is_not_reported(module: str, source: str) -> None:
    """The check must not raise false alarms."""
    assert find_violations(source, module) == []
