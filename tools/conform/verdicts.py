"""Derives a verdict for each row from rows, claims and test results, and formats the verdicts as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tools.conform.claims import Claim
from tools.conform.rows import DOCUMENTS, Row, title

Outcome = Literal["passed", "failed", "skipped"]
Status = Literal["exact", "ours", "not applicable", "not shown"]


@dataclass(frozen=True)
class Result:
    """The outcome of a test, and which of `session`, `editor` and `command` it drove."""

    outcome: Outcome
    path: frozenset[str]


@dataclass(frozen=True)
class Verdict:
    """A row and whether it is shown; `reason` explains why it is ours, not applicable or not shown."""

    row: Row
    status: Status
    reason: str = ""


def together(results: Iterable[Result]) -> Result:
    """Return one result for all parameters of a test: the worst outcome, and the path common to all of them.

    Skipped parameters are ignored, unless all are skipped.
    """
    done = list(results)
    ran = [one for one in done if one.outcome != "skipped"] or done
    outcome: Outcome = next((o for o in ("failed", "skipped") if any(r.outcome == o for r in ran)), "passed")
    return Result(outcome, frozenset.intersection(*(one.path for one in ran)))


def judge(row: Row, claim: Claim | None, results: Mapping[str, Result]) -> Verdict:
    """Return the verdict on a row; `results` are keyed by test, without parameters."""
    if claim is None:
        return Verdict(row, "not shown", "no claim")
    if claim.not_applicable:
        return Verdict(row, "not applicable", claim.not_applicable)
    for test in claim.tests:
        result = results.get(test)
        if result is None:
            return Verdict(row, "not shown", f"{test} did not run")
        if result.outcome != "passed":
            return Verdict(row, "not shown", f"{test} {result.outcome}")
        if not result.path:
            return Verdict(row, "not shown", f"{test} drove no session, Neovim or command line")
    return Verdict(row, "ours" if row.deviation else "exact", row.deviation)


def table(verdicts: Iterable[Verdict], *, all_rows: bool = False) -> Iterator[str]:
    """Yield the lines of the table: one line for each system, then the rows that are not shown.

    With `all_rows`, every row has a line with its reason.
    """
    judged = list(verdicts)
    names = {document: title(document) for document in DOCUMENTS}
    width = max(map(len, names.values()))
    columns: tuple[Status, ...] = ("exact", "ours", "not applicable", "not shown")
    yield f"{'':{width}}  {'rows':>5}  " + "  ".join(f"{column:>14}" for column in columns)
    for document, name in [*names.items(), ("", "all")]:
        mine = [one for one in judged if document in ("", one.row.document)]
        counts = (sum(one.status == column for one in mine) for column in columns)
        yield f"{name:{width}}  {len(mine):>5}  " + "  ".join(f"{count:>14}" for count in counts)
    for one in judged:
        if one.status == "not shown" or all_rows:
            yield f"{one.row.number}  {one.status}{': ' * bool(one.reason)}{one.reason}"
