# ruff: noqa: E501 (long lines are messages and edits)
"""The afternoon of the demo session: sixteen requests about the invented project, and the assistant's work."""

from __future__ import annotations

import re
import textwrap

from tools.demo.codebase import BERTHS
from tools.demo.stand_ins import Session, board_picture, edit, grep, package, read, run


def _text(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def play(s: Session) -> None:
    """Add the whole session to the transcript."""
    s.attach("AGENTS.md", "rules", s.files["AGENTS.md"])
    for chapter in (
        _overlap,
        _windows,
        _money,
        _invoices,
        _lengths,
        _blocked_berths,
        _names,
        _slow_nights,
        _papers,
        _review,
        _december,
        _diff,
        _wrap_up,
    ):
        chapter(s)


def _overlap(s: Session) -> None:
    s.attach("docs/berthing-rules.md", "file", s.files["docs/berthing-rules.md"])
    s.user(
        "On New Year's Eve two ships were promised berth N4 for the same night. Read how the planner decides whether two "
        "bookings overlap and explain it to me against the attached rules. Don't change anything yet."
    )
    s.work("I'll look at the layout and at everything that mentions overlaps.",
           ("file_search", {"pattern": "tidewater/*.py"}), grep("overlap", include="*.py"),
           grep(r"starts_at|ends_at", is_regex=True, path="tidewater/", include="*.py"))  # fmt: skip
    s.work("The planner and the tides carry the decision; the booking says what a stay is.",
           read("tidewater/planner.py"), read("tidewater/tides.py"), *package("bookings", "model", "service"),
           read("tidewater/errors.py"))  # fmt: skip
    s.say(_text("""
        `overlaps` in `tidewater/planner.py` compares three things, in this order:

        1. the berth codes must be equal;
        2. **both stays must start on the same UTC day** (`one.starts_at // tides.DAY`);
        3. the spans, widened by `MARGIN` (30 minutes, rule 1), must cross.

        The root cause is step 2. A stay that begins on 31 December at 22:00 and one that begins on 1 January at 01:00
        start on different days, so the function answers "no overlap" before it looks at the hours. Rule 4 says that two
        bookings never share water on one berth, midnight or not. `tides.windows` has a similar habit: it closes every
        window at the end of the day.
    """))  # fmt: skip

    s.attach("docs/board.png", "image", [{"type": "image_url", "image_url": {"url": board_picture()}}])
    s.user("That's the board at the harbour office, the red bar is the second promise. Check in the planner's log what it decided "
           "in the last nights of December, and whether N4 is the only berth this happened to.")  # fmt: skip
    log = s.files["var/planner.log"].rstrip("\n").split("\n")
    last = next(number for number, line in enumerate(log, 1) if line.startswith("2025-12-30"))
    s.work("I'll read the end of the log, and count refusals per berth.",
           read("var/planner.log", last, last + 59),
           run("grep -c 'refused: conflict' var/planner.log",
               (0, str(sum("refused: conflict" in line for line in log)))),
           run("grep 'confirmed' var/planner.log | awk '{print $NF}' | sort | uniq -c",
               (0, "\n".join(f"{sum(line.endswith(f'on {berth}') and 'confirmed' in line for line in log):7} {berth}"
                             for berth in BERTHS))))  # fmt: skip
    s.work("The stays themselves are in the CSV; the nights matter.",
           read("data/stays-2025-12.csv", 290, 331), read("docs/diary.md", 300, 333))  # fmt: skip
    s.say("N4 is not the only one: every berth has confirmed stays whose nights cross midnight, and no refusal ever names two bookings "
          "that start on different days. The board shows it for N4 because *Ægir* and *海燕丸* were both there in person.")  # fmt: skip

    s.user("OK. Do it properly: a test that fails first, then the fix. Keep the fast exit if you can.")
    s.work("First what the tests say today.", read("tests/test_planner.py"), read("tests/test_bookings.py", 1, 40))
    s.work(
        "Two tests: one across midnight, one for a stay of several days.",
        edit(
            "tests/test_planner.py",
            "def test_other_berths_do_not_matter",
            _text("""
                def test_stays_on_both_sides_of_midnight_overlap() -> None:
                    \"\"\"Rule 4: New Year's Eve, Ægir and 海燕丸 on N4.\"\"\"
                    one = a_booking(reference="BK000001", starts_at=MIDNIGHT - 7_200, ends_at=MIDNIGHT + 10_800)
                    other = a_booking(reference="BK000002", starts_at=MIDNIGHT + 3_600, ends_at=MIDNIGHT + 14_400)
                    assert overlaps(one, other)
                    assert overlaps(other, one)


                def test_a_stay_of_several_days_overlaps_what_begins_inside_it() -> None:
                    one = a_booking(reference="BK000001", starts_at=MIDNIGHT - 200_000, ends_at=MIDNIGHT + 200_000)
                    other = a_booking(reference="BK000002", starts_at=MIDNIGHT, ends_at=MIDNIGHT + 3_600)
                    assert overlaps(one, other)


                def test_other_berths_do_not_matter"""),
        ),
    )
    s.work(
        "They must fail now.",
        run("python -m pytest -q tests/test_planner.py", s.tests("test_planner", {
            "test_stays_on_both_sides_of_midnight_overlap":
                ">       assert overlaps(one, other)\nE       AssertionError: assert False\n\ntests/test_planner.py:26: AssertionError",
            "test_a_stay_of_several_days_overlaps_what_begins_inside_it":
                ">       assert overlaps(one, other)\nE       AssertionError: assert False\n\ntests/test_planner.py:33: AssertionError",
        })),
    )  # fmt: skip
    s.work(
        "The comparison of spans alone decides; it is two subtractions, so there is nothing to exit fast from.",
        edit("tidewater/planner.py", """    day_one, day_other = one.starts_at // tides.DAY, other.starts_at // tides.DAY
    if day_one != day_other:
        return False
""", ""),
    )  # fmt: skip
    s.work("", run("python -m pytest -v", s.tests()), read("tidewater/planner.py", 50, 80))
    s.say(
        "Fixed: `overlaps` no longer looks at the day. Both new tests failed before and pass now, and so does everything else."
    )


def _windows(s: Session) -> None:
    s.user("Same medicine for `tides.windows`, please. A window that crosses midnight is one window (rule 4).")
    s.work(
        "Who uses windows?",
        grep("windows(", include="*.py"),
        grep("next_window", include="*.py"),
        read("tidewater/tides.py", 60, 98),
    )
    s.work(
        "A test first: find a night with high water around midnight and ask for the window.",
        ("create_file", {"path": "tests/test_tides.py", "content": _text('''
            """When is the water deep enough (rules 2, 4)?"""

            from __future__ import annotations

            from tidewater.tides import DAY, height, needed_depth, next_window, windows

            DAY_ONE = 1_767_139_200


            def high_water_at_midnight() -> int:
                """Return the first midnight of the year at which the tide stands above its mean."""
                return next(day for day in range(DAY_ONE, DAY_ONE + 60 * DAY, DAY) if height(day) > 3.2)


            def test_clearance_is_a_tenth_but_never_less_than_sixty_centimetres() -> None:
                assert needed_depth(4.0) == 4.6
                assert needed_depth(10.0) == 11.0


            def test_a_window_across_midnight_is_one_window() -> None:
                midnight = high_water_at_midnight()
                window = next_window(midnight - 3_600, 6.0, 7.5)
                assert window is not None
                assert window.starts_at < midnight < window.ends_at


            def test_deep_water_is_one_window_for_as_long_as_one_looks() -> None:
                assert [window.seconds for window in windows(DAY_ONE, 40.0, 3.0, days=3)] == [3 * DAY]
        ''')}),
    )  # fmt: skip
    s.work(
        "",
        run("python -m pytest -q tests/test_tides.py", s.tests("test_tides", {
            "test_a_window_across_midnight_is_one_window":
                ">       assert window.starts_at < midnight < window.ends_at\nE       assert 1767225600 < 1767225600",
            "test_deep_water_is_one_window_for_as_long_as_one_looks":
                "E       TypeError: windows() got an unexpected keyword argument 'days'",
        })),
    )  # fmt: skip
    s.work(
        "`windows` gets a number of days and closes only at the very end; `next_window` asks once instead of day by day.",
        edit("tidewater/tides.py", '''def windows(day_start: int, depth_m: float, draught_m: float) -> Iterator[Window]:
    """Yield the windows of a day at a berth."""
''', '''def windows(day_start: int, depth_m: float, draught_m: float, *, days: int = 1) -> Iterator[Window]:
    """Yield the windows of some days at a berth; midnight does not cut them (rule 4)."""
'''),
        edit("tidewater/tides.py", "    for at in range(day_start, day_start + DAY, STEP):", "    end = day_start + days * DAY\n    for at in range(day_start, end, STEP):"),
        edit("tidewater/tides.py", "        yield Window(opened, day_start + DAY)", "        yield Window(opened, end)"),
        edit("tidewater/tides.py", '''    first_day = after - after % DAY
    for day in range(first_day, first_day + days * DAY, DAY):
        for window in windows(day, depth_m, draught_m):
            if window.ends_at > after:
                return window
    return None
''', '''    yesterday = after - after % DAY - DAY
    found = windows(yesterday, depth_m, draught_m, days=days + 1)
    return next((window for window in found if window.ends_at > after), None)
'''),
    )  # fmt: skip
    s.work("", read("tidewater/tides.py", 56, 98), run("python -m pytest -v", s.tests()))
    s.say("`tides.windows` takes `days` now and only the very last window is cut. Starting a day earlier matters: a window that opened "
          "yesterday evening is found whole, not from midnight on.")  # fmt: skip


def _money(s: Session) -> None:
    s.user(
        "Next: money. AGENTS.md wants whole cents. Show me every place that holds money as a float before you touch one."
    )
    s.work("Names first, then the files.",
           grep(r"quay_dues|pilotage|towage|\bpower\b|total", is_regex=True, include="*.py"), read("tidewater/money.py"),
           *package("invoices", "model", "repository", "service", "routes"), read("tests/test_invoices.py"))  # fmt: skip
    s.say(_text("""
        Money is a float in these places:

        - `tidewater/money.py`: all four functions return floats rounded to two places, **each part on its own**. Rule 7 says: round up, once, at the end.
        - `tidewater/invoices/model.py`: `quay_dues`, `pilotage`, `towage`, `power`.
        - `tidewater/invoices/repository.py`: the same four as `REAL`.
        - `tidewater/invoices/routes.py` reads them with `body.number`.

        ISK has no smaller unit, so "cents" must be per currency.
    """))  # fmt: skip
    s.user(
        "Good list. Start with money.py: amounts in the smallest unit as int, rounding up once in `total`. Then its tests."
    )
    s.work("I'll rewrite the module around exact fractions.",
           edit("tidewater/money.py", s.files["tidewater/money.py"], _text('''
            """Dues: by started hour and started metre, exact until the end, then rounded up once (rule 7).

            An amount is a `Fraction` of the smallest unit while it is computed and an `int` once it is charged.
            """

            from __future__ import annotations

            import math
            from collections.abc import Iterable
            from fractions import Fraction

            UNITS = {"EUR": 100, "DKK": 100, "ISK": 1}
            RATE_PER_METRE_HOUR = {"EUR": Fraction("0.43"), "DKK": Fraction("3.21"), "ISK": Fraction(64)}
            NIGHT_SURCHARGE = Fraction(1, 4)
            POWER_PER_KWH = {"EUR": Fraction("0.31"), "DKK": Fraction("2.3"), "ISK": Fraction(46)}


            def quay_dues(length_m: float, seconds: int, currency: str) -> Fraction:
                """Return the dues of a stay."""
                hours, metres = math.ceil(Fraction(seconds, 3600)), math.ceil(length_m)
                return hours * metres * RATE_PER_METRE_HOUR[currency] * UNITS[currency]


            def pilotage(length_m: float, at_night: bool, currency: str) -> Fraction:
                """Return what a pilot costs."""
                base = math.ceil(length_m) * RATE_PER_METRE_HOUR[currency] * 6 * UNITS[currency]
                return base * (1 + NIGHT_SURCHARGE) if at_night else base


            def power(watt_hours: int, currency: str) -> Fraction:
                """Return what shore power costs."""
                return Fraction(watt_hours, 1000) * POWER_PER_KWH[currency] * UNITS[currency]


            def total(parts: Iterable[Fraction]) -> int:
                """Return the sum of an invoice in the smallest unit, rounded up."""
                return math.ceil(sum(parts, Fraction(0)))
        ''')))  # fmt: skip
    s.work("", ("create_file", {"path": "tests/test_money.py", "content": _text('''
        """Dues are exact until the end (rule 7)."""

        from __future__ import annotations

        from fractions import Fraction

        from tidewater.money import pilotage, power, quay_dues, total


        def test_started_hours_and_metres_count_whole() -> None:
            assert quay_dues(134.5, 3_601, "EUR") == 2 * 135 * 43


        def test_the_night_costs_a_quarter_more() -> None:
            assert pilotage(100, True, "DKK") == pilotage(100, False, "DKK") * Fraction(5, 4)


        def test_rounding_happens_once_and_upwards() -> None:
            thirds = [Fraction(1, 3)] * 3
            assert total(thirds) == 1
            assert total([*thirds, Fraction(1, 100)]) == 2


        def test_iceland_has_no_cents() -> None:
            assert power(1_500, "ISK") == 69
    ''')}), run("python -m pytest -q tests/test_money.py", (0, "....                                                                     [100%]\n4 passed in 0.03s")),
           ("get_diagnostics", {"path": "tidewater/money.py"}))  # fmt: skip
    s.say("`money.py` computes in fractions of the smallest unit and rounds up once, in `total`. Nothing calls it with floats any more "
          "except the invoices, which still store floats: that is the next step.")  # fmt: skip


def _invoices(s: Session) -> None:
    s.user(
        "Now the invoices: model, table, routes, tests. Old rows must keep their amounts; write a migration, don't drop anything."
    )
    names = ("quay_dues", "pilotage", "towage", "power")
    path = "tidewater/invoices/model.py"
    s.work("The model first.",
           edit(path, "".join(f"    {name}: float\n" for name in names), "".join(f"    {name}: int\n" for name in names)),
           *(edit(path, f'{name}=float(row["{name}"])', f'{name}=int(row["{name}"])') for name in names))  # fmt: skip
    s.work("Then the table and what the routes read.",
           *(edit("tidewater/invoices/repository.py", f"    {name} REAL", f"    {name} INTEGER") for name in names),
           edit("tidewater/invoices/routes.py", "".join(f'        {name}=body.number("{name}"),\n' for name in names),
                "".join(f'        {name}=body.integer("{name}"),\n' for name in names)))  # fmt: skip
    s.work(
        "How do other tables migrate?",
        read("tidewater/db.py"),
        grep("executescript", include="*.py"),
        read("tidewater/invoices/repository.py", 1, 60),
    )
    s.work("There is no migration yet, so this is the first; it runs once, inside one transaction.",
           ("create_file", {"path": "tidewater/migrations.py", "content": _text('''
        """Changes to tables that already hold rows: numbered, each in one transaction, never dropped."""

        from __future__ import annotations

        from tidewater.db import Database

        CENTS = """
        UPDATE invoices SET
            quay_dues = CAST(ROUND(quay_dues * unit) AS INTEGER),
            pilotage = CAST(ROUND(pilotage * unit) AS INTEGER),
            towage = CAST(ROUND(towage * unit) AS INTEGER),
            power = CAST(ROUND(power * unit) AS INTEGER)
        FROM (SELECT number AS key, CASE currency WHEN 'ISK' THEN 1 ELSE 100 END AS unit FROM invoices) AS units
        WHERE units.key = invoices.number
        """
        MIGRATIONS = ((1, CENTS),)


        def migrate(db: Database) -> int:
            """Bring the tables up to date; return the version they have now. Running it again changes nothing."""
            row = db.fetch_one("PRAGMA user_version", ())
            version = int(row["user_version"]) if row else 0
            for number, statement in MIGRATIONS:
                if number > version:
                    with db.transaction() as run:
                        run(statement, ())
                        run(f"PRAGMA user_version = {number}", ())
                    version = number
            return version
    ''')}), edit("tests/test_invoices.py", "quay_dues=1845.30, pilotage=920.00, towage=2410.75, power=118.20", "quay_dues=184530, pilotage=92000, towage=241075, power=11820"),
           *(edit("tests/test_invoices.py", f"{name}=-1.0)", f"{name}=-1)") for name in names))  # fmt: skip
    s.work("", run("python -m mypy --strict tidewater", (1, _text("""
        tidewater/invoices/model.py:63: error: Argument 1 to "with_quay_dues" has incompatible type "float"; expected "int"  [arg-type]
        tidewater/invoices/model.py:67: error: Argument "pilotage" to "replace" of "Invoice" has incompatible type "float"; expected "int"  [arg-type]
        tidewater/invoices/model.py:71: error: Argument "towage" to "replace" of "Invoice" has incompatible type "float"; expected "int"  [arg-type]
        Found 3 errors in 1 file (checked 52 source files)""").rstrip())))  # fmt: skip
    s.work("The three `with_…` methods still take floats.", *(
        edit("tidewater/invoices/model.py", f"self, {name}: float)", f"self, {name}: int)") for name in names[:3]
    ))  # fmt: skip
    s.work("", read("tidewater/invoices/model.py"), run("python -m mypy --strict tidewater", (0, "Success: no issues found in 52 source files")),
           run("python -m pytest -v", s.tests(failing={"test_write_off_moves_from_overdue_to_written_off":
               'tidewater/invoices/service.py:96: in write_off\n    raise Forbidden("write_off", number, "the board decides above 50,000")\n'
               "E   tidewater.errors.Forbidden: write_off TW-2025-0419: the board decides above 50,000"})))  # fmt: skip
    s.work("The types are right and a number is not: the board's limit is compared with cents now.",
           grep("50000", path="tidewater/", include="*.py"),
           edit("tidewater/invoices/service.py", "if invoice.towage > 50000:", "if invoice.towage > 5_000_000:"))  # fmt: skip
    s.work(
        "",
        run("python -m pytest -q tests/test_invoices.py tests/test_money.py", s.tests("test_invoices", verbose=False)),
    )
    s.say("Invoices hold whole cents (whole krónur for ISK). `tidewater/migrations.py` converts old rows once; `user_version` remembers it. "
          "mypy found three setters I had missed, and a test found a limit of 50,000 that meant euros.")  # fmt: skip


def _lengths(s: Session) -> None:
    s.user("`Berth.length` is the only length without a unit. Rename it to `length_m` everywhere, the column too.")
    s.work("", grep(r"berth\.length\b|\blength\b", is_regex=True, include="*.py"), *package("berths", "model", "repository", "service", "routes"),
           read("tests/test_berths.py"))  # fmt: skip
    s.work("One file after the other; the service and the planner use the attribute, the rest the name.",
           edit("tidewater/berths/model.py", "        length: usable quay length", "        length_m: usable quay length"),
           edit("tidewater/berths/model.py", "    length: float\n", "    length_m: float\n"),
           edit("tidewater/berths/model.py", '(20 <= self.length <= 450):\n            raise BadRecord("berth", "length", self.length,', '(20 <= self.length_m <= 450):\n            raise BadRecord("berth", "length_m", self.length_m,'),
           edit("tidewater/berths/model.py", '            "length": self.length,', '            "length_m": self.length_m,'),
           edit("tidewater/berths/model.py", 'length=float(row["length"])', 'length_m=float(row["length_m"])'),
           edit("tidewater/berths/model.py", "    def with_length(self, length: float)", "    def with_length_m(self, length_m: float)"),
           edit("tidewater/berths/model.py", "replace(self, length=length)", "replace(self, length_m=length_m)"))  # fmt: skip
    s.work("", edit("tidewater/berths/repository.py", "    length REAL NOT NULL", "    length_m REAL NOT NULL"),
           edit("tidewater/berths/repository.py", "    def by_length(self, length: float,", "    def by_length_m(self, length_m: float,"),
           edit("tidewater/berths/repository.py", "WHERE length = ? ORDER BY rowid DESC LIMIT ?\", (length, limit)", "WHERE length_m = ? ORDER BY rowid DESC LIMIT ?\", (length_m, limit)"),
           edit("tidewater/berths/repository.py", "ORDER BY length\"", "ORDER BY length_m\""),
           edit("tidewater/berths/service.py", "berth.length", "berth.length_m", everywhere=True),
           edit("tidewater/berths/service.py", '"length": moved.length', '"length_m": moved.length_m', everywhere=True),
           edit("tidewater/berths/routes.py", 'length=body.number("length")', 'length_m=body.number("length_m")'),
           edit("tidewater/planner.py", "berth.length < vessel", "berth.length_m < vessel"),
           edit("tidewater/planner.py", "wasted_quay = berth.length -", "wasted_quay = berth.length_m -"),
           edit("tests/test_berths.py", "length=180.0", "length_m=180.0"))  # fmt: skip
    s.work("", grep(r"\blength\b(?!_)", is_regex=True, path="t", include="*.py"), run("python -m pytest -q", s.tests("berths", {
        "test_a_bad_length_is_refused": "E       TypeError: Berth.__init__() got an unexpected keyword argument 'length'\n\ntests/test_berths.py:17: TypeError",
    })))  # fmt: skip
    s.work("One test still says `length`.",
           edit("tests/test_berths.py", "def test_a_bad_length_is_refused", "def test_a_bad_length_m_is_refused"),
           edit("tests/test_berths.py", 'a_berth(length=-1.0)\n    assert caught.value.field == "length"', 'a_berth(length_m=-1.0)\n    assert caught.value.field == "length_m"'))  # fmt: skip
    s.work(
        "And the column of existing databases.",
        edit(
            "tidewater/migrations.py",
            "MIGRATIONS = ((1, CENTS),)",
            'LENGTH = "ALTER TABLE berths RENAME COLUMN length TO length_m"\nMIGRATIONS = ((1, CENTS), (2, LENGTH))',
        ),
    )
    s.work("", run("python -m pytest -v", s.tests()))
    s.say(
        "`length_m` everywhere: model, table, routes, planner, tests; migration 2 renames the column where it exists."
    )


def _blocked_berths(s: Session) -> None:
    s.user("Rule 8: a berth that a work order blocks must not be bookable. I think nobody checks that. Please look.")
    s.work(
        "",
        *package("work_orders", "model", "repository", "service", "routes"),
        read("tests/test_work_orders.py"),
        grep("blocks_berth", include="*.py"),
    )
    s.work("Nothing outside the package reads `blocks_berth`. What does the planner know when it decides?",
           read("tidewater/planner.py"), *package("bookings", "repository", "routes"))  # fmt: skip
    s.work("It gets berths and bookings; work orders must come in the same way, as values.",
           edit("tidewater/planner.py", "from tidewater.vessels.model import Vessel\n", "from tidewater.vessels.model import Vessel\nfrom tidewater.work_orders.model import WorkOrder\n"),
           edit("tidewater/planner.py", "def gap(vessel: Vessel)", _text('''
            def is_blocked(berth: Berth, orders: Iterable[WorkOrder]) -> bool:
                """Return whether work keeps the berth empty (rule 8); the place of an order begins with the berth code."""
                return any(
                    order.blocks_berth and order.state in ("planned", "running") and order.place.split()[0] == berth.code
                    for order in orders
                )


            def gap(vessel: Vessel)''')),
           edit("tests/test_planner.py", "def test_a_lifeboat_never_waits", _text('''
            @pytest.mark.parametrize(("state", "blocked"), [("reported", False), ("planned", True), ("running", True), ("done", False)])
            def test_work_blocks_a_berth_only_while_it_is_planned_or_running(state: str, blocked: bool) -> None:
                """Rule 8."""
                order = a_work_order(place="N4 cabinet 2", blocks_berth=True, state=state)
                assert is_blocked(a_berth(code="N4"), [order]) is blocked
                assert not is_blocked(a_berth(code="N5"), [order])


            def test_a_lifeboat_never_waits''')),
           edit("tests/test_planner.py", "from tests.test_bookings import a_booking\n", "from tests.test_berths import a_berth\nfrom tests.test_bookings import a_booking\nfrom tests.test_work_orders import a_work_order\n"),
           edit("tests/test_planner.py", "import MARGIN, assign, overlaps", "import MARGIN, assign, is_blocked, overlaps"))  # fmt: skip
    s.work("", edit("tidewater/planner.py", "berths: Iterable[Berth]) -> list[Candidate]:", "berths: Iterable[Berth],\n               orders: Sequence[WorkOrder] = ()) -> list[Candidate]:"),
           edit("tidewater/planner.py", 'if berth.state == "closed" or', 'if berth.state == "closed" or is_blocked(berth, orders) or'),
           run("python -m pytest -v tests/test_planner.py tests/test_work_orders.py", s.tests("")))  # fmt: skip
    s.say("Nobody did check it. `planner.is_blocked` does now, and `candidates` takes the work orders. The two extra hours after the planned end "
          "are not in yet, because an order has an estimate but no start: that needs a decision of yours.")  # fmt: skip
    s.user("Leave the two hours for now, note it as open. How many of December's stays would have been refused?")
    s.work(
        "I can only count what the log has.",
        read("var/planner.log", 1, 60),
        run(
            "python tools/replay.py --month 2025-12 --rules 4,8",
            (2, "python: can't open file '/home/mara/tidewater/tools/replay.py': [Errno 2] No such file or directory"),
        ),
    )
    s.work("There is no replay tool; the CSV is enough for rule 4.", read("data/stays-2025-12.csv", 1, 40),
           run("python - <<'EOF'\nimport csv\nrows = list(csv.DictReader(open('data/stays-2025-12.csv')))\nprint(len(rows))\nEOF", (0, "330")),
           run("sqlite3 -csv :memory: \".import data/stays-2025-12.csv stays\" \"SELECT berth, count(*) FROM stays GROUP BY 1\"",
               (0, "\n".join(f"{berth},{sum(f',{berth},' in line for line in s.files['data/stays-2025-12.csv'].split(chr(10)))}" for berth in BERTHS))))  # fmt: skip
    s.say("From the CSV alone I can't tell which stays a work order would have stopped: work orders of December are not in the repository. "
          "For rule 4 the stays per berth are above; a real answer needs the database of the office.")  # fmt: skip


def _names(s: Session) -> None:
    s.user(
        "The duty list sorts Þórsson behind Zażółć and Østergård somewhere else again. Where does the sorting happen, and what would be right for people?"
    )
    s.work(
        "",
        *package("pilots", "model", "repository", "service", "routes"),
        read("tests/test_pilots.py"),
        grep("ORDER BY", include="*.py"),
    )
    s.work("SQLite compares bytes. A collation in `db.py` that strips marks and knows Þ, Ø, Æ, Ł is small and needs no dependency.",
           edit("tidewater/db.py", "import sqlite3\n", "import sqlite3\nimport unicodedata\n"),
           edit("tidewater/db.py", "Row = dict[str, object]\n", _text('''
            Row = dict[str, object]
            LETTERS = str.maketrans({"Þ": "th", "þ": "th", "Ø": "o", "ø": "o", "Æ": "ae", "æ": "ae", "Ł": "l", "ł": "l", "ß": "ss"})


            def for_people(name: str) -> str:
                """Return the key people expect a name to be sorted by; the name itself is never changed (rule 10)."""
                plain = unicodedata.normalize("NFKD", name.translate(LETTERS))
                return "".join(char for char in plain if not unicodedata.combining(char)).casefold()


            def _compare(one: str, other: str) -> int:
                left, right = (for_people(one), one), (for_people(other), other)
                return (left > right) - (left < right)
           ''')),
           edit("tidewater/db.py", '        self._connection.execute("PRAGMA foreign_keys = ON")', '        self._connection.create_collation("people", _compare)\n        self._connection.execute("PRAGMA foreign_keys = ON")'),
           edit("tidewater/pilots/repository.py", "ORDER BY full_name\"", "ORDER BY full_name COLLATE people\""),
           edit("tidewater/vessels/repository.py", "ORDER BY name\"", "ORDER BY name COLLATE people\""))  # fmt: skip
    s.work("", ("create_file", {"path": "tests/test_names.py", "content": _text('''
        """Sorting is for people (rule 10)."""

        from __future__ import annotations

        from tidewater.db import Database, for_people

        NAMES = ["Zażółć", "Þór", "Ægir", "Østergård", "Ōshima Maru", "Vega", "Élan", "海燕丸", "Ψαρά"]


        def test_marks_do_not_move_a_name() -> None:
            assert sorted(NAMES, key=for_people)[:5] == ["Ægir", "Élan", "Ōshima Maru", "Østergård", "Þór"]


        def test_the_database_sorts_like_people() -> None:
            db = Database(":memory:")
            db.script("CREATE TABLE ships (name TEXT)")
            with db.transaction() as run:
                for name in NAMES:
                    run("INSERT INTO ships VALUES (?)", (name,))
            rows = db.fetch("SELECT name FROM ships ORDER BY name COLLATE people", ())
            assert [row["name"] for row in rows] == sorted(NAMES, key=lambda name: (for_people(name), name))
    ''')}), run("python -m pytest -v", s.tests()), read("tidewater/db.py"))  # fmt: skip
    s.say("Sorting happened in SQLite, byte by byte. The collation `people` sorts Þ as th, Ø as o, Æ as ae, Ł as l and ignores marks; "
          "names are stored and shown untouched. 海燕丸 and Ψαρά stay behind the Latin names, in their own order.")  # fmt: skip


def _slow_nights(s: Session) -> None:
    s.user(
        "Planning took minutes in the nights before Christmas, they say. Is there anything in the log about it? I only have 22 to 24 December in mind."
    )
    log = s.files["var/planner.log"].split("\n")
    first = next(number for number, line in enumerate(log, 1) if line.startswith("2025-12-22"))
    last = next(number for number, line in enumerate(log, 1) if line.startswith("2025-12-25"))
    s.work("", run("grep -c . var/planner.log", (0, str(len(log) - 1))), read("var/planner.log", first, last - 1))
    s.work("The log has minutes, no durations. What does one request cost in the code?",
           read("tidewater/tides.py"), read("tidewater/planner.py"),
           run("python -m timeit -s 'from tidewater.tides import next_window' 'next_window(1766361600, 9.4, 7.2)'",
               (0, "50 loops, best of 5: 6.83 msec per loop")))  # fmt: skip
    s.say(_text("""
        The log cannot show minutes, it only has the minute of each decision. But the code has a suspect: `next_window` computes the tide at
        144 moments a day for 15 days **for every berth of every request**, about 7 ms each. With eight berths and a replanning of all 330 stays that
        is 18 seconds; the board asks twice. The problem is not the overlap fix: `overlaps` is two subtractions.

        Two ways out: remember `height(at)` (the same for all berths), or step in half hours and refine at the edges. I would remember.
    """))  # fmt: skip
    s.user("remember it then, but bounded, that process runs for months")
    s.work("`lru_cache` with room for a month of steps: 4,464 moments, rounded up.",
           edit("tidewater/tides.py", "import math\nfrom collections.abc import Iterator\nfrom dataclasses import dataclass\n",
                "import math\nfrom collections.abc import Iterator\nfrom dataclasses import dataclass\nfrom functools import lru_cache\n"),
           edit("tidewater/tides.py", "def height(at: int)", "@lru_cache(maxsize=8_192)\ndef height(at: int)"))  # fmt: skip
    s.work("", run("python -m timeit -s 'from tidewater.tides import next_window' 'next_window(1766361600, 9.4, 7.2)'",
                   (0, "1000 loops, best of 5: 392 usec per loop")), run("python -m pytest -v", s.tests()))  # fmt: skip
    s.say(
        "7 ms became 0.4 ms for the second berth and every one after it; the cache holds 8,192 heights, about 57 days, and no more."
    )


def _papers(s: Session) -> None:
    s.user(
        "The agents ask for a description of the HTTP interface. Write docs/api.md from the routes, with an example body for each kind."
    )
    kinds = ("vessels", "berths", "bookings", "cranes", "pilots", "tugs", "invoices", "work_orders", "manifests")
    s.work("The routes say the paths, the tests have good examples.",
           grep("router.", path="tidewater/", include="routes.py"), *(read(f"tests/test_{kind}.py", 1, 32) for kind in kinds[6:]))  # fmt: skip
    s.work("", *(read(f"tidewater/{kind}/routes.py") for kind in kinds[:3]))
    page = '# HTTP interface\n\nBodies and answers are JSON. Errors are `{"error": …}` with the status of the error\'s class.\n'
    for kind in kinds:
        steps = re.findall(r'router\.(\w+)\("([^"]+)"', s.files[f"tidewater/{kind}/routes.py"])
        fields = re.findall(r'body\.(\w+)\("(\w+)"\)', s.files[f"tidewater/{kind}/routes.py"])
        page += f"\n## {kind.replace('_', ' ').capitalize()}\n\n" + "".join(
            f"- `{verb.upper()} {path}`\n" for verb, path in steps
        )
        page += "\n| field | type |\n|---|---|\n" + "".join(f"| `{name}` | {type_} |\n" for type_, name in fields)
    s.work("", ("create_file", {"path": "docs/api.md", "content": page}))
    s.say(
        "`docs/api.md` lists every route and field of the nine kinds, read from the code. Amounts of invoices are whole cents there, as they are now."
    )


def _review(s: Session) -> None:
    s.user(
        "While you are at it: read vessels and tugs and tell me whether the Forbidden rules match the papers. Only findings, no edits."
    )
    s.work(
        "",
        *package("vessels", "model", "repository", "service", "routes"),
        *package("tugs", "model", "repository", "service", "routes"),
    )
    s.work(
        "",
        read("tests/test_vessels.py"),
        read("tests/test_tugs.py"),
        grep("raise Forbidden", include="*.py", path="tidewater/"),
    )
    s.say(_text("""
        Findings:

        - `VesselService.announce` refuses draughts above 14 m because the channel is dredged to 15 m; with 10 % clearance (rule 2) 13.6 m is the limit.
        - `VesselService.depart` checks `thrusters < 0`, which `Vessel` already refuses: dead code.
        - `TugService.let_go` refuses only tugs without notation **and** without fuel; I would expect either.
        - Nobody checks `watch_ends_at`, so a tug may be mustered with a crew that should be ashore.
    """))  # fmt: skip
    s.user("Fix the first and the third. And do the same review for cranes and manifests, wind limits are my worry.")
    s.work("", edit("tidewater/vessels/service.py", "if vessel.draught_m > 14:", "if vessel.draught_m > 13.6:"),
           edit("tidewater/tugs/service.py", 'if tug.escort_class == "none" and tug.fuel_l < 100:', 'if tug.escort_class == "none" or tug.fuel_l < 100:'),
           *package("cranes", "model", "repository", "service", "routes"), *package("manifests", "model", "repository", "service", "routes"))  # fmt: skip
    s.work("", read("tests/test_cranes.py"), read("tests/test_manifests.py"), grep("wind_limit_ms", include="*.py"),
           run("python -m pytest -v tests/test_vessels.py tests/test_tugs.py", s.tests("t")))  # fmt: skip
    s.say(_text("""
        Both fixed, tests pass. Cranes and manifests:

        - `wind_limit_ms` is stored and never compared with anything: no service knows the wind. The diary has it (`docs/diary.md`), the program does not.
        - `CraneService.park` refuses when `wind_limit_ms < 9`, but parking is exactly what one wants in wind.
        - `ManifestService.clear` refuses sealed cargo for everybody; officers need a way around it.
    """))  # fmt: skip
    s.user("wind: what would it need? sketch it, no code. and look at the diary for how often it blew above 20 m/s")
    s.work(
        "",
        read("docs/diary.md", 1, 180),
        run(
            r"grep -oE 'Wind (2[0-9]) m/s' docs/diary.md | sort | uniq -c",
            (0, "      5 Wind 20 m/s\n      4 Wind 21 m/s\n      3 Wind 22 m/s\n      6 Wind 23 m/s"),
        ),
    )
    s.say("Above 20 m/s in 13 entries of December. It needs a reading (value, second, place), a `Weather` protocol beside `Clock` that services get in "
          "their constructor, and one rule in `CraneService.work`: forbidden while the last gust exceeds `wind_limit_ms`, or when the reading is older than ten minutes.")  # fmt: skip


def _diff(s: Session) -> None:
    s.user(
        "Show me the whole diff before I commit, and read it yourself once more with fresh eyes: anything you would not sign?"
    )
    s.work("", run("git diff", (0, s.diff())), read("tidewater/migrations.py"), read("tests/test_planner.py"))
    s.say(_text("""
        Two things I would not sign:

        - `migrations.CENTS` converts rows on a database that was created **after** the change a second time, because a new file starts at `user_version` 0. It needs a guard.
        - `candidates` got its `orders` as an optional argument: whoever forgets it silently ignores rule 8.
    """))  # fmt: skip
    s.user("Right on both. Fix them.")
    s.work("A new database has no rows, so the conversion does nothing there; but rows may come before `migrate` is called. `Database` can tell a new file.",
           edit("tidewater/migrations.py", "    for number, statement in MIGRATIONS:\n",
                "    if version == 0 and db.is_new:\n        version = MIGRATIONS[-1][0]\n        db.script(f\"PRAGMA user_version = {version}\")\n"
                "    for number, statement in MIGRATIONS:\n"),
           edit("tidewater/db.py", '        self._connection = sqlite3.connect(path, isolation_level=None)\n',
                '        self._connection = sqlite3.connect(path, isolation_level=None)\n'
                '        self.is_new = not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()\n'),
           edit("tidewater/planner.py", "orders: Sequence[WorkOrder] = ())", "orders: Sequence[WorkOrder])"),
           grep("candidates(", include="*.py"))  # fmt: skip
    s.work("", run("python -m pytest -v", s.tests()), run("git diff --stat", (0, s.diff_stat())))
    s.say("Both fixed: a new file starts at the newest version, and `candidates` demands the work orders.")


def _december(s: Session) -> None:
    s.user(
        "The board of the harbour wants a page about December: stays, refusals and hours per berth. Read log, CSV and diary in full, not samples, and write docs/december.md."
    )
    s.work("The log has 1,320 lines; I'll take it in four parts.", read("var/planner.log", 1, 330))
    s.work("", read("var/planner.log", 331, 660))
    s.work("Two conflicts so far name only one booking each, as before the fix.", read("var/planner.log", 661, 990))
    s.work("", read("var/planner.log", 991, 1320))
    s.work("Now the stays and the diary.", read("data/stays-2025-12.csv"))
    s.work("", read("docs/diary.md"))
    log = s.files["var/planner.log"].split("\n")
    rows = [line.split(",") for line in s.files["data/stays-2025-12.csv"].strip().split("\n")[1:]]
    page = "# December 2025\n\n| berth | stays | hours | confirmed | refused: conflict | refused: no window |\n|---|---|---|---|---|---|\n"
    for berth in BERTHS:
        own = [row for row in rows if row[2] == berth]
        hours = sum(int(row[4]) - int(row[3]) for row in own) // 3600
        verdicts = [
            sum(verdict in line and line.endswith(f" on {berth}") for line in log)
            for verdict in ("confirmed", "refused: conflict", "refused: no window")
        ]
        page += f"| {berth} | {len(own)} | {hours:,} | " + " | ".join(map(str, verdicts)) + " |\n"
    s.work(
        "",
        ("create_file", {"path": "docs/december.md", "content": page}),
        ("get_diagnostics", {"path": "docs/december.md"}),
    )
    s.say("`docs/december.md` has one line per berth, counted from all 330 stays and all 1,320 lines of the log. Refusals for want of a tidal "
          "window may be too many: until today every window ended at midnight.")  # fmt: skip


def _wrap_up(s: Session) -> None:
    s.user("Good. Remember the open points for next time, write CHANGELOG.md, and run everything once more.")
    s.work("", ("memory", {"command": "view", "path": "/memories"}),
           ("memory", {"command": "create", "path": "/memories/tidewater-open.md", "file_text": _text("""
            # Open points, tidewater
            - rule 8: two hours after the planned end of a work order (orders have no start yet)
            - tugs: watch_ends_at is never checked
            - cranes: wind_limit_ms is never compared; sketch: Weather protocol beside Clock
            - manifests: officers cannot clear sealed cargo
           """)}),
           ("create_file", {"path": "CHANGELOG.md", "content": _text("""
            # Changelog

            ## Unreleased

            ### Fixed
            - Two bookings could share a berth when one began before midnight and the other after it.
            - A tidal window across midnight was cut in two.
            - Berths blocked by a work order were offered.
            - Lists of names were sorted by bytes.
            - Vessels above 13.6 m draught, and tugs without notation or fuel, are refused as the rules say.

            ### Changed
            - Invoices hold whole cents (whole krónur for ISK) and are rounded up once. Old rows are converted.
            - `Berth.length` is `Berth.length_m`.
           """)}))  # fmt: skip
    s.work("", run("python -m pytest -v", s.tests()), run("python -m mypy --strict tidewater", (0, "Success: no issues found in 53 source files")),
           run("git status --short", (0, "\n".join([" M tidewater/berths/model.py", " M tidewater/db.py", " M tidewater/invoices/model.py", " M tidewater/money.py",
                                                    " M tidewater/planner.py", " M tidewater/tides.py", "?? CHANGELOG.md", "?? tests/test_money.py", "?? tests/test_names.py",
                                                    "?? tests/test_tides.py", "?? tidewater/migrations.py"]))))  # fmt: skip
    s.say(
        "Done: all tests and mypy pass, `CHANGELOG.md` is written, and the four open points are in `/memories/tidewater-open.md`. Góða nótt, Ægir. 🚢"
    )
