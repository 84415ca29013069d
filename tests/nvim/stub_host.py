"""A host with a stub runtime: started by tests through `python.host_prog` instead of Python.

`hello` works; every other verb reports its request, and `save_draft` carries commands in its text, which have the
effects of real requests without the real engine. The process, the bridge and the loop are the real ones.
"""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from codecompanion.engine import bridge
from codecompanion.errors import ConfigError, RateLimited
from codecompanion.wire import events, requests


class StubRuntime:
    """A runtime that answers requests without any effect."""

    def __init__(self, emit):
        """Keep `emit`."""
        self.emit = emit
        self.listed = asyncio.Event()

    async def handle(self, request):
        """Carry out the request."""
        match request:
            case requests.Hello():
                if refusal := os.environ.get("STUB_REFUSES"):
                    raise ConfigError("interactions.chat.adapter", refusal)
                if trace := os.environ.get("STUB_TRACE"):
                    with Path(trace).open("a") as file:
                        file.write(f"hello {os.getpid()}\n")
                return None
            case requests.OpenChat():
                await (self.listed.wait() if "STUB_LISTS_FIRST" in os.environ else asyncio.sleep(0.05))
                self.emit(events.Notice(chat=request.chat, level="INFO", text="opened"))
                return None
            case requests.SaveDraft(text=text):
                return await self.obey(request, text)
            case requests.Regenerate(snapshot=snapshot):
                return [Path(buffer.name).name for buffer in snapshot.buffers]
            case requests.ListSessions():
                self.listed.set()
                return [{"cwd": request.cwd, "pid": os.getpid()}]
        return type(request).__name__

    async def obey(self, request, text):
        """Carry out the command in `text`."""
        command, _, argument = text.partition(" ")
        match command:
            case "die":
                print("last words", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            case "burst":
                for number in range(int(argument)):
                    self.emit(events.Text(chat=request.chat, text=f"chunk{number} "))
            case "raise":
                raise RateLimited("The provider is busy; try again in a minute")
            case "bug":
                raise TypeError("a bug with key sk-very-secret in it")
            case "task_bug":
                bridge._live[0]._engine.spawn(self.obey(request, "bug"), "a task")
            case "thread_bug":
                bridge._live[0]._guard.thread(lambda: 1 // 0, "a thread")
            case "unjson":
                return object()
            case "hang_on_close":
                threading.Thread(target=threading.Event().wait, daemon=False).start()
            case "close_to":
                self.close_to = argument
            case _:
                return text
        return None

    close_to = ""

    async def aclose(self):
        """Report that it was called."""
        if self.close_to:
            Path(self.close_to).write_text("closed")


if __name__ == "__main__":
    bridge.default_runtime = StubRuntime
    from codecompanion.engine import __main__ as entry

    os._exit(entry.main(sys.argv[3:]))  # argv: stub_host.py -m codecompanion.engine FILE
