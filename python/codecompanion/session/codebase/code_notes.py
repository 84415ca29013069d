"""The notes below a message about its code: why there is none, or which secret files were sent (R-201, R-266)."""

from __future__ import annotations

from pathlib import Path

from codecompanion.formats.plural import counted
from codecompanion.model.gathered import Gathered, likely_text
from codecompanion.model.messages import Message
from codecompanion.retrieval.asks_something import asks_something
from codecompanion.retrieval.index_evidence import may_ask_in_other_language
from codecompanion.workspace.secret_files import is_secret

NOT_ABOUT = "No code added ({why}) · #{{codebase}} adds it"
_NO_KEYWORDS = "question did not look project-related"


def why_no_code(text: str, gathered: Gathered, asked_in: Path | None, *, is_project: bool) -> tuple[str, ...]:
    """Return a note on why a message got no code, or () if no code is expected.

    `asked_in`: the folder for which code was requested, None = the policy gathers automatically.
    """
    if asked_in is not None:
        return (f"No code · {_why_nothing(gathered, asked_in, is_project)} · why: /context",)
    said = gathered.classification
    if said.is_codebase_related or not (asks_something(text) or may_ask_in_other_language(text)):
        return ()
    if said.likelihood is None:
        return (NOT_ABOUT.format(why=_NO_KEYWORDS),)
    return (NOT_ABOUT.format(why=f"{likely_text(said.likelihood)} to be about the project"),)


def _why_nothing(gathered: Gathered, root: Path, is_project: bool) -> str:
    """Return a short reason why a question got no code."""
    if not is_project:
        return f"{root.name or root} is not a project"
    if gathered.timed_out:
        return f"{', '.join(gathered.timed_out)} took too long"
    if gathered.failed:
        return f"{', '.join(gathered.failed)} failed"
    if gathered.found:
        return f"none of {counted(len(gathered.found), 'snippet')} found fits"
    return f"nothing found in {root.name}"


def with_secrets(message: Message) -> tuple[str, ...]:
    """Return a sentence about the secret files that are sent because the user named them (R-266)."""
    named = dict.fromkeys(piece.path for piece in message.gathered if piece.source == "mention")
    secret = [path for path in named if is_secret(path)]
    if not secret:
        return ()
    them = "it" if len(secret) == 1 else "them"
    return (f"Sent with {counted(len(secret), 'secret file')} because you named {them}: {', '.join(secret)}",)
