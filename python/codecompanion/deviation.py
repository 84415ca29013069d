"""Describes where one of our tables differs from the document it follows: policies, and stages of gathering code."""

from __future__ import annotations

from typing import Any

import msgspec


class Deviation(msgspec.Struct, frozen=True):
    """A difference from the document: its path in the table (`stage.tier.step.parameter`), and its reason.

    `ours` and `document` are the values of a parameter; None if the document has no such parameter.
    """

    place: str
    why: str
    ours: Any = None
    document: Any = None
