"""Lists the policies available to a chat and selects one (K1: one active policy per chat)."""

from __future__ import annotations

from typing import Any

from codecompanion.errors import ConfigError
from codecompanion.model.history import PolicySet
from codecompanion.session.actions.join_memory import follow_policy
from codecompanion.session.chat.chat import Chat
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.events import PolicyChanged


def list_policies(control: ContextControl) -> list[dict[str, Any]]:
    """Return `[{name, description, current}]` for the built-in and the user's own policies."""
    stopped = control.services.stopped
    return [
        {
            "name": policy.name,
            "description": f"Stopped: {stopped[policy.name].problem}" if policy.name in stopped else policy.description,
            "current": policy.name == control.policy.name,
        }
        for policy in control.services.policies()
    ]


async def choose_policy(chat: Chat, name: str) -> None:
    """Use another policy for the chat from the next request on; "" selects the configured policy.

    Changes made under the old policy remain and can still be undone.

    Raises:
        ConfigError: the policy does not exist or is stopped; nothing is changed.
        StoreError: the choice cannot be stored; it applies until the chat is closed.
    """
    control, name = chat.control, " ".join(name.split())
    if name in control.services.stopped:
        stopped = control.services.stopped[name]
        raise ConfigError(f"/policy {name}", f"the policy is stopped ({stopped.problem})")
    control.use_policy(name)
    await chat.log.write(PolicySet(policy=name))
    policy = control.policy
    chat.emit(PolicyChanged(chat=chat.chat_id, policy=policy.name, description=policy.description))
    await follow_policy(chat)
    control.tell_ignored_settings()
    chat.show_meter()
