"""The sandbox test of `:checkhealth`: attempts fail in every kind of sandbox and succeed without one."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from codecompanion.engine.doctor import sandbox_findings
from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.sandbox import sandbox as sandbox_module
from codecompanion.tools.sandbox.confined import Confined, Kind
from codecompanion.tools.sandbox.escape_check import ATTEMPTS, try_to_escape
from codecompanion.tools.sandbox.sandbox import LINUX_KINDS, Sandbox

AUTO = SandboxSettings(mode="auto", write=(), read=(), network=False)
REQUIRED = msgspec.structs.replace(AUTO, mode="required")
OFF = msgspec.structs.replace(AUTO, mode="off")


@pytest.mark.parametrize("kind", LINUX_KINDS)
def test_every_attempt_fails_in_the_sandbox(kind: Kind, tmp_path: Path) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    home.mkdir()
    sandbox = Sandbox(AUTO, private, (private,), {"HOME": str(home), "PATH": "/usr/bin:/bin"}, (kind,))
    if not sandbox.kind:
        pytest.skip(f"no sandbox of the kind {kind} here: {sandbox.why_none()}")
    assert [attempt.name for attempt in try_to_escape(sandbox) if attempt.got_through] == []
    assert list(home.iterdir()) == []
    [found, *_] = sandbox_findings(sandbox)
    assert found.ok
    tried = "a command could not write in the home folder, read a hidden file"
    assert found.text.startswith(f"{kind}; tested just now: {tried}")


@pytest.mark.parametrize("kind", LINUX_KINDS)
def test_a_home_folder_with_thousands_of_entries_has_a_sandbox(kind: Kind, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for number in range(3000):
        (home / f"{number:04}{'x' * 60}").touch()
    sandbox = Sandbox(AUTO, tmp_path / "private", (), {"HOME": str(home), "PATH": "/usr/bin:/bin"}, (kind,))
    if not sandbox.kind:
        assert "too long" not in sandbox.why_none()
        pytest.skip(f"no sandbox of the kind {kind} here: {sandbox.why_none()}")
    assert [attempt.name for attempt in try_to_escape(sandbox) if attempt.got_through] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attempts read /proc")
def test_every_attempt_succeeds_without_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(AUTO, tmp_path / "private", (), {"HOME": str(tmp_path)}, ("namespaces",))
    monkeypatch.setattr(sandbox, "confine", lambda argv, *_, **__: Confined(tuple(argv), {}))
    assert [attempt.name for attempt in try_to_escape(sandbox) if attempt.got_through] == list(ATTEMPTS)
    monkeypatch.setattr(sandbox_module.Sandbox, "kind", "namespaces")
    [found] = sandbox_findings(sandbox)
    assert not found.ok
    assert "a command could write in the home folder" in found.text


def test_no_sandbox_is_reported_with_its_consequence(tmp_path: Path) -> None:
    [found] = sandbox_findings(Sandbox(AUTO, tmp_path, kinds=()))
    assert not found.ok
    assert "none on this system, commands run as you" in found.text
    [found] = sandbox_findings(Sandbox(REQUIRED, tmp_path, kinds=()))
    assert "commands are refused" in found.text
    [found] = sandbox_findings(Sandbox(OFF, tmp_path))
    assert "switched off" in found.text
