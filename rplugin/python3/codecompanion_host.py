"""The remote plugin: two handlers that pass everything to `codecompanion.engine.bridge`.

Found by `python -m codecompanion.engine` (the plugin's own host) and by `:UpdateRemotePlugins` (the classic host).
Importing it is cheap and has no effect besides one path entry: a host shared with other plugins imports it whether or
not the chat is used. Not named like the package, or it would be imported instead of it.
"""

import os
import sys
from pathlib import Path

import pynvim

PACKAGE_PARENT = str(Path(__file__).resolve().parents[2] / "python")
if PACKAGE_PARENT not in sys.path:
    sys.path.insert(0, PACKAGE_PARENT)


@pynvim.plugin
class CodeCompanionHost:
    """Created by pynvim when its first message arrives."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self._nvim = nvim
        self._bridge: object = None

    @pynvim.rpc_export("codecompanion", sync=False)
    def receive(self, verb: str, payload: str) -> None:
        """Handle one request of the editor; must not raise, because a traceback here is a hit-enter prompt."""
        if self._bridge is None:
            self._bridge = self._connect()
        if self._bridge is not None:
            self._bridge.receive(verb, payload)  # type: ignore[attr-defined]

    def _connect(self) -> object:
        try:
            if sys.version_info < (3, 11):  # noqa: UP036 - the classic host runs whatever Python the user chose
                raise ImportError(f"Python 3.11 or newer is needed, {sys.executable} is {sys.version.split()[0]}")
            from codecompanion.engine.bridge import Bridge

            return Bridge(self._nvim)
        except Exception as error:  # shown as the reason for the failure
            reason = f"{sys.executable} cannot run the chat's host: {error}; run :CodeCompanion install"
            self._nvim.api.exec_lua("require('codecompanion.host').on_failure(...)", [reason], async_=True)
            return None

    @pynvim.function("CodeCompanionHostInfo", sync=True)
    def host_info(self, _arguments: list[object]) -> dict[str, object]:
        """Return which process answers (its presence in the manifest registers the plugin classically)."""
        return {"pid": os.getpid(), "python": sys.executable, "version": sys.version.split()[0]}
