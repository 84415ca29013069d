"""Replaces an attached file by a reference if an earlier message already contains its text.

As in `editor_context/already_sent.py`, a request contains the same content only once. But an attachment is permanent:
when the message that shows the text is cleared, summarised or removed, the projection of the view
(`model/references.py`) puts the text back into the attachment.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.formats.fencing import fenced_in
from codecompanion.formats.plural import counted
from codecompanion.model.mentioned import Reference
from codecompanion.model.messages import Message, with_changes
from codecompanion.session.window.context_control import ContextControl


def reference_if_above(control: ContextControl, message: Message, above: Sequence[Message]) -> Message:
    """Return a file or buffer attachment for the view: a reference if earlier messages already show its text."""
    if message.file is None:
        return message
    from codecompanion.retrieval.shown_lines import paths_shown, seen_in, shows_lines

    path = message.path or ""
    showing = {m.id for m in above if shows_lines(m) and path in paths_shown(m)}
    if not showing:
        return message
    from codecompanion.session.editor_context.already_sent import MIN_NAMED_CHARS, refer_to

    known = control.fitting.still_sent(showing, "", message.tokens)
    lines = next(fenced_in(message.text), [])
    seen = seen_in(known)
    if sum(map(len, lines)) < MIN_NAMED_CHARS or not seen.has_all(path, lines):
        return message
    shown_by = seen.ids_of(path, 1, len(lines))
    where, _ = refer_to([m for m in known if m.id in shown_by])
    size = counted(len(lines), "line")
    sentence = f"`{path}` is attached, all {size}: not sent again, because it is above, {where}."
    short = control.meter.counted(with_changes(message, content=sentence))
    ids = tuple(m.id for m in known if m.id in shown_by)
    whole = Reference(ids, sentence, message.text, more_tokens=message.tokens - short.tokens, restores=True)
    return with_changes(short, references=(whole,))
