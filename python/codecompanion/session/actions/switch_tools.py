"""Lists and switches the tools of a chat at the editor's request; imported on demand."""

from __future__ import annotations

from typing import Any

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.session.attachments.chosen_tools import only_those, toggled, tool_list
from codecompanion.session.chat.chat import Chat
from codecompanion.wire.requests import ChooseTools


async def list_tools(chat: Chat) -> dict[str, Any]:
    """Return all tools and groups as they apply to the chat's next message, with their token costs."""
    mcp = chat.services.mcp
    if mcp is not None:
        await mcp.look(chat)
    await chat.control.tools.settle_all()
    return tool_list(chat.control)


async def choose_tools(chat: Chat, request: ChooseTools) -> str:
    """Switch tools and groups of the chat on or off; return one sentence that names the tools now offered.

    Raises:
        InputError: the tool or group does not exist, tools are off, or a turn is running.
    """
    control = chat.control
    if not chat.services.settings.tools.enabled:
        raise InputError("Tools are switched off: interactions.chat.tools.opts.enabled is false.")
    await control.tools.settle_all()

    async def change() -> str:
        token = chat.services.new_token()
        if request.how == "only":
            changed = only_those(control, request.names, token)
        else:
            on = {"on": True, "off": False}.get(request.how)
            changed = toggled(control, request.names, on, token)
        if changed is not None:
            await chat.log.write(changed)
            chat.services.usage_doubts.try_tools(control.endpoint, control.model)
            if control.adapter_name:
                control.adapter().forget_tool_refusal(control.model)
            control.offer_tools()
            chat.context.show()
        if control.lacks_tools:
            return f"No tools are sent: {control.lacks_tools}."
        tokens = control.meter.counter.tools(control.specs)
        return f"{counted(len(control.specs), 'tool')} offered in this chat, about {tokens:,} tokens."

    sentence = await chat.occupy(change)
    chat.show_meter()
    return sentence
