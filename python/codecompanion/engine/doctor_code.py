"""Checks whether the servers configured for completion at the cursor and for gathered code respond.

The configured servers are asked for one token and for the vector of one word; nothing from the user's files is sent.
Disabled features are not tested.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from codecompanion.engine.finding import Finding
from codecompanion.errors import CodeCompanionError
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.session.services import Services
from codecompanion.settings_sections import CompletionSettings, TeamSettings

ANSWER_LIMIT_S = 5.0
"""Timeout for one server, in seconds; `:checkhealth` waits 8 s in total."""
_INSTALL = "Run :CodeCompanion install semantic"
_TOO_LATE = f"no answer within {ANSWER_LIMIT_S:g} s"


async def examine_code(services: Services, *, completes: bool) -> list[Finding]:
    """Return the findings, including errors; `completes`: whether completion is on, whatever its setting."""
    embedding = services.settings.context.embedding
    completion, vectors = await asyncio.gather(
        completion_findings(services) if completes else _nothing(),
        asyncio.to_thread(embedding_findings, embedding),
    )
    if embedding.url and all(one.ok for one in vectors):
        vectors = await embedding_answers(services, embedding, vectors)
    return [*completion, *vectors, *team_findings(services.settings.context.team, services.environment.get("PATH"))]


async def _nothing() -> list[Finding]:
    return []


async def completion_findings(services: Services) -> list[Finding]:
    """Return whether the model supports fill-in-the-middle (FIM), and whether its server returns a token."""
    from codecompanion.adapters.completion.endpoints import CodeRequest
    from codecompanion.session.complete.completer import family_wanted
    from codecompanion.session.complete.completion_source import make_source

    settings = services.settings.completion
    model = f"{settings.model} at {settings.endpoint}"
    try:
        family = family_wanted(settings)
        source = make_source(settings, services.adapters, services.settings.chat.adapter)
    except CodeCompanionError as error:
        return [Finding("completion", False, str(error), "Change it in completion = { … }")]
    if source.is_chat:
        return [_chat_finding(services, settings)]
    found = []
    if not family.fills_in and not source.takes_suffix:
        text = f"{settings.model} is not known to fill in the middle: the text after the cursor is not sent"
        found.append(Finding("completion", False, text, "Choose a code model, or set completion.family or .tokens"))
    has_tokens = family.fills_in and source.reads_tokens
    prompt = f"{family.prefix}x = {family.suffix}{family.middle}" if has_tokens else "x = "
    request = CodeRequest(
        model=settings.model, prompt=prompt, has_tokens=has_tokens, max_tokens=1, temperature=settings.temperature
    )
    try:
        await source.ask(request, "", min(ANSWER_LIMIT_S, settings.timeout_s))
    except CodeCompanionError as error:
        said = str(error).removeprefix("completion: ")
        found.append(Finding("completion", False, f"{model}: {said}", "See :help codecompanion-complete-servers"))
    else:
        found.append(Finding("completion", True, f"{model} answers"))
    finally:
        await source.aclose()
    return found


def _chat_finding(services: Services, settings: CompletionSettings) -> Finding:
    name = settings.adapter or services.settings.chat.adapter
    if services.adapters.settings(name).kind == "offline":
        advice = "Set completion.adapter to one with a model"
        return Finding("completion", False, f'endpoint = "chat" uses {name}, which has no model', advice)
    return Finding("completion", True, f"the chat model {settings.model} of {name} completes code")


def embedding_findings(embedding: EmbeddingSettings) -> list[Finding]:
    """Return whether vectors can be made and compared, without calling an endpoint; [] if they are not configured."""
    from codecompanion.adapters.embeddings.make import make_embedder
    from codecompanion.adapters.embeddings.onnx_embedder import missing_packages
    from codecompanion.adapters.keys.redact import plain_url

    if not embedding.is_set:
        return []
    missing = missing_packages()
    try:
        make_embedder(embedding, lambda settings: "")
    except CodeCompanionError as error:
        said = str(error).removeprefix("embeddings: ")
        option = "context.embedding.onnx" if embedding.onnx else "context.embedding"
        return [Finding("embeddings", False, said, f"Change {option}")]
    if embedding.onnx:
        text = f"the model in {embedding.onnx}"
        needs = f" needs {', '.join(missing)}" if missing else ""
        return [Finding("embeddings", not missing, text + needs, _INSTALL)]
    text = f"{embedding.model} at {plain_url(embedding.url)}"
    if "numpy" in missing:
        text += "; without numpy, only keyword search results are compared by meaning"
    return [Finding("embeddings", "numpy" not in missing, text, _INSTALL)]


async def embedding_answers(services: Services, embedding: EmbeddingSettings, found: list[Finding]) -> list[Finding]:
    """Return `found` if the endpoint returns a vector of one word, else the reason why it does not."""
    from codecompanion.adapters.embeddings.make import make_embedder

    embedder = make_embedder(embedding, services.adapters.read_key)
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            await embedder.embed_query("code")
    except TimeoutError:
        said = _TOO_LATE
    except CodeCompanionError as error:
        said = str(error).removeprefix("embeddings: ")
    else:
        return found
    finally:
        await embedder.aclose()
    text = f"{found[0].text}: {said}"
    return [Finding("embeddings", False, text, "Keyword search is used until it answers")]


def team_findings(team: TeamSettings, search_path: str | None) -> list[Finding]:
    """Return problems with the source of the team description; [] if it is off or works."""
    if not team.enabled:
        return []
    if team.command:
        program = team.command[0]
        if shutil.which(program, path=search_path) or (os.sep in program and not Path(program).is_absolute()):
            return []
        return [Finding("team", False, f"{program} was not found", "Change context.team.command")]
    if not team.file:
        text = "context.team is on but has neither a file nor a command: nothing is sent"
        return [Finding("team", False, text, "Set context.team.file or context.team.command")]
    path = Path(team.file).expanduser()
    if path.is_absolute() and not path.is_file():
        return [Finding("team", False, f"{path} is not a file", "Change context.team.file")]
    return []
