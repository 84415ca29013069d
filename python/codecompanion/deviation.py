"""A place where a table of ours differs from the document it follows: policies, and the stages of gathering code."""

from __future__ import annotations

from typing import Any

import msgspec


class Deviation(msgspec.Struct, frozen=True):
    """Something of ours: its place in the table (`stage.tier.step.parameter`), and why it is there.

    `ours` and `document` are the values of a parameter; None where the document has nothing of the kind.
    """

    place: str
    why: str
    ours: Any = None
    document: Any = None
