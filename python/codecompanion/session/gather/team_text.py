"""Reads the text about the team from a file or from the user's program.

The program's output is cached for a minute (R-240).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import decode, read_bytes
from codecompanion.retrieval.team import MAX_CHARS
from codecompanion.session.gather.gatherers import MayUse, use_all
from codecompanion.settings_sections import TeamSettings

KEPT_S = 60.0
_MAX_BYTES = 16 * MAX_CHARS


class TeamText:
    """Reads the text about the team as configured. `environment`: the environment of the program.

    `may_use` decides on files of the project: the configured file, and files that the command names. The command runs
    in the project's folder, which could provide modules and settings for it, so `is_trusted` must allow that folder.
    """

    def __init__(
        self,
        settings: TeamSettings,
        environment: Mapping[str, str],
        may_use: MayUse = use_all,
        is_trusted: Callable[[Path], bool] = lambda root: True,
    ) -> None:
        self.settings, self._environment = settings, environment
        self._may_use, self._is_trusted = may_use, is_trusted
        self._kept = dict[str, tuple[float, str]]()

    async def read(self, root: Path) -> str:
        """Return the text for a project, or "" if there is none.

        Raises: ToolError: the program or the file cannot be used, or the folder is not trusted; the message says why.
        """
        if not self.settings.command:
            return await asyncio.to_thread(self._read_file, root) if self.settings.file else ""
        if not await asyncio.to_thread(self._may_run, root):
            raise ToolError("context.team.command runs only in a folder that you trust (:CodeCompanion trust)")
        key = os.fspath(root)
        at, text = self._kept.get(key, (-KEPT_S, ""))
        if time.monotonic() - at >= KEPT_S:
            text = await self._run(root)
            self._kept[key] = (time.monotonic(), text)
        return text

    def _may_run(self, root: Path) -> bool:
        """Return whether the project, and every project file that the command names, is trusted."""
        if not self._is_trusted(root):
            return False
        files = (root / word for word in self.settings.command if not Path(word).is_absolute())
        return all(self._may_use(root, path, path.read_bytes(), True) for path in files if path.is_file())

    def _read_file(self, root: Path) -> str:
        path = root / Path(self.settings.file).expanduser()
        content = read_bytes(path.resolve(), 1_000_000)
        is_users = not path.resolve().is_relative_to(root.resolve())
        return decode(content).text if is_users or self._may_use(root, path, content, False) else ""

    async def _run(self, root: Path) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.settings.command,
                cwd=root,
                env=dict(self._environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"context.team.command cannot be run: {error}") from error
        try:
            assert process.stdout is not None  # noqa: S101  PIPE
            output = await process.stdout.read(_MAX_BYTES)
            if len(output) >= _MAX_BYTES:
                return decode(output).text
            status = await process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, 9)
                await process.wait()
        if status != 0:
            raise ToolError(f"context.team.command ended with status {status}")
        return decode(output).text
