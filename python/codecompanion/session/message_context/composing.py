"""Turns editor mentions into context messages that precede the user's message.

They fit into the free room and contain no duplicates. Text that is already in the next request is replaced by a
reference (`already_sent`), provided that it stays in that request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from codecompanion.model.mentioned import Reference
from codecompanion.model.messages import EDITOR_TAG, Message, with_changes
from codecompanion.session.editor_context.already_sent import (
    Occurrence,
    Place,
    find_duplicates,
    fingerprint,
    has_lines,
)
from codecompanion.session.editor_context.rendered_items import (
    MIN_TOKENS,
    Rendered,
    name_of,
    render,
    render_duplicate,
    unchanged,
)
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.requests import EditorItem, Submit

_LARGE_CHARS = 200_000
"""Length in characters above which texts are counted and truncated in a thread."""


class Composing:
    """Turns the mentions in one chat's messages into context messages."""

    def __init__(self, services: Services, control: ContextControl) -> None:
        self._services, self._control = services, control

    async def messages(self, submit: Submit, items: Sequence[EditorItem], coming: Sequence[Message]) -> list[Message]:
        """Return the items as messages with token counts. `coming`: messages that precede them in the same request."""
        known = self._known(submit, items, coming)
        ids = [self._services.new_token() for _ in items]
        work = partial(self._without_repeated, submit, items, ids, known, coming)
        size = sum(len(text.text) for item in items for text in item.texts)
        rendered = await asyncio.to_thread(work) if size > _LARGE_CHARS else work()
        return [self._message(*one) for one in zip(ids, rendered, strict=True)]

    def _without_repeated(
        self,
        submit: Submit,
        items: Sequence[EditorItem],
        ids: Sequence[str],
        known: Sequence[Message],
        coming: Sequence[Message],
    ) -> list[Rendered]:
        """Return the items as messages; text that is already in the next request becomes a reference."""
        duplicates = self._find_duplicates(submit, items, ids, [*known, *coming])
        rendered = self._rendered(submit, items, duplicates)
        used = {name for occurrence in duplicates.values() if occurrence.beside for name in occurrence.ids}
        if any(name in used and not one.is_whole for name, one in zip(ids, rendered, strict=True)):
            # Do not refer to an item whose text was truncated or is itself a reference.
            duplicates = self._find_duplicates(submit, items, ids, [*known, *coming], beside=False)
            rendered = self._rendered(submit, items, duplicates)
        return self._without_same(items, ids, rendered, known)

    def _message(self, message_id: str, one: Rendered) -> Message:
        counted = self._control.meter.counted
        message = counted(
            Message(id=message_id, role="user", tag=EDITOR_TAG, content=one.content, mentioned=one.mentioned)
        )

        def with_more(reference: Reference) -> Reference:
            other = with_changes(message, content=one.content.replace(reference.text, reference.gone, 1))
            return msgspec.structs.replace(reference, more_tokens=counted(other).tokens - message.tokens)

        return with_changes(message, references=tuple(map(with_more, one.references)))

    def _known(self, submit: Submit, items: Sequence[EditorItem], coming: Sequence[Message]) -> tuple[Message, ...]:
        """Return earlier messages, oldest first, that may show mentioned text and are sent unchanged."""
        root = self._services.root(submit.snapshot)
        paths = {name_of(text, root) for item in items for text in item.texts if has_lines(text)}
        prints = {fingerprint(item) for item in items if _is_compared(item)}
        if not paths and not prints:
            return ()
        from codecompanion.retrieval.shown_lines import paths_shown, shows_lines

        candidates = [
            message
            for message in self._control.log.view.messages
            if (shows_lines(message) and not paths.isdisjoint(paths_shown(message)))
            or (message.mentioned is not None and message.mentioned.fingerprint in prints)
        ]
        if not candidates:
            return ()
        more = sum(message.tokens for message in (*candidates, *coming))
        return self._control.fitting.still_sent({message.id for message in candidates}, submit.text, more)

    def _find_duplicates(
        self,
        submit: Submit,
        items: Sequence[EditorItem],
        ids: Sequence[str],
        known: Sequence[Message],
        *,
        beside: bool = True,
    ) -> dict[Place, Occurrence]:
        if not any(has_lines(text) for item in items for text in item.texts):
            return {}
        from codecompanion.retrieval.shown_lines import seen_in

        root, by_id = self._services.root(submit.snapshot), {message.id: message for message in known}
        return find_duplicates(items, ids, seen_in(known), by_id, partial(name_of, root=root), beside=beside)

    def _rendered(
        self, submit: Submit, items: Sequence[EditorItem], duplicates: Mapping[Place, Occurrence]
    ) -> list[Rendered]:
        """Return the items as messages that fit their shared room; unused shares go to larger items."""
        room = self._control.fitting.room_for_mentioned(submit.text)
        root, meter, count = self._services.root(submit.snapshot), self._control.meter, self._services.count_text

        def scaled(text: str) -> int:
            return meter.scaled(count(text))

        named = [
            {number: occurrence for (item, number), occurrence in duplicates.items() if item == at}
            for at in range(len(items))
        ]
        sizes = {
            at: sum(scaled(text.text) for number, text in enumerate(item.texts) if number not in named[at])
            for at, item in enumerate(items)
        }
        left, shares = room, dict[int, int]()
        for done, at in enumerate(sorted(sizes, key=sizes.__getitem__)):
            share = left // (len(items) - done)
            shares[at] = share
            left -= min(share, sizes[at])
        return [render(item, root, max(shares[at], MIN_TOKENS), scaled, named[at]) for at, item in enumerate(items)]

    def _without_same(
        self, items: Sequence[EditorItem], ids: Sequence[str], rendered: Sequence[Rendered], known: Sequence[Message]
    ) -> list[Rendered]:
        """Return the items, with each repetition of another item or of an earlier message replaced by a reference."""
        above = {m.mentioned.fingerprint: m for m in known if m.mentioned is not None and m.mentioned.fingerprint}
        seen, kept = dict[str, tuple[str, str]](), list[Rendered]()
        for item, message_id, one in zip(items, ids, rendered, strict=True):
            shows = fingerprint(item) if _is_compared(item) and one.is_whole else ""
            if shows and shows in seen:
                kept.append(render_duplicate(item, *seen[shows]))
            elif shows and shows in above:
                kept.append(unchanged(item, above[shows]))
            else:
                kept.append(one)
            seen.setdefault(shows, (one.mentioned.written, message_id))
        return kept


def _is_compared(item: EditorItem) -> bool:
    """Return whether an item is compared as a whole; file lines are compared individually."""
    return any(not has_lines(text) for text in item.texts)
