"""Every rule there is can fire: a rule that cannot protects nobody, however well it is documented."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.drops import (
    ALIASES,
    HOUSING,
    LOCATIONS,
    homes,
    location,
    wide_people,
    write_drop,
    write_table,
)
from tests.support.publishing import dry_run, publishing
from tests.warehouse.bad_drops import BAD_DROPS, TOGETHER
from tests.warehouse.helpers import NO_LIMITS, drops_of, finding
from tests.warehouse.helpers import publish as publish_good
from tests.warehouse.implausible_drops import IMPLAUSIBLE_DROPS
from tests.warehouse.rules.test_rules import FAULTS
from tests.warehouse.spoiling import add, dated, file, good_drop, only
from warehouse.drops.reader import read_in_subprocess
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import RULES
from warehouse.rules.all_rules import make_finding as fired
from warehouse.schema.errors import DropError

AT = "36436"
FX = wide_people(AT, TOT_CENSUS_POP_2010=531, TOT_CENSUS_POP_2023=783, TOT_FX_POP_2023=790)

# What a good drop can hold besides, by the rule that tells of it.
NOTED: dict[str, Callable[[Path], object]] = {
    "ignored-file": file("_SUCCESS", b""),
    "foreign-file": file("README.txt", b"exported on Monday"),
    "ignored-column": only("zip_housing", [{**row, "exported_by": "ada"} for row in HOUSING]),
    "not-in-v1": only("zip_housing", [{**row, "tot_home_available_2024": "1"} for row in HOUSING]),
    "year-in-both": only("zip_population", [FX]),
    "empty-column": only("zip_housing", [homes(AT, tot_home_available_2020=None)]),
    "confusable-cities": add("zip_locations", location("36437", "DICKINSON", "AL")),
    "carried-table": lambda folder: (folder / "zip_housing.parquet").unlink(),
    "changed-figures": lambda _: None,
    "unreadable-date": dated("zip_population", "UPDATED_AT", "06/05/2026"),
    "missing-date": only("zip_housing", HOUSING),
}
# Several in one drop, because a check of a drop takes longer than all else here.
NOTED_TOGETHER = (
    ("ignored-file", "foreign-file", "ignored-column", "confusable-cities", "unreadable-date"),
    ("not-in-v1", "year-in-both"),
    ("carried-table", "changed-figures"),
)
# Found only where there is no release before, where a table is withdrawn, or after everything was validated.
ELSEWHERE = {
    "missing-table",
    "dropped-table",
    "not-warmed",
    "not-ready",
    "warmed-elsewhere",
    "warming-off",
    "overtaken",
    "already-held",
    "required-table",
    # in drops/test_hostile_files.py and drops/test_reader.py
    "changed-file",
    "reader-failed",
    # in publishing/test_barren_aliases.py, of a release that was built
    "barren-alias",
    # in compare/test_plausibility.py, over several months
    "slow-drift",
    "slow-loss",
    "unreadable-baseline",
    # in compare/test_plausibility.py, as warnings
    "respelled-name",
    # in compare/test_drift.py, with more projects than others need
    "records-changed",
    "records-gained",
    "coverage-gained",
    "lost-figures",
    # in publishing/test_history.py
    "unchanged-table",
}


def test_every_rule_is_fired_by_a_drop_in_these_tables() -> None:
    tables = (BAD_DROPS, IMPLAUSIBLE_DROPS, FAULTS)
    assert {one.rule for table in tables for one in table} | set(NOTED) | ELSEWHERE == set(RULES)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("served")
    catalog = Catalog(folder / "data")
    drop = good_drop(folder / "drop")
    dated("zip_housing", "UPDATED_AT", "2026-10-05")(drop)
    assert publish_good(catalog, drop).result == "published"
    return catalog


def checked(catalog: Catalog, drop: Path, *withdrawn: str) -> PublishOutcome:
    return dry_run(catalog, [str(drop)], PublishOptions(limits=NO_LIMITS, withdrawn=withdrawn))


@pytest.mark.parametrize("rules", drops_of(NOTED, NOTED_TOGETHER), ids="+".join)
def test_notes_are_reported_and_stop_nothing(served: Catalog, tmp_path: Path, rules: tuple[str, ...]) -> None:
    drop = good_drop(tmp_path / "drop")
    for rule in rules:
        NOTED[rule](drop)
    outcome = checked(served, drop)
    assert outcome.result in ("passed", "already_current")
    for rule in rules:
        assert finding(outcome, rule).severity == RULES[rule].severity != "error"


def test_a_foreign_file_may_have_any_name(served: Catalog, tmp_path: Path) -> None:
    """Also one that is no text: it is passed over like others, by a name that can be shown."""
    drop = good_drop(tmp_path / "drop")
    (drop / os.fsdecode(b"M\xe4rz.txt")).write_bytes(b"exported in March")
    outcome = dry_run(served, [str(drop)], PublishOptions(), reader=read_in_subprocess)
    assert outcome.result == "already_current"
    assert finding(outcome, "foreign-file").file == "M\\xe4rz.txt"


def test_a_path_that_is_no_text_is_refused_in_one_line(served: Catalog, tmp_path: Path) -> None:
    drop = good_drop(tmp_path / "drop").rename(tmp_path / os.fsdecode(b"M\xe4rz"))
    with pytest.raises(DropError, match="the path is not UTF-8"):
        dry_run(served, [str(drop)], PublishOptions(), reader=read_in_subprocess)


def test_a_table_that_neither_drop_nor_release_has_is_missing(catalog: Catalog, tmp_path: Path) -> None:
    outcome = checked(catalog, write_drop(tmp_path, population=None))
    assert outcome.result == "refused"
    found = finding(outcome, "missing-table")
    assert (found.severity, found.table) == ("error", "population")
    assert found.remedy == "add the file with zip_code, year, tot_population, ..."


def test_a_withdrawn_table_is_reported(served: Catalog, tmp_path: Path) -> None:
    write_table(tmp_path / "zip_locations.parquet", LOCATIONS)
    found = finding(checked(served, tmp_path, "aliases"), "dropped-table")
    assert (found.severity, found.table) == ("warning", "aliases")


def test_a_cache_that_could_not_be_warmed_is_a_warning_and_the_release_live(catalog: Catalog, drop: Path) -> None:
    reported = [fired("not-warmed", "the cache is away")]
    with publishing(catalog, [str(drop)], PublishOptions(limits=NO_LIMITS)) as publication:
        publication.note(reported)
        publication.adopt()
        publication.switch()
    outcome = publication.outcome
    assert outcome.result == "published"
    found = finding(outcome, "not-warmed")
    assert (found.severity, found.message) == ("warning", "the cache is away")
    assert found in catalog.findings(catalog.current().id).findings, "kept with the release"
    assert catalog.current().findings["warning"] == 1


def test_rules_have_what_their_reader_needs() -> None:
    """A sentence each; errors say what to do; whatever has a limit says how it can be let through, or raised."""
    for rule in RULES.values():
        assert rule.about.endswith("."), rule.name
        if rule.severity == "error" and rule.name not in REMEDY_IN_THE_FINDING:
            assert rule.remedy or rule.override, rule.name
        if rule.limit is not None:
            assert rule.override or "raise the limit" in (rule.remedy or ""), rule.name


# These word it by what is missing.
REMEDY_IN_THE_FINDING = {"missing-column", "missing-table"}


def test_aliases_stay_when_a_drop_does_not_bring_them(served: Catalog, tmp_path: Path) -> None:
    """What is carried over is named with the release that it comes from."""
    drop = write_drop(tmp_path, aliases=None)
    found = finding(checked(served, drop), "carried-table")
    assert served.current().id in found.message
    assert "aliases" in found.message
    assert len(ALIASES) == served.current().tables["aliases"].rows


def of_every_rule() -> Iterator[tuple[str, ...]]:
    """Bad drops that have a fault of each rule."""
    rule_of, tried = {bad.kind: bad.rule for bad in BAD_DROPS}, set[str]()
    for kinds in drops_of(rule_of, TOGETHER):
        rules = {rule_of[kind] for kind in kinds}
        if rules - tried:
            tried |= rules
            yield kinds


@pytest.mark.parametrize("kinds", [*of_every_rule()], ids="+".join)
def test_without_a_release_only_rules_that_need_none_find_something(
    catalog: Catalog, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """So the reference of rules shows which of them `check --no-release` leaves out."""
    drop = good_drop(tmp_path / "drop")
    faults = [bad for bad in BAD_DROPS if bad.kind in kinds]
    for bad in faults:
        bad.spoil(drop)
    limits = {bad.rule: bad.limit for bad in faults if bad.limit is not None}
    outcome = dry_run(catalog, [str(drop)], PublishOptions(limits=limits, compared=False))
    found = {one.rule for one in outcome.report.findings}
    assert {RULES[rule].applies for rule in found} <= {"drop"}
    assert {bad.rule for bad in faults} & found == {bad.rule for bad in faults if RULES[bad.rule].applies == "drop"}
