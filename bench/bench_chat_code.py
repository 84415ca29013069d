"""What gathered code costs in a chat: tokens sent, with and without sending again what stands above (issue 11, part 2).

A chat is ten questions over one repository: those of a file, one a line, at the newest state; without a file the
subjects of ten commits in a row, each at the state before its commit, so that files change between the questions.
Prints for both budgets the tokens (characters / 4) of all blocks, the same summed over the ten requests (an earlier
block is in every later one), the places that were shown, and, for commits, the share of the functions they change that
the model saw as they are now, in whichever block.

    python -m bench.bench_chat_code [--questions FILE] [--chats N] GIT_DIRECTORY…
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bench.bench_gather import BUDGETS, WEIGHT, CommitCode, changed_functions, share_shown
from bench.commit_questions import CommitQuestion, GitDirectory, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion.model.gathered import Gathered, QuestionTypes, Snippet, chars_to_tokens
from codecompanion.model.messages import Message
from codecompanion.retrieval.compose import compose, joined
from codecompanion.retrieval.gather_pipeline import SearchRanked, load_pipeline
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.shown_lines import NOTHING_ABOVE, seen_in
from codecompanion.retrieval.worth_showing import demote_repeats
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.session.codebase.gathered_message import gathered_message
from codecompanion.session.gather.gatherers import beside_search, found_snippet, search_definitions

QUESTIONS = 10
Way = tuple[int, bool]
"""Budget, and whether what stands above is named instead of sent."""


class Chat:
    """The blocks of one chat so far, in one way."""

    def __init__(self, budget: int, names_above: bool) -> None:
        self.budget, self.names_above = budget, names_above
        self.messages = list[Message]()
        self.tokens = list[int]()
        self.places = self.above = 0
        self.cpu_ms = 0.0

    def ask(self, found: Sequence[Snippet], code: CommitCode, terms: Sequence[str]) -> None:
        """Gather for the next question."""
        begun = time.process_time()
        above = seen_in(self.messages) if self.names_above else NOTHING_ABOVE
        composed = compose(
            QuestionTypes(),
            found,
            (),
            lambda path: code.parse(path).definitions,
            self.budget,
            terms=terms,
            above=above,
        )
        self.cpu_ms += (time.process_time() - begun) * 1000
        gathered = Gathered(question="", selection=composed.selection, beside=composed.beside, text=composed.text)
        message = gathered_message(gathered, f"m{len(self.tokens)}")
        self.tokens.append(chars_to_tokens(len(composed.text)))
        self.places += len(composed.selection.snippets)
        self.above += len(composed.selection.above)
        if message is not None:
            self.messages.append(message)

    def seen(self, code: CommitCode) -> list[Snippet]:
        """Return the lines that the model has seen and that are so now."""
        lines = seen_in(self.messages).lines
        seen = list[Snippet]()
        for path, known in lines.items():
            now = dict(enumerate((code.read(path) or "").split("\n"), 1))
            seen += [
                Snippet(path=path, start=number, end=number, text=line)
                for number, line in known.items()
                if now.get(number) == line
            ]
        return seen


def chats_of(
    git: GitDirectory, questions: Path | None, count: int
) -> Iterator[list[tuple[str, str, CommitQuestion | None]]]:
    """Yield chats of ten questions."""
    if questions is not None:
        newest = next(iter(questions_of(git, 1))).parent
        asked = [line for line in questions.read_text("utf-8").splitlines() if line.strip()]
        yield [(text, newest, None) for text in asked[:QUESTIONS]]
        return
    commits = list(islice(questions_of(git, count * QUESTIONS), count * QUESTIONS))
    for first in range(0, len(commits) - QUESTIONS + 1, QUESTIONS):
        # the oldest first: as somebody works
        yield [(one.text, one.parent, one) for one in reversed(commits[first : first + QUESTIONS])]


def measure(path: Path, questions: Path | None, count: int) -> None:
    """Print the figures of a repository."""
    git = GitDirectory(path)
    sums, shares, chats = defaultdict[Way, list[float]](lambda: [0.0] * 6), defaultdict[Way, list[float]](list), 0
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder))
        searcher = CodeSearcher(history)
        ranked = load_pipeline("ranked").stage(SearchRanked)
        options = SearchOptions(top_k=ranked.max_files, per_file=ranked.per_file, with_common=False)
        for chat in chats_of(git, questions, count):
            chats += 1
            ways = {(budget, names): Chat(budget, names) for budget in BUDGETS for names in (False, True)}
            for text, commit, question in chat:
                history.move_to(commit)
                code = CommitCode(history)
                results = [found_snippet(one) for one in searcher.search(text, options).results]
                terms = simple_terms(text)
                paths = tuple(dict.fromkeys(one.path for one in results))
                elements = search_definitions(code, terms, paths, lambda: None)  # type: ignore[arg-type]
                functions = changed_functions(code, question) if question is not None else []
                for way, one in ways.items():
                    one.ask(demote_repeats(joined(results, beside_search(elements, WEIGHT))), code, terms)
                    if functions:
                        shares[way].append(share_shown(one.seen(code), functions))
            for way, one in ways.items():
                in_requests = sum(sum(one.tokens[: n + 1]) for n in range(len(one.tokens)))
                for n, figure in enumerate((sum(one.tokens), in_requests, one.places, one.above, one.cpu_ms)):
                    sums[way][n] += figure
        history.close()
    for (budget, names), (blocks, requests, places, above, cpu, _) in sorted(sums.items()):
        share = shares[budget, names]
        print(
            f"{path.parent.name} {budget:>6,} {'named' if names else 'again'}: blocks {blocks / chats:>8,.0f}"
            f"  in requests {requests / chats:>9,.0f}  places {places / chats:.0f}  above {above / chats:.0f}"
            + (f"  functions {sum(share) / len(share):.3f}" if share else "")
            + f"  cpu {cpu / chats / QUESTIONS:.1f} ms a question",
            flush=True,
        )


def main() -> None:
    """Print four lines for each repository."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=Path, help="a question a line; the first ten are asked")
    parser.add_argument("--chats", type=int, default=3, help="chats of ten commits")
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    for folder in given.folders:
        measure(folder, given.questions, given.chats)


if __name__ == "__main__":
    main()
