"""What the editor's settings ask for beyond their types, made when the host is greeted: policies, files kept.

A mistake breaks no chat: the default stays in force. What is wrong, with the name of its key, is left in
`Services.mistakes` for every chat to say, because a sentence of that length does not fit the command line.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from codecompanion import settings
from codecompanion.adapters.redact import redact as hide_keys
from codecompanion.engine.log import count_secrets
from codecompanion.engine.log import redact as hide_secrets
from codecompanion.errors import ConfigError, InputError
from codecompanion.requests import Hello
from codecompanion.session.effects import Keeping
from codecompanion.session.services import Services
from codecompanion.store.checkpoints import CheckpointFiles
from codecompanion.store.memory import MemoryFiles, compile_exclusions

EXCLUDE_KEY = "interactions.chat.opts.memory.exclude"


def configure(services: Services, request: Hello) -> None:
    """Let the services keep what the settings want kept, and use only policies that can be used."""
    services.keeping = _keeping(services, request)
    _check_policies(services)


def _keeping(services: Services, request: Hello) -> Keeping:
    """Return where checkpoints and memories go; with a wrong exclusion nothing is remembered."""
    data_dir = Path(request.data_dir)
    state_dir = Path(request.state_dir) if request.state_dir else data_dir
    memory, exclusions = services.settings.chat.memory, tuple[re.Pattern[str], ...]()
    remembers = memory.enabled
    try:
        exclusions = compile_exclusions(memory.exclude, EXCLUDE_KEY)
    except InputError as error:
        remembers = False
        services.mistakes.append(f"{error}. Nothing is remembered until this is fixed.")
    files, memories = CheckpointFiles(state_dir), MemoryFiles(services.memory_dir, state_dir)
    return Keeping(files, memories, lambda text: hide_keys(hide_secrets(text)), remembers, exclusions, count_secrets)


def _check_policies(services: Services) -> None:
    """Make sure that the configured policies can be used; else go on with the default."""
    try:
        services.policies()
    except ConfigError as error:
        default = settings.load({}).chat.policy
        chat = msgspec.structs.replace(services.settings.chat, policy=default, policies={}, adapter_policies={})
        services.settings = msgspec.structs.replace(services.settings, chat=chat)
        services.mistakes.append(f"{error}. Policy {default} is used instead.")
