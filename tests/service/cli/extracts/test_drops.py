"""forecast extracts: what is printed where, and the exit codes that scripts go by."""

from pathlib import Path
from typing import Any

from tests.service.conftest import Cli, Done
from tests.support.drops import homes, location, people, write_drop


def published(cli: Cli, drop: Path) -> str:
    done = cli("extracts", "publish", str(drop))
    assert done.code == 0, done.err
    return done.out.strip()


def other_drop(folder: Path) -> Path:
    """The same country with one figure changed."""
    return write_drop(folder, population=[people("36436", 2023, 784)])


def bad_drop(folder: Path) -> Path:
    """A drop that must be refused: one ZIP code twice."""
    return write_drop(folder, locations=[location("36436", "Dickinson", "AL")] * 2, housing=[homes("36436")])


def current(cli: Cli) -> list[Any]:
    return [release["id"] for release in cli("extracts", "list", "--json").json if release["current"]]


def test_publish_prints_the_release_alone_and_the_same_drop_again_is_no_failure(cli: Cli, drop: Path) -> None:
    done = cli("extracts", "publish", str(drop))
    assert done.code == 0
    assert [done.out] == [f"{release}\n" for release in current(cli)]
    assert done.err.startswith("Published: 9 ZIP codes, 7 cities")
    again = cli("extracts", "publish", str(drop), "--json")
    assert again.code == 0
    assert (again.json["result"], again.json["release"]) == ("already_current", done.out.strip())
    assert published(cli, drop) == done.out.strip()


def test_publish_as_json(cli: Cli, drop: Path) -> None:
    done = cli("extracts", "publish", str(drop), "--json")
    assert (done.code, done.err) == (0, "")
    assert set(done.json) == {"result", "release", "findings", "comparison", "behind", "retired", "data_folder"}
    assert (done.json["result"], [done.json["release"]], done.json["behind"]) == ("published", current(cli), [])


def test_a_refused_drop_is_exit_code_1_and_changes_nothing(cli: Cli, release: str, tmp_path: Path) -> None:
    bad = str(bad_drop(tmp_path / "bad"))
    text, as_json = cli("extracts", "publish", bad), cli("extracts", "publish", bad, "--json")
    assert (text.code, as_json.code) == (1, 1)
    assert text.out == ""
    assert text.err.startswith("Refused: 1 error")
    assert f"{release} stays current" in text.err
    assert as_json.err.startswith("forecast: refused: 1 error")
    assert (as_json.json["result"], as_json.json["release"]) == ("refused", release)
    assert {finding["severity"] for finding in as_json.json["findings"]} >= {"error"}
    assert current(cli) == [release]


def test_a_first_drop_that_is_refused_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    done = cli("extracts", "publish", str(bad_drop(tmp_path / "bad")), "--json")
    assert (done.code, done.json["release"]) == (1, None)
    assert cli("extracts", "list").out == f"No releases yet in {cli.data}: run `forecast extracts publish PATH`.\n"
    assert cli("extracts", "list", "--json").json == []


def test_publishing_nothing_is_exit_code_1_and_names_the_path(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for given in ("missing", "missing/*.parquet", "empty"):
        assert str(tmp_path / given) in failed(cli("extracts", "publish", str(tmp_path / given), "--json"))


def test_list_shows_releases_newest_first(cli: Cli, release: str, tmp_path: Path) -> None:
    first, second = release, published(cli, other_drop(tmp_path / "other"))
    listed = cli("extracts", "list", "--json").json
    assert {release["id"]: release["current"] for release in listed} == {first: False, second: True}
    members = {"id", "published_at", "current", "illustrative", "zip_codes", "cities", "findings", "origin"}
    assert {frozenset(release) for release in listed} == {frozenset(members | {"data_folder"})}
    table, _, _ = cli("extracts", "list").out.partition("\n\n")[2].partition("\n\n")
    lines = {line.split()[0]: line.split()[-1] for line in table.splitlines()[1:]}
    assert lines == {first: "previous", second: "current"}


def test_show_lists_the_contents_of_a_release(cli: Cli, release: str, tmp_path: Path) -> None:
    first, second = release, published(cli, other_drop(tmp_path / "other"))
    shown = cli("extracts", "show", "--json").json
    assert set(shown) == {"current", "switched_by", "manifest", "findings", "data_folder"}
    assert (shown["current"], shown["manifest"]["id"]) == (True, second)
    older = cli("extracts", "show", first, "--json").json
    assert (older["current"], older["manifest"]["id"]) == (False, first)
    text = cli("extracts", "show", first).out
    assert text.startswith(first)
    assert "zip_locations.parquet" in text


def test_rollback_goes_back_and_forth(cli: Cli, release: str, tmp_path: Path) -> None:
    first, second = release, published(cli, other_drop(tmp_path / "other"))
    assert cli("extracts", "rollback").out == f"{first}\n"
    assert current(cli) == [first]
    assert cli("extracts", "rollback", "--json").json == {"release": second, "behind": [], "data_folder": str(cli.data)}
    assert cli("extracts", "rollback", first).out == f"{first}\n"
    assert current(cli) == [first]


def test_a_switch_ends_with_how_to_go_back_and_the_list_shows_what_was_rolled_back(
    cli: Cli, release: str, tmp_path: Path
) -> None:
    done = cli("extracts", "publish", str(other_drop(tmp_path / "other")))
    undo = "The release is current, and every running instance serves it; `forecast extracts rollback` returns to"
    assert f"{undo} {release}." in done.err
    second = done.out.strip()
    assert f"{undo} {second}." in cli("extracts", "rollback").err
    (line,) = [line for line in cli("extracts", "list").out.splitlines() if "rolled back" in line]
    assert line.startswith(second)


def failed(done: Done) -> str:
    assert done.code == 1
    return done.error()


def test_without_a_release_before_a_rollback_says_why(cli: Cli, drop: Path) -> None:
    for command in ("rollback", "show"):
        assert "nothing has been published yet" in failed(cli("extracts", command, "--json"))
    release = published(cli, drop)
    assert failed(cli("extracts", "rollback", "--json")) == "there was no release before the current one"
    assert current(cli) == [release]


def test_an_unknown_release_is_named_and_changes_nothing(cli: Cli, release: str) -> None:
    for command in ("show", "rollback"):
        for unknown in ("20261005T090000Z-0123456789ab", "../staging", ".", "x" * 300):
            assert unknown in failed(cli("extracts", command, unknown, "--json"))
    assert current(cli) == [release]
