"""S5 `replace_attachments`: replaces files, buffers and images with reference placeholders (R-521…R-523)."""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import ReplaceAttachments
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.model.messages import BUFFER_TAGS, FILE_TAGS, IMAGE_TAG, Message, with_changes
from codecompanion.placeholders import TEMPLATES, image_cleared, mentioned_cleared


def replace_attachments(work: Work, params: ReplaceAttachments, env: Env) -> Outcome:
    """Return the work with placeholders in place of removed attachments, marked as compacted.

    The attachments also stay in `removed`, because the summary may describe their content.
    """
    placeholders: dict[str, Message] = {}
    for message in work.removed:
        text = _placeholder(message, params)
        if text is not None:
            marked = with_changes(
                message, content=text, compacted=True, tag=message.tag or IMAGE_TAG, tool_calls=(), role="user"
            )
            placeholders[message.id] = env.recounted(marked)
    if not placeholders:
        return work
    kept = {message.id: message for message in work.messages}
    messages = tuple(
        kept.get(message.id) or placeholders[message.id]
        for message in work.before
        if message.id in kept or message.id in placeholders
    )
    return msgspec.structs.replace(work, messages=messages)


def _placeholder(message: Message, params: ReplaceAttachments) -> str | None:
    """Return the placeholder of an attachment, with its id if it has no path; None for any other message."""
    if message.role != "user":
        return None
    if message.mentioned is not None:
        return mentioned_cleared(message.mentioned)
    name = message.path or message.id
    if message.tag in FILE_TAGS or message.documents:
        return TEMPLATES[params.file].format(path=name)
    if message.tag in BUFFER_TAGS:
        return TEMPLATES[params.buffer].format(path=name)
    if message.tag == IMAGE_TAG or message.images:
        paths = [image.path for image in message.images if image.path]
        return image_cleared(message.path or ", ".join(paths) or None)
    return None
