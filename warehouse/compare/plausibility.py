"""Checks the figures and places of a release for data that is well-formed and may be wrong (plausibility.sql)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import msgspec

from warehouse import sql
from warehouse.compare.pairing import pair_figures, pair_places, place_figures, view_figures
from warehouse.rules.all_rules import RuleLimits, make_finding, shown_limit
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES, SLOW_DRIFT, STATES_LOST, PlausibilityRule
from warehouse.schema.findings import Finding
from warehouse.schema.tables import ALIASES, HOUSING, LOCATIONS, POPULATION

_MOST_SAMPLES = 5
_MOST_NAMES = 3
# In a single state, this many times the share may be at fault that may be in the country.
_STATE_FACTOR = 10
_FEW_ZIP_CODES = 10
# Of fewer, no shares and likenesses are taken.
_FEWEST_ZIP_CODES = 100


class _Line(msgspec.Struct, frozen=True):
    """A state and figure beyond a limit: one row of a rule on figures."""

    state: str | None  # None: the whole country
    figure: str
    measured: float
    count: int
    detail: str


class _StateCount(msgspec.Struct, frozen=True):
    """How many ZIP codes of a state are at fault: one row of a rule on places."""

    state: str
    count: int
    total: int
    samples: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.count / self.total


def plausibility_findings(
    connection: duckdb.DuckDBPyConnection,
    old: Path | None,
    new: Path,
    limits: RuleLimits,
    first_open_year: int,
    baseline: Path | None = None,
) -> list[Finding]:
    """Findings on the normalised tables in folder `new`, compared with those in `old` and in `baseline`, if given.

    Figures of `first_open_year` and later may still be revised. With `old`, `pair_figures` was called before.
    """
    pair_places(connection, old, new)
    findings = list(_ask_places(connection, STATES_LOST, limits)) if old is not None else []
    if _fewest_places(connection) < _FEWEST_ZIP_CODES:
        return findings
    if old is None:
        pair_figures(connection, None, new)
    place_figures(connection, first_open_year)
    for rule in FIGURE_RULES:
        if old is not None or not rule.compares:
            findings.extend(_ask_figures(connection, rule, limits))
    for rule in PLACE_RULES:
        if rule is not STATES_LOST and (old is not None or not rule.compares):
            findings.extend(_ask_places(connection, rule, limits))
    if baseline is not None:
        findings.extend(_slow_drift(connection, baseline, limits))
    return findings


def _slow_drift(connection: duckdb.DuckDBPyConnection, baseline: Path, limits: RuleLimits) -> list[Finding]:
    try:
        view_figures(connection, "baseline_figures", baseline)
        return list(_ask_figures(connection, SLOW_DRIFT, limits))
    except duckdb.IOException as error:  # a release of long ago must not keep a new one from going live
        message = f"{baseline.parent.name} cannot be read, so drift since then is not known: {sql.reason(error)}"
        return [make_finding("unreadable-baseline", message)]


def _fewest_places(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute(sql.statement("fewest_places")).fetchone()
    return int(row[0]) if row else 0


def _ask_figures(
    connection: duckdb.DuckDBPyConnection, rule: PlausibilityRule, limits: RuleLimits
) -> Iterator[Finding]:
    limit = limits[rule.name]
    text = sql.statement(rule.query, limit=repr(float(limit)))
    lines = [_Line(*row) for row in connection.execute(text).fetchall()]
    if not lines:
        return
    states = [line.state for line in lines if line.state is not None]
    figures = list(dict.fromkeys(line.figure for line in lines))
    tables = {POPULATION.name if figure.startswith("population ") else HOUSING.name for figure in figures}
    where = f" in {_listed(states)}" if states else ""
    yield make_finding(
        rule.name,
        f"{rule.told}{where}: {_listed(figures)} (limit {shown_limit(rule.unit, limit)}); {rule.cause}",
        table=tables.pop() if len(tables) == 1 else None,
        column=figures[0] if len(figures) == 1 else None,
        count=max(line.count for line in lines),
        measured=max(line.measured for line in lines),
        samples=tuple(line.detail for line in lines[:_MOST_SAMPLES]),
    )


def _ask_places(connection: duckdb.DuckDBPyConnection, rule: PlausibilityRule, limits: RuleLimits) -> Iterator[Finding]:
    limit = limits[rule.name]
    rows = connection.execute(sql.statement(rule.query)).fetchall()
    counts = [_StateCount(state, count, total, tuple(samples or ())) for state, count, total, samples in rows]
    count, total = sum(one.count for one in counts), sum(one.total for one in counts)
    # few ZIP codes may always be at fault, unless they are all that a state had
    many = [one for one in counts if one.count >= _FEW_ZIP_CODES or (rule is STATES_LOST and one.count == one.total)]
    worst = max(many, key=lambda one: one.share, default=None)
    measured = max(count / total if total else 0, worst.share / _STATE_FACTOR if worst else 0)
    if measured <= limit:
        return
    in_states = [one for one in many if one.share > limit * _STATE_FACTOR]
    shown = sorted(in_states or [one for one in counts if one.count], key=lambda one: -one.count)
    share = f"{worst.share:.0%} in {worst.state}" if worst and in_states else f"{count / total:.1%} of the country"
    yield make_finding(
        rule.name,
        f"{count:,} of {total:,} ZIP codes {rule.told}, in {_listed(_counted(shown))} ({share}; "
        f"limit {shown_limit('share', limit)}, in a state {shown_limit('share', min(1, limit * _STATE_FACTOR))}); "
        f"{rule.cause}",
        table=ALIASES.name if "alias" in rule.name else LOCATIONS.name,
        count=count,
        measured=measured,
        samples=tuple(sample for one in shown for sample in one.samples)[:_MOST_SAMPLES],
    )


def _counted(counts: Iterable[_StateCount]) -> list[str]:
    return [f"{one.state} {one.count:,}" for one in counts]


def _listed(names: Iterable[str]) -> str:
    """The first few names, each once, and how many more there are."""
    once = list(dict.fromkeys(names))
    more = len(once) - _MOST_NAMES
    return ", ".join(once[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
