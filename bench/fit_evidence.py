"""Fits the tables of `retrieval/index_evidence.py` (R-207) to the training half of a corpus.

They are `word_shares.toml`, `form_weights.toml` and `evidence_weights.toml` in `python/codecompanion/retrieval`.

    python -m bench.fit_evidence FOLDER [--titles 80] [--keep FILE]

`FOLDER` has the repositories that `bench/evidence_corpus.toml` names. For each training repository, the index of the
state before its newest titles is queried. For each question, the tables leave out its repository or source, so that no
question is judged by itself. Printed, each for left-out repositories: the share recognised at the limit by kind of
question, the share of general questions misclassified by source, and the results without each signal. `--keep` stores
the evidence, so that another fit needs no index.

The limit is the score that `TAKEN` of the general questions reach; kinds of questions are weighted by `WEIGHTS`,
sources of general ones equally.
"""

from __future__ import annotations

import argparse
import math
import pickle
import sys
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import msgspec
import numpy as np

from bench.evidence_corpus import OURS, Asked, Corpus, asked_of, corpus, titles_of
from bench.fit_forms import GENERAL, FormFit, Worded, worded
from bench.indexed_history import IndexedHistory
from codecompanion.formats.code_words import index_words, split_words
from codecompanion.retrieval.index_evidence import (
    Evidence,
    WordTables,
    read_for_evidence,
    signals_of,
)
from codecompanion.retrieval.ranking.stems import stem
from codecompanion.session.code.evidence_search import find_evidence
from codecompanion.session.code.searcher import CodeSearcher

Array = np.ndarray[Any, np.dtype[np.float64]]

SIGNALS = ("most", "least", "names", "pairs", "wording", "form", "foreign")
WEIGHTS = {"title": 0.45, "plain": 0.45, "swe_qa": 0.1}
TAKEN = 0.03
MANY_TITLES = 600
OF_SWE_QA = 0.1
"""Share of SWE-QA in the wording of questions about projects; the rest is the share of titles."""
SMOOTHED = 0.0015
MIN_IN_TABLE, HALF_OCTAVE = 0.002, math.sqrt(2)
MIN_LOG, MAX_LOG = 0.5, 3.0
MIN_SOURCES = 3
"""Minimum number of sources of a word: a word from fewer sources describes them rather than questions."""
FOLDER_OF_TABLES = Path(__file__).resolve().parents[1] / "python/codecompanion/retrieval"

Shares = Mapping[str, float]


class Fact(msgspec.Struct, frozen=True):
    """A question asked of a repository, and the evidence in its index."""

    repository: str
    asked: Asked
    evidence: Evidence


class Counts(msgspec.Struct, frozen=True):
    """The input of the tables: source → stem → share, for pieces of code, titles, SWE-QA and general questions.

    `texts`: the questions that the forms are fitted to.
    """

    code: Mapping[str, Shares]
    titles: Mapping[str, Shares]
    swe_qa: Mapping[str, Shares]
    general: Mapping[str, Shares]
    texts: Sequence[Worded]


def collect(given: Corpus, titles: int) -> tuple[list[Fact], Counts]:
    """Ask every training repository, and count words."""
    facts, code, subjects = list[Fact](), dict[str, Shares](), dict[str, Shares]()
    texts = list[Worded]()
    for repository in given.repositories("training"):
        git = given.git(repository)
        subjects[repository] = _shares(map(split_words, titles_of(git, MANY_TITLES)[0]))
        newest, before = titles_of(git, titles)
        texts += worded("title", repository, newest) + worded("plain", repository, given.plain(repository))
        with tempfile.TemporaryDirectory() as folder:
            history = IndexedHistory(git, Path(folder), with_history=False)
            history.move_to(before)
            searcher = CodeSearcher(history)
            for asked in asked_of(given, "training", repository, newest):
                if evidence := find_evidence(searcher, asked.text):
                    facts.append(Fact(repository, asked, evidence))
            chunks = history.chunks()
            code[repository] = _shares(index_words(f"{one.path} {one.symbol} {one.text}") for one in chunks)
            history.close()
        print(f"asked {repository}", file=sys.stderr, flush=True)
    swe_qa = {**given.swe_qa("wording"), **given.swe_qa("training")}
    general = given.general("training")
    for name, asked_by in swe_qa.items():
        texts += worded("swe_qa", name, asked_by)
    for source, asked_by in general.items():
        texts += worded(GENERAL, source, asked_by)
    return facts, Counts(
        code,
        subjects,
        {name: _shares(map(split_words, asked_by)) for name, asked_by in swe_qa.items()},
        {source: _shares(map(split_words, asked_by)) for source, asked_by in general.items() if source not in OURS},
        texts,
    )


def _shares(pieces: Iterable[Sequence[str]]) -> Shares:
    counts, many = Counter[str](), 0
    for words in pieces:
        many += 1
        counts.update(set(map(stem, words)))
    return {word: count / many for word, count in counts.items()}


def tables_of(counts: Counts, forms: Mapping[str, float], repository: str = "", source: str = "") -> WordTables:
    """Return the tables without a repository and a source of general questions; `forms` unchanged."""
    name = repository.rpartition("/")[2]
    general = _mean(counts.general, source)
    code, titles = _mean(counts.code, repository, outliers=1), _mean(counts.titles, repository, outliers=1)
    swe_qa = _mean(counts.swe_qa, name, outliers=1)
    shares, wording = dict[str, float](), dict[str, float]()
    for word in {*general, *code}:
        share = max(general.get(word, 0.0), code.get(word, 0.0))
        if share >= MIN_IN_TABLE:
            steps = round(math.log(share / MIN_IN_TABLE, HALF_OCTAVE))
            shares[word] = float(f"{MIN_IN_TABLE * HALF_OCTAVE**steps:.3g}")
    seen = Counter(
        word for part in (counts.general, counts.titles, counts.swe_qa) for one in part.values() for word in one
    )
    for word in {*general, *titles, *swe_qa}:
        if seen[word] < MIN_SOURCES or word.isdigit():
            continue
        here = (1 - OF_SWE_QA) * titles.get(word, 0.0) + OF_SWE_QA * swe_qa.get(word, 0.0)
        log = math.log((here + SMOOTHED) / (general.get(word, 0.0) + SMOOTHED))
        steps = round(max(-MAX_LOG, min(MAX_LOG, log)) / MIN_LOG)
        if steps:
            wording[word] = steps * MIN_LOG
    return WordTables(shares, wording, forms)


def _mean(by_source: Mapping[str, Shares], without: str, outliers: int = 0) -> Shares:
    """Return each word's mean share over the sources except `without`; `outliers` discounts the highest one."""
    sources = [shares for source, shares in by_source.items() if source != without]
    sums, most = defaultdict[str, float](float), dict[str, float]()
    for shares in sources:
        for word, share in shares.items():
            sums[word] += share
            most[word] = max(most.get(word, 0.0), share)
    return {word: (total - outliers * most[word]) / (len(sources) - outliers) for word, total in sums.items()}


class Fit:
    """The facts as numbers; a question without a telling word is never accepted and is not used for fitting."""

    def __init__(self, facts: Sequence[Fact], counts: Counts) -> None:
        fit = FormFit(counts.texts)

        @cache
        def forms(*without: str) -> Mapping[str, float]:
            return fit.without(*without)

        @cache
        def tables(repository: str, source: str) -> WordTables:
            left = (source,) if source else (repository, repository.rpartition("/")[2])
            return tables_of(counts, forms(*left), repository, source)

        self.forms = forms()
        rows, kept = list[list[float]](), list[Fact]()
        for fact in sorted(facts, key=lambda fact: (fact.repository, fact.asked.is_about, fact.asked.kind)):
            source = "" if fact.asked.is_about else fact.asked.kind
            signals = signals_of(read_for_evidence(fact.asked.text), fact.evidence, tables(fact.repository, source))
            kept.append(fact)
            rows.append([math.nan] * len(SIGNALS) if signals is None else [signals[name] for name in SIGNALS])
        self.facts = kept
        self.values: Array = np.array(rows)
        self.is_about: Array = np.array([float(fact.asked.is_about) for fact in kept])
        self.repositories = np.array([fact.repository for fact in kept])
        self.weights = self._weights()

    def _weights(self) -> Array:
        many = Counter(fact.asked.kind for fact in self.facts)
        general = len(set(many) - set(WEIGHTS))
        weights = [WEIGHTS.get(fact.asked.kind, 1 / general) / many[fact.asked.kind] for fact in self.facts]
        return np.array(weights) * len(self.facts) / 2

    def left_out(self, signals: Sequence[int]) -> Array:
        """Return the score of each question by weights fitted without its repository."""
        scores = np.full(len(self.facts), -math.inf)
        for repository in set(self.repositories):
            asked = self.repositories == repository
            weights = self.fitted(signals, ~asked)
            scores[asked] = self.scores(weights, signals)[asked]
        return scores

    def scores(self, weights: Array, signals: Sequence[int]) -> Array:
        """Return the score of each question."""
        scores = self.values[:, signals] @ weights[:-1] + weights[-1]
        certain = np.array([fact.evidence.has_file or fact.evidence.has_definition for fact in self.facts])
        return np.where(certain, math.inf, np.where(np.isnan(scores), -math.inf, scores))

    def fitted(self, signals: Sequence[int], wanted: Array) -> Array:
        """Return the weights of logistic regression and, last, the bias: Newton's method with a small penalty."""
        used = wanted & ~np.isnan(self.values[:, 0])
        values = np.hstack([self.values[used][:, signals], np.ones((used.sum(), 1))])
        is_about, counted = self.is_about[used], self.weights[used]
        price = np.diag([1.0] * len(signals) + [0.0])
        weights = np.zeros(values.shape[1])
        for _ in range(30):
            likely = 1 / (1 + np.exp(-np.clip(values @ weights, -30, 30)))
            slope = values.T @ (counted * (likely - is_about)) + price @ weights
            bend = (values * (counted * likely * (1 - likely))[:, None]).T @ values + price
            weights = weights - np.linalg.solve(bend, slope)
        return weights

    def limit(self, scores: Array) -> float:
        """Return the score that only `TAKEN` of the general questions reach."""
        return float(np.quantile(scores[self.is_about == 0], 1 - TAKEN))

    def shares(self, scores: Array, limit: float) -> dict[str, float]:
        """Return kind of question → the share that is accepted."""
        found = defaultdict[str, list[bool]](list)
        for fact, score in zip(self.facts, scores, strict=True):
            found[fact.asked.kind].append(bool(score >= limit))
        return {kind: sum(taken) / len(taken) for kind, taken in found.items()}


def write(tables: WordTables, weights: Array, limit: float) -> None:
    """Write the tables; the bias is such that the limit is a likelihood of 0.5."""
    rows = [_rows("shares", "share", "{:.4g}", tables.shares), _rows("wording", "log", "{:.1f}", tables.wording)]
    (FOLDER_OF_TABLES / "word_shares.toml").write_text(f"{_ABOUT_SHARES}\n" + "\n".join(rows), "utf-8")
    forms = _rows("forms", "log", "{:.1f}", tables.forms, ", ")
    (FOLDER_OF_TABLES / "form_weights.toml").write_text(f"{_ABOUT_FORMS}\n{forms}", "utf-8")
    lines = [f"{name} = {weight:.3f}" for name, weight in zip(SIGNALS, weights, strict=False)]
    padded = [f"{line:<20}  # {_ABOUT_SIGNAL[name]}" for name, line in zip(SIGNALS, lines, strict=True)]
    text = _ABOUT_WEIGHTS.format(bias=f"{weights[-1] - limit:.3f}", weights="\n".join(padded))
    (FOLDER_OF_TABLES / "evidence_weights.toml").write_text(text, "utf-8")


def _rows(name: str, value: str, form: str, table: Mapping[str, float], between: str = " ") -> str:
    by_value = defaultdict[float, list[str]](list)
    for word, number in table.items():
        if word.isascii():
            by_value[number].append(word)
    return "\n".join(
        f'[[{name}]]\n{value} = {form.format(number)}\nwords = """\n'
        + "\n".join(
            textwrap.wrap(between.join(sorted(by_value[number])), 118, break_long_words=False, break_on_hyphens=False)
        )
        + '\n"""\n'
        for number in sorted(by_value, reverse=True)
    )


_ABOUT_SHARES = """\
# How common words are, by stem (ranking/stems.py); made by `python -m bench.fit_evidence`.
# `share`: the larger of two means: of the share of the pieces of code and documentation that have a word, in eighteen
# repositories without the highest share, which is a project's own subject; and of the share of general questions, in
# nine sources. Steps of half an octave; words below 0.002 are left out.
# `log`: of how much more common a word is in questions about projects (titles of the same repositories, and a tenth
# SWE-QA) than in general questions; steps of 0.5.
"""
_ABOUT_FORMS = """\
# Evidence from the forms of a question (retrieval/question_form.py): log-odds that it is about a project; written by
# `python -m bench.fit_evidence`. Steps of 0.5; "" is the constant.
"""
_ABOUT_WEIGHTS = """\
# Evidence about a question in a project's index (retrieval/index_evidence.py): logistic regression on
# questions about eighteen public repositories against general ones (bench/evidence_corpus.toml); made by
# `python -m bench.fit_evidence`. `python -m bench.bench_classification` measures them on sixteen other repositories.

bias = {bias}
limit = 0.5           # likelihood from which a question counts as about the project

[weights]
{weights}
"""
_ABOUT_SIGNAL = {
    "most": "log of the share of a word here over its share at large, of the word with the highest",
    "least": "the same of the word with the lowest",
    "names": "mean of the same in names of definitions",
    "pairs": "share of the neighbouring words that stand side by side here",
    "wording": "sum of the logs of the wording over the root of the number of words",
    "form": "sum of the log-odds of its forms",
    "foreign": "technologies named that the project hardly has",
}


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--titles", type=int, default=80, help="of each repository")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where the evidence is stored")
    given = parser.parse_args()
    if given.keep and given.keep.exists():
        facts, counts = pickle.loads(given.keep.read_bytes())  # noqa: S301 - our own file
    else:
        facts, counts = collect(corpus(given.folder), given.titles)
        if given.keep:
            given.keep.write_bytes(pickle.dumps((facts, counts)))
    fit, every = Fit(facts, counts), range(len(SIGNALS))
    scores = fit.left_out(every)
    limit = fit.limit(scores)
    print("\n".join(f"{kind:<60}{share:.3f}" for kind, share in fit.shares(scores, limit).items()))
    for left in every:
        others = [signal for signal in every if signal != left]
        without = fit.left_out(others)
        shares = fit.shares(without, fit.limit(without))
        print(f"without {SIGNALS[left]:<12}" + "  ".join(f"{kind} {shares[kind]:.3f}" for kind in WEIGHTS))
    write(tables_of(counts, fit.forms), fit.fitted(every, np.full(len(facts), True)), limit)


if __name__ == "__main__":
    main()
