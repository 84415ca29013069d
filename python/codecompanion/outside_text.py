"""What reading text from outside may raise: bad input, however it is bad. Standard library and msgspec only.

A parser that is given two thousand opening brackets raises `RecursionError`, one that is given a number or a string
without end may raise `MemoryError`: both are the text's fault, not ours, and must not end what is going on.
"""

from __future__ import annotations

import msgspec

NOT_READABLE = (msgspec.MsgspecError, ValueError, RecursionError, MemoryError)
"""For `except` around every decode of what a model, a server, a file or a user has written, in whatever format."""
