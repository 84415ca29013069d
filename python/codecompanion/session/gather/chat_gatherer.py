"""Gathers code for chats: combines a question, the project's index and the user's settings (R-201, R-265, R-267).

Importing this module is cheap: the modules needed for gathering are imported with the first question.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.errors import CodeCompanionError
from codecompanion.settings_sections import GatheringSettings

if TYPE_CHECKING:
    from codecompanion.model.gathered import Gathered
    from codecompanion.session.code.project_index import ProjectIndex
    from codecompanion.session.code.search_options import ChunkVectors
    from codecompanion.session.codebase.gatherer import Question
    from codecompanion.session.gather.gatherers import MayUse
    from codecompanion.session.gather.index_search import IndexSearch
    from codecompanion.session.gather.team_text import TeamText
    from codecompanion.session.gather.utility import Utility

_log = logging.getLogger(__name__)

UTILITY_SHARE = 0.35
"""Timeout of each answer of the utility model, as a share of the total timeout."""


class ProjectGatherer:
    """Gathers code for all chats of a host.

    `index_of` returns the index of a folder; `vectors` are the vectors in use, None = none; `environment` is the user's
    environment, for the program that provides text about the team. `may_use` decides which files of a project may be
    used, None = all; `is_trusted` decides in which folders that program may run. The settings are read for each
    question, so that a change applies immediately (R-264).
    """

    def __init__(
        self,
        settings: Callable[[], GatheringSettings],
        adapters: Callable[[], AdapterRegistry],
        index_of: Callable[[Path], Awaitable[ProjectIndex]],
        environment: Callable[[], Mapping[str, str]] = lambda: os.environ,
        vectors: Callable[[], ChunkVectors | None] = lambda: None,
        may_use: MayUse | None = None,
        is_trusted: Callable[[Path], bool] = lambda root: True,
    ) -> None:
        self._settings, self._adapters, self._index_of = settings, adapters, index_of
        self._environment, self._vectors = environment, vectors
        self._may_use, self._is_trusted = may_use, is_trusted
        self._team: TeamText | None = None

    async def gather(self, question: Question, tell: Callable[[str], None]) -> Gathered:
        """Return the gathered code; on cancellation, all work stops.

        The result lists the parts that failed (R-202, R-203).
        """
        from codecompanion.session.gather.ask import Ask
        from codecompanion.session.gather.gather_code import GatherResources, gather

        settings = self._settings()
        search = None
        if not question.only_files:
            search = await self._search(question.root, settings, tell)
        ask = Ask(
            question=question.text,
            root=question.root,
            files=question.files,
            lines=question.lines,
            active=question.active,
            cursor=question.cursor,
            pipeline=question.pipeline or settings.pipeline,
            model=question.model,
            max_tokens=question.max_tokens,
            always=question.is_asked,
            only_files=question.only_files,
            unsaved=question.unsaved,
            left_out=question.left_out,
            pinned=question.pinned,
            seen=question.seen,
            with_memories=question.with_memories,
        )
        from codecompanion.session.gather.gatherers import use_all

        utility, team = self._utility(settings), self._team_of(settings)
        resources = GatherResources(settings, time.monotonic, search, utility, team, self._may_use or use_all)
        gathered = await gather(ask, resources)
        return gathered if utility is None else msgspec.structs.replace(gathered, utility=utility.calls)

    async def _search(self, root: Path, settings: GatheringSettings, tell: Callable[[str], None]) -> IndexSearch | None:
        """Return a project's index search, or None if it has no index, so that its files are searched as text."""
        from codecompanion.session.gather.index_search import IndexSearch

        try:
            index = await self._index_of(root)
            if index.state.phase == "building" and index.state.total:
                tell(f"{100 * index.state.done // index.state.total} % is indexed")
            return IndexSearch(index, self._vectors())
        except (CodeCompanionError, OSError) as error:
            _log.warning("there is no index of %s: %s", root, error)
            return None

    def _utility(self, settings: GatheringSettings) -> Utility | None:
        if not settings.utility:
            return None
        from codecompanion.session.gather.utility import Utility

        try:
            adapter = self._adapters().get(settings.utility)
        except CodeCompanionError:
            return None  # already reported when the configuration was read
        return Utility(adapter, settings.utility_model, settings.timeout_s * UTILITY_SHARE)

    def _team_of(self, settings: GatheringSettings) -> TeamText | None:
        if not settings.team.enabled:
            return None
        if self._team is None or self._team.settings != settings.team:
            from codecompanion.session.gather.gatherers import use_all
            from codecompanion.session.gather.team_text import TeamText

            may_use = self._may_use or use_all
            self._team = TeamText(settings.team, self._environment(), may_use, self._is_trusted)
        return self._team
