"""Writes the log file, `stdpath("log")/codecompanion.log`: mode 0600, rotating, secrets redacted (lesson 44).

Redaction happens on the finished line, tracebacks included, so no call site can forget it. Several editors may write to
the same file, so before each line the handler checks whether another process has rotated it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

MAX_BYTES = 2_000_000
BACKUPS = 2
MIN_SECRET_CHARS = 4  # redacting shorter values would hide ordinary words
REDACTED = "[redacted]"

_secrets: set[str] = set()
_ordered: tuple[str, ...] = ()

logger = logging.getLogger("codecompanion")
"""The logger of this package; until a file is open, warnings go to stderr, whose tail the editor keeps."""


def register_secrets(values: Iterable[str]) -> None:
    """Redact these values (API keys) in the log and in notices from now on."""
    global _ordered
    for value in values:
        for form in (value, value.strip()):
            if len(form) >= MIN_SECRET_CHARS:
                _secrets.add(form)
    _ordered = tuple(sorted(_secrets, key=len, reverse=True))


def count_secrets() -> int:
    """Return the number of registered secrets, which rises when another one becomes known."""
    return len(_secrets)


def redact(text: str) -> str:
    """Return `text` without the registered secrets."""
    for secret in _ordered:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text


class _RedactingFormatter(logging.Formatter):
    """Redacts the whole line: message, arguments and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _PrivateRotatingFile(RotatingFileHandler):
    """A rotating log file that only its owner can read, shared by several processes."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        if self.stream is not None and not self._is_still_our_file(self.stream):
            self.stream.close()
            self.stream = self._open()
        return bool(super().shouldRollover(record))

    def _is_still_our_file(self, stream: TextIOWrapper) -> bool:
        try:
            return os.path.samestat(Path(self.baseFilename).stat(), os.fstat(stream.fileno()))
        except FileNotFoundError:
            return False

    def handleError(self, record: logging.LogRecord) -> None:
        """Write to stderr, whose tail the editor keeps, because a full disk must not stop the chat."""
        if logging.lastResort is not None:
            logging.lastResort.handle(record)


def open_log(path: str, level: str = "INFO") -> None:
    """Write the log to `path` from now on; `level` is one of TRACE, DEBUG, INFO, WARN, ERROR, OFF.

    Raises:
        OSError: the folder or file cannot be written.
    """
    close_log()
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = _PrivateRotatingFile(target, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8")
    handler.setFormatter(
        _RedactingFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")
    )
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(_level_number(level))


def close_log() -> None:
    """Flush and close the file."""
    for handler in list(logger.handlers):
        if isinstance(handler, _PrivateRotatingFile):
            logger.removeHandler(handler)
            logger.propagate = True
            logger.setLevel(logging.NOTSET)
            handler.close()


def _level_number(level: str) -> int:
    if level == "OFF":
        return logging.CRITICAL + 1
    if level == "TRACE":
        return 5
    return int({"WARN": logging.WARNING}.get(level, logging.getLevelName(level)))
