"""Tests a kind of sandbox on this system by running a command that tries to write and read outside it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from codecompanion.formats.find_program import find_program
from codecompanion.tools.sandbox import mount_plan
from codecompanion.tools.sandbox.confined import Confined, Kind, Pipes, launcher_pipes

PROBE_S = 10.0
_SECRET = "probe-of-the-sandbox"  # noqa: S105 not a real secret
_HELD = 42
_MEANING: Final = {
    10: "the workspace cannot be written",
    11: "a write outside the workspace succeeds",
    12: "a hidden file is readable",
}
MakeConfined = Callable[[Kind, tuple[str, ...], mount_plan.Places, Path, bool, Pipes, Mapping[str, str]], Confined]


def why_not(
    kind: Kind, confined: MakeConfined, home: Path, needed: tuple[Path, ...], environment: Mapping[str, str]
) -> str:
    """Return why a kind does not work here: the action it failed to block, or its error; "" means that it works."""
    if kind == "bubblewrap":
        try:
            find_program("bwrap", search_path=environment.get("PATH", ""), of_root=True)
        except FileNotFoundError:
            return "not installed as a system package"
    if kind == "sandbox-exec" and not Path("/usr/bin/sandbox-exec").exists():
        return "not installed"
    with tempfile.TemporaryDirectory(prefix="codecompanion-probe-") as made:
        folder = Path(made).resolve()
        for name in ("workspace", "outside", "secret", "private"):
            (folder / name).mkdir()
        (folder / "secret" / "key").write_text(_SECRET, "ascii")
        places = mount_plan.Places(
            root=folder / "workspace", home=home, private=folder / "private", environment=environment,
            hidden=(folder / "secret",), needed=needed,
        )  # fmt: skip
        script = (
            f"echo 1 > inside || exit 10; (echo 1 > {folder}/outside/file) 2>/dev/null && exit 11;"
            f" (cat {folder}/secret/key) 2>/dev/null | grep -q {_SECRET} && exit 12; exit {_HELD}"
        )
        try:
            code, problem = _run(lambda pipes: confined(
                kind, ("/bin/sh", "-c", script), places, places.root, False, pipes,
                {"PATH": os.defpath, "HOME": str(home)},
            ))  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        if (folder / "outside" / "file").exists():
            return _MEANING[11]
    if code == _HELD:
        return ""
    return _MEANING.get(code or 0) or problem.strip().rpartition("\n")[2][:300] or f"it fails ({code})"


def _run(confined: Callable[[Pipes], Confined]) -> tuple[int | None, str]:
    """Return the exit code of a confined command and its error message."""
    with launcher_pipes() as launcher:
        made = confined(launcher.theirs)
        ended = subprocess.run(
            made.argv, env=dict(made.environment), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False,
            pass_fds=launcher.theirs.inherited(), start_new_session=True, timeout=PROBE_S,
        )  # fmt: skip
        stderr = ended.stderr.decode("utf-8", "replace")
        report = launcher.report()
        if report is None or not report.has_begun:
            return ended.returncode, stderr
        return report.code, report.problem or stderr
