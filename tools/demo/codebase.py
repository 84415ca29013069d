# ruff: noqa: E501, S608 (long lines are text of the project)
"""The invented project of the demo session: `tidewater`, a berth planner for a small harbour.

Everything is generated here, nothing is copied: a hand-written core with two planted bugs, and one package for each
kind of record a harbour deals with, generated from a description. All of it is valid Python; every call returns the
same files.
"""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record. `check` is a condition that must be true, in terms of the field's name."""

    name: str
    type: str
    check: str
    doc: str
    sample: str


@dataclass(frozen=True, slots=True)
class Step:
    """A state transition: its name, its start and end, and a rule that can forbid it."""

    verb: str
    before: str
    after: str
    doc: str
    forbidden: str
    because: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record: the description from which its five files are generated."""

    name: str
    plural: str
    doc: str
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        """Return the class name."""
        return "".join(part.title() for part in self.name.split("_"))

    @property
    def states(self) -> list[str]:
        """Return the states in the order they are first mentioned."""
        return list(dict.fromkeys(state for step in self.steps for state in (step.before, step.after)))


def F(row: str) -> Field:
    """Return a field from `name | type | check | sample | doc`."""
    name, kind, check, sample, doc = (part.strip() for part in row.split("|"))
    return Field(name, kind, check, doc, sample)


def S(row: str) -> Step:
    """Return a step from `verb | before | after | forbidden | because | doc`."""
    verb, before, after, forbidden, because, doc = (part.strip() for part in row.split("|"))
    return Step(verb, before, after, doc, forbidden, because)


def _kind(name: str, plural: str, doc: str, fields: str, steps: str) -> Kind:
    rows = [row for row in textwrap.dedent(fields).splitlines() if row.strip()]
    moves = [row for row in textwrap.dedent(steps).splitlines() if row.strip()]
    return Kind(name, plural, doc, tuple(map(F, rows)), tuple(map(S, moves)))


KINDS = (
    _kind("vessel", "vessels", "A ship that calls at the harbour, as its papers describe it.", """
        imo | str | len(imo) == 7 and imo.isdigit() | "9321483" | seven digits of the ship's number, without the prefix
        name | str | 0 < len(name) <= 60 | "Ægir" | name as painted on the bow, any script
        length_m | float | 5 <= length_m <= 420 | 134.5 | length over all
        draught_m | float | 0.5 <= draught_m <= 22 | 7.2 | deepest draught in salt water
        air_draught_m | float | 2 <= air_draught_m <= 75 | 28.0 | height above the water line
        thrusters | int | 0 <= thrusters <= 6 | 1 | bow and stern thrusters that work
        hazmat_class | str | hazmat_class in ("", "1", "2", "3", "4", "5", "6", "7", "8", "9") | "" | dangerous goods class
    """, """
        announce | expected | announced | vessel.draught_m > 14 | the channel is dredged to 15 metres | the agent reports an arrival
        arrive | announced | inside | vessel.hazmat_class == "1" | explosives wait on the roads | the pilot boards
        moor | inside | moored | vessel.length_m > 300 | no berth is long enough | lines are fast
        depart | moored | gone | vessel.thrusters < 0 | the record is damaged | lines are let go
    """),
    _kind("berth", "berths", "A stretch of quay where one vessel can lie.", """
        code | str | code[:1].isalpha() and code[1:].isdigit() | "N4" | quay letter and number
        length | float | 20 <= length <= 450 | 180.0 | usable quay length in metres
        depth_m | float | 2 <= depth_m <= 20 | 9.4 | depth at lowest astronomical tide
        bollards | int | 2 <= bollards <= 60 | 12 | bollards rated for 50 tonnes
        shore_power_kw | int | 0 <= shore_power_kw <= 16000 | 1200 | power the cabinet can give
        crane_rail | bool | crane_rail in (True, False) | True | whether gantry cranes reach it
    """, """
        open | closed | free | berth.depth_m < 3 | silted berths stay closed | the harbour master opens it
        reserve | free | reserved | berth.bollards < 4 | too few bollards for a reservation | a booking holds it
        occupy | reserved | occupied | berth.length < 25 | only tenders may use it | a vessel is moored
        release | occupied | free | berth.code == "" | the record is damaged | the vessel has left
        close | free | closed | berth.shore_power_kw > 15000 | the cabinet must be switched off first | work on the quay
    """),
    _kind("booking", "bookings", "A promise of a berth to a vessel for a span of time.", """
        reference | str | len(reference) == 8 | "BK004217" | what agents quote on the telephone
        vessel_imo | str | len(vessel_imo) == 7 | "9321483" | who comes
        berth_code | str | berth_code != "" | "N4" | where to
        starts_at | int | starts_at > 0 | 1767225600 | first second of the stay, UTC
        ends_at | int | ends_at > 0 | 1767268800 | first second after the stay, UTC
        priority | int | 0 <= priority <= 9 | 5 | 9 is a lifeboat, 0 a museum ship
        remarks | str | len(remarks) <= 500 | "needs shore power" | free text of the agent
    """, """
        request | draft | requested | booking.ends_at <= booking.starts_at | a stay must end after it starts | the agent asks
        confirm | requested | confirmed | booking.priority == 0 | museum ships are confirmed by hand | the planner agrees
        begin | confirmed | active | booking.berth_code == "?" | no berth was chosen | the vessel is moored
        finish | active | finished | booking.remarks.startswith("HOLD") | customs holds the vessel | the vessel has left
        cancel | confirmed | cancelled | booking.priority == 9 | lifeboats are not cancelled | the agent withdraws
    """),
    _kind("crane", "cranes", "A gantry or mobile crane and what it may lift.", """
        tag | str | tag.startswith("CR") | "CR07" | painted on the portal
        reach_m | float | 5 <= reach_m <= 70 | 38.0 | outreach over water
        swl_t | float | 1 <= swl_t <= 120 | 45.0 | safe working load at full reach
        wind_limit_ms | float | 8 <= wind_limit_ms <= 28 | 20.0 | gusts above stop work
        hours_run | int | hours_run >= 0 | 11840 | operating hours since overhaul
        inspected_on | int | inspected_on > 0 | 1764547200 | day of the last inspection, UTC
    """, """
        assign | parked | assigned | crane.hours_run > 20000 | overhaul is due | the foreman sends it to a berth
        work | assigned | working | crane.swl_t < 2 | it lifts less than one hook load | the first lift
        pause | working | assigned | crane.reach_m > 69 | the boom must be raised first | gusts or a break
        park | assigned | parked | crane.wind_limit_ms < 9 | it is lashed where it stands | end of shift
    """),
    _kind("pilot", "pilots", "A pilot, the licence and the hours of rest.", """
        badge | str | badge.startswith("P") | "P31" | number on the badge
        full_name | str | 2 <= len(full_name) <= 80 | "Søren Þórsson" | as in the licence
        licence_m | int | 50 <= licence_m <= 400 | 250 | longest vessel the licence covers
        rest_hours | float | 0 <= rest_hours <= 240 | 11.5 | hours since the last job
        night_qualified | bool | night_qualified in (True, False) | True | may work between sunset and sunrise
        languages | str | languages != "" | "en,da,is" | languages on the radio, comma separated
    """, """
        call | resting | called | pilot.rest_hours < 10 | ten hours of rest are the law | the duty officer rings
        board | called | aboard | pilot.licence_m < 60 | trainees board with a colleague | on the ladder
        hand_over | aboard | ashore | pilot.badge == "P0" | the record is a placeholder | the master has the conn
        rest | ashore | resting | pilot.rest_hours > 230 | leave is booked elsewhere | end of duty
    """),
    _kind("tug", "tugs", "A tug, its pull and its crew's watch.", """
        callsign | str | len(callsign) >= 3 | "OXKT2" | radio call sign
        bollard_pull_t | float | 5 <= bollard_pull_t <= 120 | 62.0 | certified pull ahead
        fuel_l | int | 0 <= fuel_l <= 400000 | 58000 | fuel on board
        escort_class | str | escort_class in ("none", "coastal", "escort") | "escort" | class notation
        firefighting | bool | firefighting in (True, False) | True | whether monitors are fitted
        watch_ends_at | int | watch_ends_at > 0 | 1767254400 | when the crew must be relieved, UTC
    """, """
        muster | moored | ready | tug.fuel_l < 5000 | bunkers first | the crew reports ready
        make_fast | ready | towing | tug.bollard_pull_t < 10 | line handling only | the line is fast
        let_go | towing | ready | tug.escort_class == "none" and tug.fuel_l < 100 | it drifts | the line is slipped
        return_home | ready | moored | tug.callsign == "TEST" | simulators do not moor | back at the pontoon
    """),
    _kind("invoice", "invoices", "What a stay costs: quay dues, pilotage, towage, power.", """
        number | str | number.startswith("TW-") | "TW-2025-0419" | running number of the year
        booking_reference | str | len(booking_reference) == 8 | "BK004217" | the stay it is for
        quay_dues | float | quay_dues >= 0 | 1845.30 | by length and hour
        pilotage | float | pilotage >= 0 | 920.00 | by length and hour of the day
        towage | float | towage >= 0 | 2410.75 | by tug and hour
        power | float | power >= 0 | 118.20 | by kilowatt hour
        currency | str | currency in ("EUR", "DKK", "ISK") | "EUR" | what the agent pays in
    """, """
        issue | draft | issued | invoice.quay_dues == 0 and invoice.towage == 0 | there is nothing to charge | sent to the agent
        remind | issued | overdue | invoice.currency == "ISK" | reminders in ISK are sent by the bank | thirty days have passed
        settle | issued | settled | invoice.power < 0 | credit notes are settled by hand | the bank reports the payment
        write_off | overdue | written_off | invoice.towage > 50000 | the board decides above 50,000 | nobody pays
    """),
    _kind("work_order", "work_orders", "A repair on quay, crane or cabinet.", """
        ticket | str | ticket.isdigit() | "50231" | number on the sheet
        place | str | place != "" | "N4 cabinet 2" | berth code and what is broken
        skill | str | skill in ("steel", "electric", "hydraulic", "diver") | "electric" | who can do it
        estimate_h | float | 0 < estimate_h <= 400 | 6.5 | hours estimated
        blocks_berth | bool | blocks_berth in (True, False) | True | whether the berth must be empty
        reported_by | str | len(reported_by) <= 80 | "王小明" | who found it
    """, """
        plan | reported | planned | work_order.estimate_h > 300 | the yard must quote first | a date is found
        start | planned | running | work_order.skill == "diver" and work_order.blocks_berth is False | divers need an empty berth | tools are out
        finish_work | running | done | work_order.place.endswith("?") | the place was never confirmed | signed off
        reopen | done | reported | work_order.estimate_h < 0.5 | too small to reopen, file a new one | it broke again
    """),
    _kind("manifest", "manifests", "What a vessel discharges and loads, by line.", """
        document | str | len(document) >= 6 | "MF-77120" | number of the document
        vessel_imo | str | len(vessel_imo) == 7 | "9321483" | whose cargo
        lines | int | 0 <= lines <= 20000 | 412 | number of lines
        gross_t | float | gross_t >= 0 | 8120.4 | gross weight
        reefers | int | 0 <= reefers <= 1500 | 36 | refrigerated boxes that need power
        sealed | bool | sealed in (True, False) | False | whether customs sealed it
    """, """
        lodge | draft | lodged | manifest.lines == 0 | an empty manifest is not lodged | the agent sends it
        clear | lodged | cleared | manifest.sealed | sealed cargo is cleared by an officer | customs agrees
        discharge | cleared | discharged | manifest.gross_t > 90000 | two gangs are needed above 90,000 t | the last box is ashore
        amend | lodged | draft | manifest.reefers > 1400 | the power plan must be redone | the agent corrects it
    """),
)  # fmt: skip


def write_files() -> dict[str, str]:
    """Return the whole project: a mapping from path to text."""
    files = dict(CORE) | _records()
    for kind in KINDS:
        package = f"tidewater/{kind.plural}"
        files[f"{package}/__init__.py"] = f'"""{kind.doc}"""\n'
        files[f"{package}/model.py"] = _model(kind)
        files[f"{package}/repository.py"] = _repository(kind)
        files[f"{package}/service.py"] = _service(kind)
        files[f"{package}/routes.py"] = _routes(kind)
        files[f"tests/test_{kind.plural}.py"] = _tests(kind)
    return files


def _model(kind: Kind) -> str:
    lines = [f'"""{kind.doc} Values and rules; no storage."""', "", "from __future__ import annotations", ""]
    lines += [
        "from dataclasses import dataclass, replace",
        "",
        "from tidewater.errors import BadRecord, BadTransition",
        "",
    ]
    lines += [f"STATES = ({', '.join(repr(state) for state in kind.states)})", "TRANSITIONS = {"]
    for state in kind.states:
        reach = sorted({step.after for step in kind.steps if step.before == state})
        lines.append(f"    {state!r}: frozenset({{{', '.join(map(repr, reach))}}})," if reach
                     else f"    {state!r}: frozenset(),")  # fmt: skip
    lines += ["}", "", "", "@dataclass(frozen=True, slots=True)", f"class {kind.title}:"]
    lines += [f'    """{kind.doc}', "", "    Attributes:"]
    lines += [f"        {field.name}: {field.doc}." for field in kind.fields]
    lines += ["        state: where the record stands, one of STATES.", '    """', ""]
    lines += [f"    {field.name}: {field.type}" for field in kind.fields] + [f"    state: str = {kind.states[0]!r}", ""]
    lines += ["    def __post_init__(self) -> None:", '        """Refuse values that cannot be true."""']
    for field in kind.fields:
        check = _with_self(field.check, field.name)
        lines += [f"        if not ({check}):",
                  f'            raise BadRecord("{kind.name}", "{field.name}", self.{field.name}, "{field.doc}")']  # fmt: skip
    lines += ["        if self.state not in STATES:",
              f'            raise BadRecord("{kind.name}", "state", self.state, f"one of {{STATES}}")', ""]  # fmt: skip
    lines += [f"    def moved_to(self, state: str) -> {kind.title}:",
              '        """Return the record in another state; raises BadTransition when no step leads there."""',
              "        if state not in TRANSITIONS[self.state]:",
              f'            raise BadTransition("{kind.name}", self.{kind.fields[0].name}, self.state, state)',
              "        return replace(self, state=state)", "", "    @property", "    def is_final(self) -> bool:",
              '        """Return whether nothing can happen to the record any more."""',
              "        return not TRANSITIONS[self.state]", ""]  # fmt: skip
    numeric = [field for field in kind.fields if field.type in ("int", "float")]
    for field in numeric[:3]:
        lines += [f"    def with_{field.name}(self, {field.name}: {field.type}) -> {kind.title}:",
                  f'        """Return the record with another value: {field.doc}."""',
                  f"        return replace(self, {field.name}={field.name})", ""]  # fmt: skip
    lines += ["    def as_row(self) -> dict[str, object]:", '        """Return the record as a row of its table."""',
              "        return {"]  # fmt: skip
    lines += [f'            "{field.name}": self.{field.name},' for field in kind.fields]
    lines += ['            "state": self.state,', "        }", ""]
    lines += ["    @classmethod", f"    def from_row(cls, row: dict[str, object]) -> {kind.title}:",
              '        """Return the record in a row; a missing column is a BadRecord, not a KeyError."""', "        try:",
              "            return cls("]  # fmt: skip
    lines += [
        f'                {field.name}={field.type}(row["{field.name}"]),  # type: ignore[arg-type]'
        for field in kind.fields
    ]
    lines += ['                state=str(row["state"]),', "            )", "        except KeyError as error:",
              f'            raise BadRecord("{kind.name}", str(error), None, "a column of the table") from error', ""]  # fmt: skip
    return "\n".join(lines)


def _with_self(check: str, name: str) -> str:
    return re.sub(rf"\b{name}\b(?!\()", f"self.{name}", check)


_SQL = {"str": "TEXT", "int": "INTEGER", "float": "REAL", "bool": "INTEGER"}


def _repository(kind: Kind) -> str:
    key, columns = kind.fields[0].name, [field.name for field in kind.fields]
    table = "\n".join(f"    {field.name} {_SQL[field.type]} NOT NULL,  -- {field.doc}" for field in kind.fields)
    finders = ""
    for field in kind.fields[1:4]:
        finders += f'''
    def by_{field.name}(self, {field.name}: {field.type}, limit: int = 100) -> list[{kind.title}]:
        """Return the {kind.plural.replace("_", " ")} with this value ({field.doc}), the newest first."""
        rows = self._db.fetch(
            "SELECT * FROM {kind.plural} WHERE {field.name} = ? ORDER BY rowid DESC LIMIT ?", ({field.name}, limit)
        )
        return [{kind.title}.from_row(row) for row in rows]
'''
    return f'''"""{kind.plural.replace("_", " ").capitalize()} in the database. One table, one row a record, every write in a transaction."""

from __future__ import annotations

from collections.abc import Iterator

from tidewater.db import Database
from tidewater.errors import NotFound, StaleWrite
from tidewater.{kind.plural}.model import {kind.title}

SCHEMA = """
CREATE TABLE IF NOT EXISTS {kind.plural} (
{table}
    state TEXT NOT NULL DEFAULT '{kind.states[0]}',
    version INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY ({key})
);
CREATE INDEX IF NOT EXISTS {kind.plural}_by_state ON {kind.plural} (state);
"""


class {kind.title}Repository:
    """Reads and writes {kind.plural.replace("_", " ")}."""

    def __init__(self, db: Database) -> None:
        self._db = db
        db.script(SCHEMA)

    def get(self, {key}: str) -> {kind.title}:
        """Return the record; raises NotFound."""
        row = self._db.fetch_one("SELECT * FROM {kind.plural} WHERE {key} = ?", ({key},))
        if row is None:
            raise NotFound("{kind.name}", {key})
        return {kind.title}.from_row(row)

    def add(self, {kind.name}: {kind.title}) -> None:
        """Store a new record; a second one with the same {key} is an IntegrityError of the database."""
        row = {kind.name}.as_row()
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        with self._db.transaction() as run:
            run(f"INSERT INTO {kind.plural} ({{names}}) VALUES ({{marks}})", tuple(row.values()))

    def save(self, {kind.name}: {kind.title}, version: int) -> int:
        """Store a changed record if nobody changed it since `version` was read; return the new version.

        Raises:
            StaleWrite: somebody else was faster; read again and repeat the step.
        """
        row = {kind.name}.as_row()
        assignments = ", ".join(f"{{name}} = ?" for name in row if name != "{key}")
        values = [value for name, value in row.items() if name != "{key}"]
        with self._db.transaction() as run:
            changed = run(
                f"UPDATE {kind.plural} SET {{assignments}}, version = version + 1 WHERE {key} = ? AND version = ?",
                (*values, {kind.name}.{key}, version),
            )
        if changed != 1:
            raise StaleWrite("{kind.name}", {kind.name}.{key}, version)
        return version + 1

    def version_of(self, {key}: str) -> int:
        """Return the version to pass to `save`; raises NotFound."""
        row = self._db.fetch_one("SELECT version FROM {kind.plural} WHERE {key} = ?", ({key},))
        if row is None:
            raise NotFound("{kind.name}", {key})
        return int(row["version"])

    def in_state(self, state: str) -> Iterator[{kind.title}]:
        """Yield the records in a state, ordered by {columns[1]}."""
        for row in self._db.fetch("SELECT * FROM {kind.plural} WHERE state = ? ORDER BY {columns[1]}", (state,)):
            yield {kind.title}.from_row(row)
{finders}
    def count_by_state(self) -> dict[str, int]:
        """Return how many records stand in each state."""
        rows = self._db.fetch("SELECT state, COUNT(*) AS n FROM {kind.plural} GROUP BY state", ())
        return {{str(row["state"]): int(row["n"]) for row in rows}}
'''


def _service(kind: Kind) -> str:
    key = kind.fields[0].name
    parts = [
        f'''"""What can happen to {kind.plural.replace("_", " ")}: one method a step, each with its rule and its event."""

from __future__ import annotations

import logging

from tidewater.clock import Clock
from tidewater.errors import Forbidden
from tidewater.events import Event, Publisher
from tidewater.{kind.plural}.model import {kind.title}
from tidewater.{kind.plural}.repository import {kind.title}Repository

log = logging.getLogger(__name__)


class {kind.title}Service:
    """Carries out the steps of {kind.plural.replace("_", " ")} and tells whoever listens."""

    def __init__(self, repository: {kind.title}Repository, publisher: Publisher, clock: Clock) -> None:
        self._repository = repository
        self._publisher = publisher
        self._clock = clock

    def register(self, {kind.name}: {kind.title}) -> {kind.title}:
        """Take in a new record in state {kind.states[0]}."""
        self._repository.add({kind.name})
        self._tell("{kind.name}.registered", {kind.name}, {{"by": "{kind.fields[1].name}", "value": {kind.name}.{kind.fields[1].name}}})
        return {kind.name}
'''
    ]
    for step in kind.steps:
        field = kind.fields[(len(step.verb) + len(step.doc)) % len(kind.fields)]
        parts.append(f'''    def {step.verb}(self, {key}: str, *, by: str) -> {kind.title}:
        """Move the record from {step.before} to {step.after}: {step.doc}.

        Raises:
            Forbidden: {step.because}.
            BadTransition: the record is not {step.before}.
            NotFound: nobody knows `{key}`.
        """
        version = self._repository.version_of({key})
        {kind.name} = self._repository.get({key})
        if {step.forbidden}:
            log.warning("{step.verb} refused for %s %s: %s", "{kind.name}", {key}, "{step.because}")
            raise Forbidden("{step.verb}", {key}, "{step.because}")
        moved = {kind.name}.moved_to({step.after!r})
        self._repository.save(moved, version)
        self._tell("{kind.name}.{step.after}", moved, {{"by": by, "{field.name}": moved.{field.name}}})
        return moved
''')
    parts.append(f'''    def overview(self) -> dict[str, int]:
        """Return the number of records by state; states without any are listed with 0."""
        found = self._repository.count_by_state()
        return {{state: found.get(state, 0) for state in {tuple(kind.states)!r}}}

    def _tell(self, topic: str, {kind.name}: {kind.title}, details: dict[str, object]) -> None:
        event = Event(topic=topic, key={kind.name}.{key}, at=self._clock.now(), details=details)
        self._publisher.publish(event)
        log.info("%s %s", topic, {kind.name}.{key})
''')
    return "\n".join(parts)


def _routes(kind: Kind) -> str:
    key = kind.fields[0].name
    readers = "\n".join(
        f'        {field.name}=body.{ {"str": "text", "int": "integer", "float": "number", "bool": "flag"}[field.type]}'
        f'("{field.name}"),' for field in kind.fields)  # fmt: skip
    steps = "\n".join(
        f'    router.post("/{kind.plural}/{{{key}}}/{step.verb}", _step(service.{step.verb}))' for step in kind.steps
    )
    return f'''"""HTTP of {kind.plural.replace("_", " ")}: reads bodies, calls the service, turns errors into answers."""

from __future__ import annotations

from collections.abc import Callable

from tidewater.errors import TidewaterError
from tidewater.http import Body, Request, Response, Router, problem
from tidewater.{kind.plural}.model import {kind.title}
from tidewater.{kind.plural}.service import {kind.title}Service


def mount(router: Router, service: {kind.title}Service) -> None:
    """Add the routes of {kind.plural.replace("_", " ")}."""

    def create(request: Request) -> Response:
        try:
            record = service.register(_read(request.body()))
        except TidewaterError as error:
            return problem(error)
        return Response(201, record.as_row(), headers={{"Location": f"/{kind.plural}/{{record.{key}}}"}})

    def overview(request: Request) -> Response:
        return Response(200, service.overview())

    router.post("/{kind.plural}", create)
    router.get("/{kind.plural}/overview", overview)
{steps}


def _read(body: Body) -> {kind.title}:
    """Return the record in a request body; a wrong or missing field is a problem that names it."""
    return {kind.title}(
{readers}
    )


def _step(step: Callable[..., {kind.title}]) -> Callable[[Request], Response]:
    """Return a handler for one step; who did it comes from the session, never from the body."""

    def handle(request: Request) -> Response:
        try:
            record = step(request.path["{key}"], by=request.session.user)
        except TidewaterError as error:
            return problem(error)
        return Response(200, record.as_row())

    return handle
'''


def _tests(kind: Kind) -> str:
    key = kind.fields[0].name
    sample = ", ".join(f"{field.name}={field.sample}" for field in kind.fields)
    parts = [
        f'''"""Rules and steps of {kind.plural.replace("_", " ")}."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock, RecordingPublisher
from tidewater.db import Database
from tidewater.errors import BadRecord, BadTransition, Forbidden, NotFound
from tidewater.{kind.plural}.model import STATES, {kind.title}
from tidewater.{kind.plural}.repository import {kind.title}Repository
from tidewater.{kind.plural}.service import {kind.title}Service


def a_{kind.name}(**changes: object) -> {kind.title}:
    values: dict[str, object] = dict({sample})
    return {kind.title}(**{{**values, **changes}})  # type: ignore[arg-type]


@pytest.fixture
def service() -> {kind.title}Service:
    return {kind.title}Service({kind.title}Repository(Database(":memory:")), RecordingPublisher(), FakeClock(1_767_225_600))


def test_a_row_survives_the_round_trip() -> None:
    {kind.name} = a_{kind.name}()
    assert {kind.title}.from_row({kind.name}.as_row()) == {kind.name}
'''
    ]
    bad = {"str": '""', "int": "-1", "float": "-1.0", "bool": '"maybe"'}
    for field in kind.fields:
        if (
            field.type != "bool"
            and 'in ("",' not in field.check
            and ('""' in field.check or "<=" not in field.check or field.type != "str")
        ):
            parts.append(f'''
def test_a_bad_{field.name}_is_refused() -> None:
    """{field.doc.capitalize()}."""
    with pytest.raises(BadRecord) as caught:
        a_{kind.name}({field.name}={bad[field.type]})
    assert caught.value.field == "{field.name}"
''')
    for step in kind.steps:
        parts.append(f"""
def test_{step.verb}_moves_from_{step.before}_to_{step.after}(service: {kind.title}Service) -> None:
    service.register(a_{kind.name}(state={step.before!r}))
    assert service.{step.verb}({kind.fields[0].sample}, by="test").state == {step.after!r}
    with pytest.raises(BadTransition):
        service.{step.verb}({kind.fields[0].sample}, by="test")
""")
    parts.append(f"""
def test_an_unknown_{key}_is_not_found(service: {kind.title}Service) -> None:
    with pytest.raises(NotFound):
        service.{kind.steps[0].verb}("nobody", by="test")


def test_the_overview_names_every_state(service: {kind.title}Service) -> None:
    assert set(service.overview()) == set(STATES)
    assert Forbidden is not None
""")
    return "".join(parts)


SHIPS = ("Ægir", "Þór", "海燕丸", "Ψαρά", "Zażółć", "Nordlys", "Santa Inês", "Ōshima Maru", "Vega", "Élan", "Gråsten")
REMARKS = ("needs shore power", "reefers on deck", "bow thruster out of order", "agent asks for an early start",
           "crew change, bus at the gate", "draught reported by radio", "", "", "", "pilot ladder on port side")  # fmt: skip
BERTHS = ("N1", "N2", "N3", "N4", "S1", "S2", "S3", "W1")
FIRST_DAY = 1_764_547_200


def _records() -> dict[str, str]:
    """Return the harbour's old data: a month of stays, the planner's log, the harbour diary."""
    draw = random.Random("tidewater 2025-12")
    stays, log, diary = (
        ["reference,ship,berth,starts_at,ends_at,length_m,currency,dues"],
        [],
        ["# Harbour diary, December 2025"],
    )
    starts = sorted(FIRST_DAY + draw.randrange(31 * 96) * 900 for _ in range(330))
    for number, start in enumerate(starts):
        ship, berth = draw.choice(SHIPS), draw.choice(BERTHS)
        end, length = start + draw.randrange(8, 120) * 900, draw.randrange(300, 2900) / 10
        reference = f"BK{4000 + number:06}"
        hours = -(-(end - start) // 3600)
        stays.append(f"{reference},{ship},{berth},{start},{end},{length},EUR,{hours * -(-length // 1) * 0.43:.2f}")
        stamp = f"2025-12-{1 + (start - FIRST_DAY) // 86_400:02} {start % 86_400 // 3600:02}:{start % 3600 // 60:02}"
        log.append(f"{stamp} INFO  planner request {reference} ship={ship} berth={berth} from={start} to={end}")
        for other in draw.sample(BERTHS, 2):
            log.append(
                f"{stamp} DEBUG planner candidate {reference} berth={other} cost={draw.uniform(2, 160):.1f} "
                f"window={start - draw.randrange(7200)}..{end + draw.randrange(9000)}"
            )
        verdict = draw.choice(["confirmed", "confirmed", "confirmed", "refused: conflict", "refused: no window"])
        log.append(f"{stamp} {'INFO ' if verdict == 'confirmed' else 'WARN '} planner {verdict} {reference} on {berth}")
        if number % 4 == 0:
            diary.append(
                f"\n## {stamp}\n\n{ship} at {berth}, {length} m. "
                f"{draw.choice(REMARKS).capitalize() or 'Nothing to report'}. "
                f"Wind {draw.randrange(2, 24)} m/s, tide {draw.uniform(0.4, 4.6):.2f} m. "
                f"{draw.choice(['Lines fast', 'Lines gone', 'Shifted two bollards aft', 'Gangway rigged'])} "
                f"after {draw.randrange(8, 70)} minutes, {draw.choice(['Søren', '王小明', 'Inês', 'Paweł'])} on the quay."
            )
    return {
        "data/stays-2025-12.csv": "\n".join(stays) + "\n",
        "var/planner.log": "\n".join(log) + "\n",
        "docs/diary.md": "\n".join(diary) + "\n",
    }


def _text(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


CORE: dict[str, str] = {
    "AGENTS.md": _text("""
        # How we work on tidewater

        - Python 3.12, standard library only; no new dependency without asking.
        - Times are whole seconds since the epoch, UTC. Never compare local times; `clock.py` is the only place that reads a clock.
        - Money is counted in the smallest unit of its currency once `money.py` is done; no floats in new code.
        - A record is frozen; a step returns a new one. Services raise the errors of `errors.py`, nothing else.
        - Every bug gets a test that fails first. Test names are sentences.
        - Names of ships and people are text in any script: never lower-case, slice or pad them by bytes.
        - Do not touch `tidewater/legacy/`; the harbour office still runs it.
    """),
    "README.md": _text("""
        # tidewater

        Plans berths for a small tidal harbour: who may lie where, when the water is deep enough, what it costs.

            python -m tidewater plan --day 2026-01-01
            python -m pytest -q
    """),
    "pyproject.toml": _text("""
        [project]
        name = "tidewater"
        version = "0.9.2"
        requires-python = ">=3.12"

        [tool.pytest.ini_options]
        testpaths = ["tests"]
        addopts = "-q"

        [tool.ruff]
        line-length = 110
    """),
    "docs/berthing-rules.md": _text("""
        # Berthing rules (harbour office, edition 7)

        1. A stay occupies its berth from the first line ashore to the last line gone, plus 30 minutes on both sides.
        2. Under-keel clearance is 10 % of the draught, at least 0.6 m, at every moment of the stay, also at low water.
        3. Bow to stern, neighbours keep 15 m; 25 m when either carries dangerous goods of class 2 or 3.
        4. A tidal window that crosses midnight is one window. Two bookings never share a window on one berth.
        5. Between two bookings of equal priority the earlier request wins; a lifeboat never waits.
        6. Shore power is booked in steps of 100 kW; what the cabinet cannot give is refused, not promised.
        7. Dues are counted by started hour and by started metre. Rounding is up, once, at the end.
        8. A berth that a work order blocks cannot be booked for the planned hours of the order and two more.
        9. Pilots: ten hours of rest. Nobody is rung at night who is not qualified for it.
        10. Names are written as in the papers: Ægir, Þór, 海燕丸, Ψαρά, Zażółć. Sorting is for people, not for bytes.
    """),
    "tidewater/errors.py": _text('''
        """Every error the planner raises on purpose.

            TidewaterError
            ├── BadRecord       a value that cannot be true
            ├── BadTransition   a step that does not exist
            ├── Forbidden       a rule says no
            ├── NotFound        nobody knows the key
            ├── StaleWrite      somebody else was faster
            └── Conflict        two bookings want the same water
        """

        from __future__ import annotations


        class TidewaterError(Exception):
            """Base of all errors; `status` is the HTTP status that tells it."""

            status = 400


        class BadRecord(TidewaterError):
            """A value that cannot be true."""

            def __init__(self, kind: str, field: str, value: object, expected: str) -> None:
                self.field = field
                super().__init__(f"{kind}.{field} is {value!r}; expected {expected}")


        class BadTransition(TidewaterError):
            """A step that does not exist."""

            status = 409

            def __init__(self, kind: str, key: str, before: str, after: str) -> None:
                super().__init__(f"{kind} {key} is {before}; no step leads to {after}")


        class Forbidden(TidewaterError):
            """A rule says no."""

            status = 403

            def __init__(self, step: str, key: str, because: str) -> None:
                super().__init__(f"{step} {key}: {because}")


        class NotFound(TidewaterError):
            """Nobody knows the key."""

            status = 404

            def __init__(self, kind: str, key: str) -> None:
                super().__init__(f"no {kind} {key}")


        class StaleWrite(TidewaterError):
            """Somebody else was faster."""

            status = 409

            def __init__(self, kind: str, key: str, version: int) -> None:
                super().__init__(f"{kind} {key} changed since version {version}")


        class Conflict(TidewaterError):
            """Two bookings want the same water."""

            status = 409

            def __init__(self, one: str, other: str, berth: str) -> None:
                super().__init__(f"{one} and {other} both want berth {berth}")
    '''),
    "tidewater/tides.py": _text('''
        """Tides: when is the water deep enough? Heights in metres above lowest astronomical tide."""

        from __future__ import annotations

        import math
        from collections.abc import Iterator
        from dataclasses import dataclass

        DAY = 86_400
        STEP = 600
        SMALLEST_CLEARANCE = 0.6


        @dataclass(frozen=True, slots=True)
        class Constituent:
            """One wave of the tide: amplitude in metres, period in seconds, phase in radians at second 0."""

            name: str
            amplitude: float
            period: float
            phase: float


        CONSTITUENTS = (
            Constituent("M2", 1.42, 44_714.16, 0.83),
            Constituent("S2", 0.48, 43_200.0, 2.10),
            Constituent("N2", 0.29, 45_570.05, 5.51),
            Constituent("K1", 0.11, 86_164.09, 1.27),
            Constituent("O1", 0.09, 92_949.63, 4.02),
        )
        MEAN_LEVEL = 2.35


        @dataclass(frozen=True, slots=True)
        class Window:
            """A span in which the water is deep enough. `ends_at` is the first second outside."""

            starts_at: int
            ends_at: int

            @property
            def seconds(self) -> int:
                """Return how long it lasts."""
                return self.ends_at - self.starts_at

            def contains(self, starts_at: int, ends_at: int) -> bool:
                """Return whether a stay lies inside."""
                return self.starts_at <= starts_at and ends_at <= self.ends_at


        def height(at: int) -> float:
            """Return the height of the tide at a second."""
            waves = (c.amplitude * math.cos(2 * math.pi * at / c.period + c.phase) for c in CONSTITUENTS)
            return MEAN_LEVEL + sum(waves)


        def needed_depth(draught_m: float) -> float:
            """Return the depth a draught needs: 10 % clearance, at least 0.6 m (rule 2)."""
            return draught_m + max(SMALLEST_CLEARANCE, 0.1 * draught_m)


        def windows(day_start: int, depth_m: float, draught_m: float) -> Iterator[Window]:
            """Yield the windows of a day at a berth."""
            needed = needed_depth(draught_m)
            opened: int | None = None
            for at in range(day_start, day_start + DAY, STEP):
                deep = depth_m + height(at) >= needed
                if deep and opened is None:
                    opened = at
                elif not deep and opened is not None:
                    yield Window(opened, at)
                    opened = None
            if opened is not None:
                yield Window(opened, day_start + DAY)


        def next_window(after: int, depth_m: float, draught_m: float, *, days: int = 14) -> Window | None:
            """Return the first window that ends after a second, looking some days ahead."""
            first_day = after - after % DAY
            for day in range(first_day, first_day + days * DAY, DAY):
                for window in windows(day, depth_m, draught_m):
                    if window.ends_at > after:
                        return window
            return None
    '''),
    "tidewater/planner.py": _text('''
        """Puts bookings on berths: candidates by rule, the cheapest first, conflicts refused."""

        from __future__ import annotations

        from collections.abc import Iterable, Sequence
        from dataclasses import dataclass

        from tidewater import tides
        from tidewater.berths.model import Berth
        from tidewater.bookings.model import Booking
        from tidewater.errors import Conflict
        from tidewater.vessels.model import Vessel

        MARGIN = 1_800
        GAP_M = 15.0
        GAP_HAZMAT_M = 25.0


        @dataclass(frozen=True, slots=True)
        class Candidate:
            """A berth that could take a booking, and how well it fits: lower is better."""

            berth: Berth
            window: tides.Window
            cost: float


        def candidates(booking: Booking, vessel: Vessel, berths: Iterable[Berth]) -> list[Candidate]:
            """Return the berths that fit length, depth and power, the best first."""
            found = []
            for berth in berths:
                if berth.state == "closed" or berth.length < vessel.length_m + gap(vessel):
                    continue
                window = tides.next_window(booking.starts_at, berth.depth_m, vessel.draught_m)
                if window is None or not window.contains(booking.starts_at, booking.ends_at):
                    continue
                found.append(Candidate(berth, window, fit_cost(vessel, berth)))
            return sorted(found, key=lambda candidate: (candidate.cost, candidate.berth.code))


        def gap(vessel: Vessel) -> float:
            """Return the distance to neighbours (rule 3)."""
            return GAP_HAZMAT_M if vessel.hazmat_class in ("2", "3") else GAP_M


        def fit_cost(vessel: Vessel, berth: Berth) -> float:
            """Return how much quay and depth a vessel would waste, and power it would miss."""
            wasted_quay = berth.length - vessel.length_m
            wasted_depth = max(0.0, berth.depth_m - vessel.draught_m) * 4
            return wasted_quay + wasted_depth - min(berth.shore_power_kw, 2_000) / 200


        def overlaps(one: Booking, other: Booking) -> bool:
            """Return whether two bookings want the same berth at the same time, margins included (rule 1)."""
            if one.berth_code != other.berth_code:
                return False
            day_one, day_other = one.starts_at // tides.DAY, other.starts_at // tides.DAY
            if day_one != day_other:
                return False
            return one.starts_at - MARGIN < other.ends_at + MARGIN and other.starts_at - MARGIN < one.ends_at + MARGIN


        def assign(booking: Booking, taken: Sequence[Booking]) -> Booking:
            """Return the booking when nothing stands against it.

            Raises:
                Conflict: another booking of equal or higher priority holds the berth.
            """
            for other in taken:
                if overlaps(booking, other) and other.priority >= booking.priority:
                    raise Conflict(booking.reference, other.reference, booking.berth_code)
            return booking
    '''),
    "tidewater/money.py": _text('''
        """Dues: by started hour and started metre (rule 7)."""

        from __future__ import annotations

        import math

        RATE_PER_METRE_HOUR = {"EUR": 0.43, "DKK": 3.21, "ISK": 64.0}
        NIGHT_SURCHARGE = 0.25
        POWER_PER_KWH = {"EUR": 0.31, "DKK": 2.3, "ISK": 46.0}


        def quay_dues(length_m: float, seconds: int, currency: str) -> float:
            """Return the dues of a stay."""
            hours = math.ceil(seconds / 3600)
            metres = math.ceil(length_m)
            return round(hours * metres * RATE_PER_METRE_HOUR[currency], 2)


        def pilotage(length_m: float, at_night: bool, currency: str) -> float:
            """Return what a pilot costs."""
            base = math.ceil(length_m) * RATE_PER_METRE_HOUR[currency] * 6
            return round(base * (1 + NIGHT_SURCHARGE) if at_night else base, 2)


        def power(kwh: float, currency: str) -> float:
            """Return what shore power costs."""
            return round(kwh * POWER_PER_KWH[currency], 2)


        def total(parts: list[float]) -> float:
            """Return the sum of an invoice."""
            return round(sum(parts), 2)
    '''),
    "tidewater/clock.py": _text('''
        """The only place that reads a clock."""

        from __future__ import annotations

        import time
        from typing import Protocol


        class Clock(Protocol):
            """Tells the time in whole seconds, UTC."""

            def now(self) -> int:
                """Return the second."""


        class SystemClock:
            """The machine's clock."""

            def now(self) -> int:
                """Return the second."""
                return int(time.time())
    '''),
    "tidewater/db.py": _text('''
        """SQLite behind a small door: rows are dicts, writes are transactions."""

        from __future__ import annotations

        import sqlite3
        from collections.abc import Callable, Iterator, Sequence
        from contextlib import contextmanager

        Row = dict[str, object]


        class Database:
            """One connection; foreign keys on, a busy database waits two seconds."""

            def __init__(self, path: str) -> None:
                self._connection = sqlite3.connect(path, isolation_level=None)
                self._connection.row_factory = sqlite3.Row
                self._connection.execute("PRAGMA foreign_keys = ON")
                self._connection.execute("PRAGMA busy_timeout = 2000")

            def script(self, text: str) -> None:
                """Run several statements."""
                self._connection.executescript(text)

            def fetch(self, query: str, values: Sequence[object]) -> list[Row]:
                """Return all rows."""
                return [dict(row) for row in self._connection.execute(query, tuple(values))]

            def fetch_one(self, query: str, values: Sequence[object]) -> Row | None:
                """Return the first row, None when there is none."""
                row = self._connection.execute(query, tuple(values)).fetchone()
                return dict(row) if row is not None else None

            @contextmanager
            def transaction(self) -> Iterator[Callable[[str, Sequence[object]], int]]:
                """Run writes that happen all or not at all; the function returns how many rows changed."""
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield lambda query, values: self._connection.execute(query, tuple(values)).rowcount
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
    '''),
    "tidewater/events.py": _text('''
        """What happened, told to whoever listens: the board, the log, the harbour radio."""

        from __future__ import annotations

        from collections import defaultdict
        from collections.abc import Callable
        from dataclasses import dataclass, field


        @dataclass(frozen=True, slots=True)
        class Event:
            """One thing that happened. `topic` is `kind.state`, `at` a second UTC."""

            topic: str
            key: str
            at: int
            details: dict[str, object] = field(default_factory=dict)


        Listener = Callable[[Event], None]


        class Publisher:
            """Hands events on, in order; a listener that fails does not stop the others."""

            def __init__(self) -> None:
                self._listeners: dict[str, list[Listener]] = defaultdict(list)
                self.failures: list[tuple[Event, Exception]] = []

            def listen(self, topic: str, listener: Listener) -> None:
                """Call the listener for a topic; `*` means all."""
                self._listeners[topic].append(listener)

            def publish(self, event: Event) -> None:
                """Tell everybody."""
                for listener in (*self._listeners[event.topic], *self._listeners["*"]):
                    try:
                        listener(event)
                    except Exception as error:
                        self.failures.append((event, error))
    '''),
    "tests/fakes.py": _text('''
        """Stand-ins for what tests must control."""

        from __future__ import annotations

        from tidewater.events import Event, Publisher


        class FakeClock:
            """A clock that stands until it is told to go on."""

            def __init__(self, at: int) -> None:
                self.at = at

            def now(self) -> int:
                return self.at

            def pass_seconds(self, seconds: int) -> None:
                self.at += seconds


        class RecordingPublisher(Publisher):
            """A publisher that remembers."""

            def __init__(self) -> None:
                super().__init__()
                self.told: list[Event] = []
                self.listen("*", self.told.append)
    '''),
    "tests/test_planner.py": _text('''
        """Two bookings never share water (rules 1, 4, 5)."""

        from __future__ import annotations

        import pytest

        from tests.test_bookings import a_booking
        from tidewater.errors import Conflict
        from tidewater.planner import MARGIN, assign, overlaps

        MIDNIGHT = 1_767_225_600


        def test_stays_that_touch_within_the_margin_overlap() -> None:
            one = a_booking(reference="BK000001", starts_at=MIDNIGHT + 3_600, ends_at=MIDNIGHT + 7_200)
            other = a_booking(reference="BK000002", starts_at=MIDNIGHT + 7_200 + MARGIN, ends_at=MIDNIGHT + 14_400)
            assert overlaps(one, other)


        def test_other_berths_do_not_matter() -> None:
            assert not overlaps(a_booking(berth_code="N4"), a_booking(berth_code="N5"))


        def test_the_earlier_request_of_equal_priority_wins() -> None:
            taken = [a_booking(reference="BK000001")]
            with pytest.raises(Conflict, match="BK000001"):
                assign(a_booking(reference="BK000002"), taken)


        def test_a_lifeboat_never_waits() -> None:
            taken = [a_booking(reference="BK000001", priority=5)]
            assert assign(a_booking(reference="BK000009", priority=9), taken).reference == "BK000009"
    '''),
}
