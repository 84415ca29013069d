"""Describes how our tables (policies, stages of gathering code) differ from the documents that they follow."""

from __future__ import annotations

from typing import Any

import msgspec


class Deviation(msgspec.Struct, frozen=True):
    """A difference between a table and its document: the path (`stage.tier.step.parameter`), and the reason.

    `ours` and `document` are the two values of a parameter; `document` is None if the document has no such parameter.
    """

    place: str
    why: str
    ours: Any = None
    document: Any = None
