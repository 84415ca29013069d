"""Works while the host is idle: imports modules, stores byte code for the next host, removes old temporary files.

Rarely needed modules are imported by the function that needs them, so that a host starts fast. When the host has been
idle for `QUIET_S`, they are imported here, one after the other in a thread, so that the first tool call or compaction
does not wait for them and cannot be broken by a plugin update or a full disk in the meantime.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

_log = logging.getLogger(__name__)
QUIET_S = 1.0
LONG_QUIET_S = 10.0
"""Seconds of idling before work that does not benefit this host."""
LATER = tuple(
    f"codecompanion.{name}"
    for name in """
    tools.runner tools.builtin.command_approval tools.builtin.read_file tools.builtin.grep_search
    tools.builtin.insert_edit tools.builtin.create_file tools.builtin.delete_file tools.builtin.run_command
    tools.builtin.code_search tools.builtin.get_diagnostics tools.builtin.memory tools.builtin.recall
    tools.commands.lasting_changes tools.narrowing session.files.file_log session.tool_calls.audited
    session.untrusted.written_by_commands session.chat.removed_messages session.actions.view_edits
    session.actions.reverting session.attachments.read_attachment context.editing.clear_tool_results
    context.editing.clear_when_it_pays context.editing.trimming context.editing.fit_tool_results
    context.selection.select_window context.transcript.format_transcript context.summary.summarize_one
    context.summary.insert_summary context.summary.fit_summary context.grounding.verify_summary
    context.ledger.append_ledger context.compaction_notes session.compaction.summarise store.damage.rebuild
    session.storage.from_checkpoint adapters.errors.retry reports.spending_budgets
    """.split()
)
"""Modules to import when idle, in the order in which a chat is likely to need them."""


async def work_when_idle(is_busy: Callable[[], bool], steps: Iterable[Callable[[], object]]) -> None:
    """Run each step in a thread whenever the host is idle; `is_busy` returns whether the host worked within `QUIET_S`.

    A failing step is logged; its work is repeated where the result is needed.
    """
    for step in steps:
        while is_busy():  # noqa: ASYNC110 - many things make a host busy; one check per second is enough
            await asyncio.sleep(QUIET_S)
        try:
            await asyncio.to_thread(step)
        except Exception:  # any error, because the step is repeated where its result is needed
            _log.exception("idle work failed")


def idle_steps(data_dir: Path) -> Iterable[Callable[[], object]]:
    """Yield the steps that a host runs when idle."""
    for name in LATER:
        yield partial(import_module, name)
    yield _rehearse_compaction
    from codecompanion.engine.old_temporary_files import remove_old_temporary_files  # not needed at startup

    yield partial(remove_old_temporary_files, data_dir)


def _rehearse_compaction() -> None:
    from codecompanion.context.policy.policy_catalog import load_policy  # neither is needed at startup
    from codecompanion.context.warm_up import rehearse

    rehearse(load_policy("codecompanion"))


def keep_modules() -> None:
    """Store this host's imports in one file for the next host (`module_cache`)."""
    from codecompanion.engine.module_cache import module_cache
    from codecompanion.engine.module_cache_writer import write_module_cache

    cache = module_cache()
    if cache is None:
        return
    try:
        write_module_cache(cache)
    except OSError as error:
        cache.why_not = f"cannot be written ({error.strerror or error})"
        _log.info("the module cache %s %s", cache.path, cache.why_not)
