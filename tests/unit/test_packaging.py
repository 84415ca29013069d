"""Lock files, Makefile and CI fit together."""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from pathlib import Path

import pytest

from codecompanion.engine.__main__ import NEEDED

REPO = Path(__file__).resolve().parents[2]
MAKE_TARGETS = (
    *"setup demo chat test check journeys screens external test-peers test-mcp test-semantic".split(),
    *"lint types doc doc-check bench ci clean".split(),
)


EXTRAS = {"": (), "-semantic": ("semantic",), "-mcp": ("mcp",), "-semantic-mcp": ("semantic", "mcp")}
"""The extras in a lock file, by the suffix of its name."""
LOCKS = tuple(f"requirements{name}.lock" for name in EXTRAS)


def locked(name: str = "requirements.lock") -> dict[str, str]:
    """Return name → version of a lock file."""
    text = (REPO / name).read_text()
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", text, re.MULTILINE))


def test_every_runtime_dependency_is_locked_with_hashes() -> None:
    """The private environment is installed with --require-hashes from this file alone."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=\[ ]", text)[0] for text in project["dependencies"]}
    assert names <= set(locked())
    for lock in LOCKS:
        entries = re.split(r"\n(?=\S)", (REPO / lock).read_text().strip())
        without_hash = [entry.split()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
        assert not without_hash, lock
    assert not names & {"pytest", "ruff"}, "no development tools in the user's environment"


def test_all_lock_files_name_the_same_versions() -> None:
    """`make lock` writes them all; one alone would mean that tests run with other packages than users."""
    packages = tomllib.loads((REPO / "uv.lock").read_text())["package"]
    versions = {package["name"]: package.get("version", "") for package in packages}
    for lock in LOCKS:
        assert {name: versions.get(name) for name in locked(lock)} == locked(lock)


@pytest.mark.parametrize("name", EXTRAS)
def test_the_lock_file_of_an_extra_is_the_users_plus_the_extra(name: str) -> None:
    """`:CodeCompanion install semantic` and `install mcp` install from it instead of the other."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    wanted = (text for extra in EXTRAS[name] for text in project["optional-dependencies"][extra])
    extra = {re.split(r"[<>=\[ ]", text)[0] for text in wanted}
    plain, with_extra = locked(), locked(f"requirements{name}.lock")
    assert plain.items() <= with_extra.items()
    assert extra <= set(with_extra) - set(plain)


def test_no_lock_file_depends_on_the_machine_that_made_it() -> None:
    """A local index or a private mirror in a lock file breaks every other installation."""
    for name in ("uv.lock", *LOCKS):
        text = (REPO / name).read_text()
        hosts = set(re.findall(r"https?://([^/\"\s]+)", text))
        assert hosts <= {"pypi.org", "files.pythonhosted.org"}, name
        assert "file://" not in text
        assert "find-links" not in text


def test_the_hosts_check_names_importable_modules() -> None:
    """A misspelt name would reject every Python."""
    assert [name for name in NEEDED if importlib.util.find_spec(name) is None] == []


def test_every_make_target_has_its_help_line() -> None:
    """`make` without a target lists the targets."""
    text = (REPO / "Makefile").read_text()
    assert [name for name in MAKE_TARGETS if not re.search(rf"^{name}:.*## \S", text, re.MULTILINE)] == []


def test_ci_runs_the_developers_checks() -> None:
    """The Makefile has the only list of checks."""
    script = REPO / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make ci" in script.read_text()
    line = re.search(r"^ci:(.*?)##", (REPO / "Makefile").read_text(), re.MULTILINE)
    assert line is not None
    assert {"lint", "types", "doc-check", "test"} <= set(line[1].split())
