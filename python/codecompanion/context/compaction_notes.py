"""Writes notes for the user about a compaction that only partly worked as planned (lessons 11, 14; R-529, R-434)."""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.context.stage_report import StageReport
from codecompanion.context.summary.spare_model import TOO_SLOW, UNUSABLE

NO_MODEL = "no model"
"""Displayed author of a summary written from the log alone."""
IN_PLACE = " in the chat"
"""Suffix of the model name if the model was asked within the chat, using its prompt cache."""
_SHOWN = 5


def author_of(report: StageReport, asked: Sequence[str]) -> str:
    """Return the author of the summary and the models that failed before it, such as `no model (gpt-x failed)`.

    `asked`: names of the models asked, in order; if none was asked, the result is `no model: …` with the reason.
    """
    known = report.details.failure or ""
    if not report.asked and (known.endswith(UNUSABLE) or known.startswith(TOO_SLOW)):
        return f"{NO_MODEL}: {known}"
    names = list(dict.fromkeys(asked))
    by_model = bool(names) and report.asked and _is_by_model(report)
    author, failed = (names[-1], names[:-1]) if by_model else (NO_MODEL, names)
    author += IN_PLACE if report.details.in_place else ""
    return f"{author} ({' and '.join(failed)} failed)" if failed else author


def _is_by_model(report: StageReport) -> bool:
    return report.details.written_by in ("model", "caller") or report.details.summary_source == "utility"


def why_not_by_model(report: StageReport) -> str:
    """Return why the model that was asked did not write the summary, without a full stop, or "" if it did."""
    if _is_by_model(report):
        return ""
    why = report.details.failure or report.details.summary_detail or _last_problem(report) or report.not_asked
    return (why or "the model failed").rstrip(".")


def notes_on(report: StageReport) -> str:
    """Return sentences for the user about the author and reliability of the summary, or ""."""
    if report.work is None:
        return ""
    details = report.details
    notes: list[str] = []
    was_wanted = report.asked or (report.not_asked and report.work.summary)
    why = why_not_by_model(report) if was_wanted else ""
    if why:
        notes.append(without_a_model(why))
    if details.unverified:
        names = (details.unverified_names or ())[:_SHOWN]
        rest = f" and {details.unverified - len(names)} more" if details.unverified > len(names) else ""
        notes.append(f"Marked as unverified in the summary (not found in the chat): {', '.join(names)}{rest}.")
    if details.orders_left_out:
        notes.append("Instructions that you had not given were removed from the summary.")
    return " ".join(notes)


def without_a_model(why: str) -> str:
    """Return a sentence which says that the summary was written without a model, and why."""
    return f"The summary was written without a model: {why.rstrip('.')}."


def _last_problem(report: StageReport) -> str:
    """Return the problem of the last tier tried, without the tier's name."""
    return report.problems[-1].partition(": ")[2] if report.problems else ""
