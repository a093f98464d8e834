"""forecast extracts diff, list and retire: releases side by side, and in their order."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.service.conftest import Cli
from tests.support.drops import LOCATIONS, POPULATION, location, people, write_drop
from tests.warehouse.helpers import contents

UNKNOWN = "20261005T090000Z-0123456789ab"


@pytest.fixture(scope="module")
def both(made: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A data folder to copy with two releases; the second, which is current, has one more place and another figure."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(made[0], folder / "data")
    places = [*LOCATIONS, location("36437", "Jackson", "AL")]
    other = write_drop(folder / "other", locations=places, population=[people("36436", 2023, 784), *POPULATION[1:]])
    done = Cli(folder / "data")("extracts", "publish", str(other))
    assert done.code == 0, done.err
    return folder / "data", made[1], done.out.strip()


@pytest.fixture
def two(cli: Cli, both: tuple[Path, str, str]) -> tuple[str, str]:
    data, old, new = both
    shutil.copytree(data, cli.data)
    return old, new


def test_diff_is_summary_first(cli: Cli, two: tuple[str, str]) -> None:
    old, new = two
    lines = [line.strip() for line in cli("extracts", "diff", old, new).out.splitlines()]
    assert lines[0] == f"{old} → {new}"
    assert lines[1] == "ZIP codes  9 → 10: 1 new, 0 gone, 0 moved or renamed"
    assert lines[2] == "new in   AL 1"
    assert lines[3] == "figures    changed in 1 ZIP code"
    rows = [line.split() for line in lines]
    assert ["population", "2023", "33,403", "33,404", "+<0.01%", "1"] in rows
    assert ["36436", "Dickinson,", "AL", "population", "2023", "783", "784", "+1"] in rows
    assert "6 figures did not change in any ZIP code." in lines


def test_diff_is_against_the_current_release_by_default(cli: Cli, two: tuple[str, str]) -> None:
    old, new = two
    done = cli("extracts", "diff", old, "--json").json
    assert (done["old"], done["new"], done["written"]) == (old, new, None)
    assert done["comparison"]["places"]["gained"] == {"AL": 1}
    back = cli("extracts", "diff", new, old, "--json").json
    assert back["comparison"]["places"]["lost"] == {"AL": 1}


def test_diff_of_a_release_with_itself_says_that_nothing_changed(cli: Cli, two: tuple[str, str]) -> None:
    text = cli("extracts", "diff", two[0], two[0]).out
    assert "0 new, 0 gone, 0 moved or renamed" in text
    assert "national total" not in text
    assert "7 figures did not change in any ZIP code." in text


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_diff_writes_every_change_on_request(cli: Cli, two: tuple[str, str], tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"changes.{ending}"
    done = cli("extracts", "diff", *two, "--to", str(out))
    assert done.code == 0
    assert "1 changed figures written to" in done.out
    if ending == "csv":
        assert out.read_text() == "zip_code,figure,old,new\n36436,population 2023,783,784\n"
    else:
        rows = pq.read_table(out).to_pylist()
        assert rows == [{"zip_code": "36436", "figure": "population 2023", "old": 783, "new": 784}]


@pytest.mark.parametrize(
    ("to", "said"),
    [("drop/zip_housing.parquet", "exists: name a new file"), ("new.xlsx", "--to must end in .csv or .parquet")],
)
def test_diff_replaces_no_file_and_writes_no_other_form(
    cli: Cli, two: tuple[str, str], drop: Path, to: str, said: str
) -> None:
    before = contents(drop)
    done = cli("extracts", "diff", *two, "--to", str(drop.parent / to))
    assert done.code == 2
    assert said in done.err
    assert contents(drop) == before


def test_list_says_first_which_release_is_current(cli: Cli, two: tuple[str, str]) -> None:
    lines = cli("extracts", "list").out.splitlines()
    assert lines[0] == f"2 releases; current is {two[1]}"
    assert max(map(len, lines)) <= 100


def test_retire_removes_what_is_named_and_nothing_in_use(cli: Cli, two: tuple[str, str], drop: Path) -> None:
    places = [*LOCATIONS, location("36438", "Grove Hill", "AL")]
    newest = write_drop(drop, locations=places, population=[people("36436", 2023, 1)])
    third = cli("extracts", "publish", str(newest)).out.strip()
    for used in (two[1], third):
        done = cli("extracts", "retire", used)
        assert done.code == 1
        assert f"{used} is in use" in done.error()
    assert cli("extracts", "retire", two[0], "--json").json["retired"] == [two[0]]
    assert {one["id"] for one in cli("extracts", "list", "--json").json} == {two[1], third}
    assert cli("extracts", "retire", "--keep", "1").out == "Nothing to retire.\n"


@pytest.mark.parametrize("arguments", [(), ("--keep", "0"), ("--keep", "2", UNKNOWN)], ids=["neither", "none", "both"])
def test_retire_takes_names_or_a_number(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("extracts", "retire", *arguments).code == 2
