"""Checks the figures and places of a release for data that is well-formed and may be wrong (plausibility_rules.py)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.compare.pairing import pair_baseline, pair_releases, total_figures
from warehouse.files.remedies import is_disk_full
from warehouse.rules.all_rules import RuleLimits, make_finding, shown_limit
from warehouse.rules.failures import FailureFile, write_failures
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES, PlausibilityRule
from warehouse.schema.findings import COUNTRY, Finding
from warehouse.schema.tables import ALIASES, HOUSING, POPULATION

_MOST_SAMPLES = 5
_MOST_NAMES = 3
_FEW_ZIP_CODES = 10
# With fewer, shares and correlations are not checked.
_FEWEST_ZIP_CODES = 100


class Plausibility(msgspec.Struct, frozen=True):
    """The implausible data of a release. Lives as long as the connection with its tables."""

    findings: tuple[Finding, ...]
    faults: dict[str, str]  # by rule: the statement that selects all failing figures or ZIP codes


class _Total(msgspec.Struct, frozen=True):
    """A state and figure beyond a limit: one row of a rule on totals."""

    state: str | None  # None: the whole country
    figure: str
    measured: float
    count: int
    detail: str


class _Places(msgspec.Struct, frozen=True):
    """How many ZIP codes of a state fail: one row of a rule on places, summed up."""

    state: str
    total: int
    count: int = 0
    samples: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.count / self.total


def judge_plausibility(
    connection: duckdb.DuckDBPyConnection,
    old: Path | None,
    new: Path,
    limits: RuleLimits,
    first_open_year: int,
    baseline: Path | None = None,
) -> Plausibility:
    """Checks the normalised tables in folder `new`, compared with those in `old` and in `baseline`, if given.

    Figures of `first_open_year` and later may still be revised. With `old`, call `compare` first.
    """
    if old is None:
        pair_releases(connection, None, new, first_open_year)
    run = _RuleRun(connection, limits)
    is_small = _fewest_places(connection) < _FEWEST_ZIP_CODES
    current = [rule for rule in (*PLACE_RULES, *FIGURE_RULES) if rule.since == "current"]
    rules = [rule for rule in current if (rule.few or not is_small) and (old is not None or rule.applies == "drop")]
    if rules:
        total_figures(connection)
    for rule in rules:
        run.check(rule)
    if baseline is not None and not is_small:
        run.check_baseline(baseline)
    return run.result()


def write_implausible(
    connection: duckdb.DuckDBPyConnection, plausibility: Plausibility, folder: Path
) -> list[FailureFile]:
    """Writes all failing figures and ZIP codes into `folder`. Raises duckdb.Error."""
    return [write_failures(connection, folder, rule, select) for rule, select in plausibility.faults.items()]


def _fewest_places(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute(sql.statement("fewest_places")).fetchone()
    return int(row[0]) if row else 0


class _RuleRun:
    """Runs rules on one release and collects their findings. Lives for one `judge_plausibility`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limits: RuleLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._findings: list[Finding] = []
        self._faults: dict[str, str] = {}

    def result(self) -> Plausibility:
        return Plausibility(tuple(self._findings), self._faults)

    def check(self, rule: PlausibilityRule, since: str = "") -> None:
        limit = self._limits[rule.name]
        text = sql.statement(rule.query, limit=repr(float(limit)))
        if rule.checks == "places":
            places = self._places(text, rule.among)
            found = _places_finding(rule, places, limit) if places else None
            select = sql.statement("failing_places", faults=text, table=rule.table)
        else:
            parts = {
                "totals": sql.statement("sum_up_cells", faults=text) if rule.checks == "cells" else text,
                "limit": repr(float(limit)),
            }
            if not self._rows("beyond_limit", **parts):
                return
            lines = sql.statement(
                "sum_up_totals",
                country="'the country'" if rule.by_state else "NULL",
                statefactor=str(rule.state_factor),
                openfactor=str(rule.open_factor),
                **parts,
            )
            totals = [_Total(*row) for row in self._connection.execute(lines).fetchall()]
            found = _figures_finding(rule, totals, limit, since + self._where(totals)) if totals else None
            of_totals = sql.statement("failing_totals", lines=lines)
            select = sql.statement("failing_cells", faults=text) if rule.checks == "cells" else of_totals
        if found is not None:
            self._findings.append(found)
            self._faults[rule.name] = select

    def check_baseline(self, baseline: Path) -> None:
        try:
            pair_baseline(self._connection, baseline)
            for rule in FIGURE_RULES:
                if rule.since == "baseline":
                    self.check(rule, f" since {baseline.parent.name}")
        except duckdb.Error as error:  # an old release must not block a new one
            if isinstance(error, duckdb.OutOfMemoryException) or is_disk_full(error):
                raise
            message = f"{baseline.parent.name} cannot be read, so changes since then are unknown: {sql.reason(error)}"
            self._findings.append(make_finding("unreadable-baseline", message))

    def _places(self, faults: str, among: str) -> list[_Places]:
        """Returns every state, also those without a failing ZIP code. Empty if no ZIP code fails, as usual."""
        rows = self._rows("sum_up_places", faults=faults)
        found: dict[str, Any] = {state: {"count": count, "samples": tuple(some)} for state, count, some in rows}
        totals = self._rows("places_by_state", among=among) if found else []
        return [_Places(state, total, **found.get(state, {})) for state, total in totals]

    def _where(self, totals: Iterable[_Total]) -> str:
        """Returns the states in words; of most states, their number."""
        states = list(dict.fromkeys(one.state for one in totals if one.state is not None))
        if not states:
            return ""
        every = len(self._rows("places_by_state", among="new_places"))
        return f" in {len(states)} of {every} states" if len(states) > every / 2 else f" in {_listed(states)}"

    def _rows(self, summary: str, **parts: str) -> list[Any]:
        rows: list[Any] = self._connection.execute(sql.statement(summary, **parts)).fetchall()
        return rows


def _figures_finding(rule: PlausibilityRule, totals: list[_Total], limit: float, where: str) -> Finding:
    figures = list(dict.fromkeys(one.figure for one in totals))
    tables = {POPULATION.name if figure.startswith("population ") else HOUSING.name for figure in figures}
    return make_finding(
        rule.name,
        f"{rule.finding}{where}: {_listed(figures)} ({_limits(rule, limit)}); {rule.cause}",
        table=tables.pop() if len(tables) == 1 else None,
        column=figures[0] if len(figures) == 1 else None,
        figures=tuple(figures),
        count=max(one.count for one in totals),
        measured=max(one.measured / (rule.state_factor if one.state else 1) for one in totals),
        measured_in=_worst_of_states(totals) if rule.by_state else {},
        samples=tuple(one.detail for one in totals[:_MOST_SAMPLES]),
    )


def _limits(rule: PlausibilityRule, limit: float) -> str:
    """Returns the limits of a rule in words."""
    words = f"limit {shown_limit(rule.unit, limit)}"
    if rule.state_factor > 1:
        words += f", in a state {shown_limit(rule.unit, min(1, limit * rule.state_factor))}"
    return words + (f", {rule.open_factor} times as much while it may be revised" if rule.open_factor > 1 else "")


def _worst_of_states(totals: Iterable[_Total]) -> dict[str, float]:
    worst: dict[str, float] = {}
    for one in totals:
        where = one.state or COUNTRY
        worst[where] = max(worst.get(where, 0), one.measured)
    return worst


def _places_finding(rule: PlausibilityRule, places: list[_Places], limit: float) -> Finding | None:
    count, total = sum(one.count for one in places), sum(one.total for one in places)
    # a few ZIP codes of a state may always fail, unless the state is gone with them
    may_go = not {"zip", "state"}.isdisjoint(rule.of)
    many = [one for one in places if one.count >= _FEW_ZIP_CODES or (may_go and one.count == one.total)]
    in_states = [one for one in many if one.share > limit * rule.state_factor]
    measured_in = {one.state: one.share for one in in_states}
    national = count / total if total else 0
    if national > limit:
        measured_in[COUNTRY] = national
    if not measured_in:
        return None
    worst = max(in_states, key=lambda one: one.share, default=None)
    has_most = 2 * sum(one.count for one in in_states) > count  # otherwise, other states are worth naming too
    shown = sorted(in_states if has_most else [one for one in places if one.count], key=lambda one: -one.count)
    noun = "aliases" if rule.table == ALIASES.name else "ZIP codes"
    share = f"{worst.share:.0%} in {worst.state}" if worst and has_most else f"{national:.1%} of the country"
    return make_finding(
        rule.name,
        f"{count:,} of {total:,} {noun} {rule.finding}, in {_listed(f'{one.state} {one.count:,}' for one in shown)} "
        f"({share}; {_limits(rule, limit)}); {rule.cause}",
        table=rule.table,
        count=count,
        measured=max(national, worst.share / rule.state_factor if worst else 0),
        measured_in=measured_in,
        samples=tuple(sample for one in shown for sample in one.samples)[:_MOST_SAMPLES],
    )


def _listed(names: Iterable[str]) -> str:
    """Returns the first few names without repetition, and the number of others."""
    once = list(dict.fromkeys(names))
    more = len(once) - _MOST_NAMES
    return ", ".join(once[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
