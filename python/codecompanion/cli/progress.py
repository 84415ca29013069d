"""Shows the progress of a command that takes longer than two seconds: one line on standard error, if it is a terminal.

The line is cleared before any other output and at the end, so that none of it remains on screen or in the answer.
Callers that hand over the terminal (to a question, an editor) call `stop` first.
"""

from __future__ import annotations

import shutil
import threading
import time
from typing import TextIO, cast

SHOWN_AFTER_S = 2.0
EVERY_S = 0.5
_CLEAR = "\r\x1b[K"


class Progress:
    """A context manager that shows the current step and the elapsed time; `wrap` the output stream of the answer."""

    def __init__(self, label: str, screen: TextIO, *, after_s: float = SHOWN_AFTER_S) -> None:
        self.text = label
        self._screen, self._after_s = screen, after_s
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_shown = False
        self._line_is_open = False
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        """Start the progress display; nothing is shown unless standard error is a terminal."""
        global _current
        _current = self
        if self._screen.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop showing progress and clear the line."""
        global _current
        _current = None
        self.stop()

    def stop(self) -> None:
        """Stop showing progress."""
        self._ended.set()
        with self._lock:
            self._clear()

    def wrap(self, out: TextIO) -> TextIO:
        """Return an output stream for the answer that clears the progress line first."""
        return cast(TextIO, _Answer(out, self)) if self._thread.is_alive() and out.isatty() else out

    def make_room(self, text: str) -> None:
        """Clear the line before `text` is printed."""
        with self._lock:
            self._clear()
            self._line_is_open = bool(text) and not text.endswith("\n")

    def _run(self) -> None:
        wait_s = self._after_s
        while not self._ended.wait(wait_s):
            wait_s = EVERY_S
            with self._lock:
                if not self._ended.is_set() and not self._line_is_open:
                    self._show()

    def _show(self) -> None:
        columns = shutil.get_terminal_size().columns
        text = f"{self.text} · {time.monotonic() - self._began:.0f} s"
        self._screen.write(_CLEAR + text[: columns - 1])
        self._screen.flush()
        self._is_shown = True

    def _clear(self) -> None:
        if self._is_shown:
            self._screen.write(_CLEAR)
            self._screen.flush()
            self._is_shown = False


class _Answer:
    """The output stream of the answer, on the same terminal as the progress line."""

    def __init__(self, out: TextIO, progress: Progress) -> None:
        self._out, self._progress = out, progress

    def write(self, text: str) -> int:
        self._progress.make_room(text)
        return self._out.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._out, name)


_current: Progress | None = None


def step(text: str) -> None:
    """Show the current step."""
    if _current is not None:
        _current.text = text


def stop() -> None:
    """Release the terminal for another program."""
    if _current is not None:
        _current.stop()
