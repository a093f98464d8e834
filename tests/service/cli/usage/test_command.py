"""forecast usage, on an embedded key store with the usage of three keys."""

import asyncio
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import mkdtemp

import pyarrow.parquet as pq
import pytest

from service.embedded.owner import EmbeddedServers
from service.quota.batch import UsageBatch, UsageOutcome
from service.quota.names import day_of
from service.quota.usage_store import UsageStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from tests.service.conftest import Cli
from tests.support.key_store import any_key

OUTCOMES = ["answered", "answered_empty", "not_modified", "not_found", "rejected", "billable", "limited"]
COLUMNS = ["key_id", "partner", "label", "area", "date", *OUTCOMES, "plan"]
FIFTH, SIXTH = day_of(date(2026, 10, 5)), day_of(date(2026, 10, 6))


@dataclass(frozen=True)
class Site:
    """A key store with two keys of acme, one of other, and usage of a fourth key whose record is gone."""

    cli: Cli
    url: str
    acme: str
    batch: str
    other: str

    def usage(self, *arguments: str) -> list[dict[str, str]]:
        done = self.cli("usage", *arguments, "--format", "csv")
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[0].split(",") == COLUMNS
        return list(csv.DictReader(io.StringIO(done.out)))

    def command(self, *words: str) -> None:
        async def run() -> None:
            client = open_client(self.url, timeout=3)
            await client.execute_command(*words)  # type: ignore[no-untyped-call]
            await client.aclose(close_connection_pool=True)

        asyncio.run(run())


async def _store(url: str, batches: list[tuple[str, UsageBatch]]) -> None:
    redis = RedisStore("key store", url, open_client(url, timeout=3))
    await UsageStore(redis).add("w", batches, SIXTH)
    await redis.stop()


def _issue(cli: Cli, partner: str, label: str, *more: str) -> str:
    key_id: str = cli("keys", "issue", "--partner", partner, "--label", label, *more, "--json").json["key_id"]
    return key_id


_COUNTS: dict[UsageOutcome, int] = {
    "answered": 1000,
    "answered_empty": 20,
    "not_modified": 300,
    "not_found": 4,
    "rejected": 5,
    "limited": 6,
}


@contextmanager
def stored(cli: Cli) -> Iterator[Site]:
    servers = EmbeddedServers(cli.data, ("keys",))
    servers.ensure()
    cli("plans", "set", "basic", "--rate", "50/s")
    acme, other = _issue(cli, "acme", "web"), _issue(cli, "other", "")
    batch = _issue(cli, "acme", "[b]atch", "--plan", "basic")
    fifth = tuple((FIFTH, "forecast", outcome, count) for outcome, count in _COUNTS.items())
    batches = [
        (acme, UsageBatch(1, (*fifth, (SIXTH, "forecast", "answered", 7)))),
        (batch, UsageBatch(1, ((FIFTH, "projects", "answered", 11),))),
        (other, UsageBatch(1, ((FIFTH, "forecast", "rejected", 1),))),
        ("000000000000", UsageBatch(1, ((FIFTH, "forecast", "answered", 2),))),
    ]
    asyncio.run(_store(servers.url("keys"), batches))
    yield Site(cli, servers.url("keys"), acme, batch, other)
    servers.stop()


@pytest.fixture(scope="module")
def shared(short_folder: Path) -> Iterator[Site]:
    with stored(Cli(Path(mkdtemp(dir=short_folder)) / "data with usage")) as site:
        yield site


@pytest.fixture
def site(cli: Cli, shared: Site) -> Site:
    """For tests that change nothing."""
    cli.data = shared.cli.data
    return replace(shared, cli=cli)


@pytest.fixture
def own(cli: Cli) -> Iterator[Site]:
    with stored(cli) as site:
        yield site


def test_usage_is_listed_by_partner_key_and_day(site: Site) -> None:
    rows = site.usage("--month", "2026-10")
    found = [(row["partner"], row["key_id"], row["area"], row["date"], row["billable"]) for row in rows]
    assert found[0] == ("", "000000000000", "forecast", "2026-10-05", "2")
    assert found[-1] == ("other", site.other, "forecast", "2026-10-05", "0")
    ours = [("acme", site.acme, "forecast", "2026-10-05", "1320"), ("acme", site.acme, "forecast", "2026-10-06", "7")]
    theirs = [("acme", site.batch, "projects", "2026-10-05", "11")]
    assert found[1:-1] == (ours + theirs if site.acme < site.batch else theirs + ours)
    [first] = [row for row in rows if (row["key_id"], row["date"]) == (site.acme, "2026-10-05")]
    assert [first[name] for name in OUTCOMES] == ["1000", "20", "300", "4", "5", "1320", "6"]
    assert first["label"] == "web"
    assert {row["key_id"]: row["plan"] for row in rows if row["plan"]} == {site.batch: "basic"}


def test_usage_can_be_narrowed(site: Site) -> None:
    assert {row["date"] for row in site.usage("--day", "2026-10-06")} == {"2026-10-06"}
    assert len(site.usage("--from", "2026-10-05", "--to", "2026-10-06")) == 5
    assert {row["key_id"] for row in site.usage("--month", "2026-10", "--partner", "acme")} == {site.acme, site.batch}
    assert [row["key_id"] for row in site.usage("--month", "2026-10", "--key", site.other)] == [site.other]


@pytest.mark.parametrize("arguments", [("--format", "json"), ("--json",)], ids=["format", "json"])
def test_json_has_the_same_rows(site: Site, arguments: tuple[str, ...]) -> None:
    done = site.cli("usage", "--month", "2026-10", *arguments)
    assert [list(row) for row in done.json] == [COLUMNS] * 5
    assert [{name: str(value) for name, value in row.items()} for row in done.json] == site.usage("--month", "2026-10")


def test_parquet_has_the_same_rows(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "usage.parquet"
    done = site.cli("usage", "--month", "2026-10", "--format", "parquet", "--out", str(path))
    assert (done.code, done.out) == (0, "")
    rows = pq.read_table(path).to_pylist()
    assert {type(row["date"]) for row in rows} == {date}
    assert [{name: str(value) for name, value in row.items()} for row in rows] == site.usage("--month", "2026-10")
    assert [entry.name for entry in tmp_path.iterdir()] == ["usage.parquet"]


def test_a_table_has_totals(site: Site) -> None:
    done = site.cli("usage", "--month", "2026-10")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["acme", site.acme, "web", "1,007", "20", "300", "4", "5", "6", "1,327"] in lines
    assert ["acme", site.batch, "[b]atch", "basic", "11", "0", "0", "0", "0", "0", "11"] in lines
    assert lines[-1] == ["total", "1,020", "20", "300", "4", "6", "6", "1,340"]


def test_an_empty_month_is_no_failure(site: Site, tmp_path: Path) -> None:
    csv_out, json_out, table, parquet = (
        site.cli("usage", "--month", "2025-01", "--format", kind, *out)
        for kind, out in (
            ("csv", ()),
            ("json", ()),
            ("table", ()),
            ("parquet", ("--out", str(tmp_path / "out.parquet"))),
        )
    )
    assert {(done.code, done.err) for done in (csv_out, json_out, table, parquet)} == {(0, "")}
    assert csv_out.out == ",".join(COLUMNS) + "\n"
    assert json_out.json == []
    assert table.out.splitlines()[-1].split() == ["total", "0", "0", "0", "0", "0", "0", "0"]
    written = pq.read_table(tmp_path / "out.parquet")
    assert (written.num_rows, written.column_names) == (0, COLUMNS)
    assert site.usage("--month", "9999-12") == []


def test_a_damaged_record_is_named_and_the_rest_reported(own: Site) -> None:
    own.command("HSET", f"u:{{{own.acme}}}:2026-10", "05:forecast:answered", "many")
    done = own.cli("usage", "--month", "2026-10", "--format", "csv")
    assert done.code == 1
    assert f"u:{{{own.acme}}}:2026-10 05:forecast:answered: holds b'many'" in done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 5


def test_usage_of_a_key_with_a_damaged_record_is_not_left_out(own: Site) -> None:
    """Nobody knows whose it is: no bill is made before that is mended. A damaged key without usage is no matter."""
    own.command("SET", "k:{111111111111}", "{")
    assert len(own.usage("--month", "2026-10", "--partner", "acme")) > 0
    own.command("SET", f"k:{{{own.acme}}}", "{")
    for more in ((), ("--partner", "other")):
        done = own.cli("usage", "--month", "2026-10", "--format", "csv", *more)
        assert (done.code, done.out) == (1, "")
        assert f"the record of key {own.acme} is damaged" in done.err


def test_an_emptied_key_store_is_not_an_empty_month(own: Site, tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text("earlier")
    own.command("FLUSHALL")
    done = own.cli("usage", "--month", "2026-10", "--format", "csv", "--out", str(path))
    assert done.code == 1
    assert "restore its backup" in done.error()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("usage.csv", "earlier")]


def test_a_partner_is_no_formula(own: Site) -> None:
    """Spreadsheets would run it when a bill is opened; in JSON a text is a text."""
    name, label = '=HYPERLINK("http://example.com")', "-1+1"
    key_id = _issue(own.cli, name, label)
    asyncio.run(_store(own.url, [(key_id, UsageBatch(1, ((FIFTH, "forecast", "answered", 1),)))]))
    (row,) = own.usage("--month", "2026-10", "--key", key_id)
    assert (row["partner"], row["label"]) == (f"'{name}", f"'{label}")
    (row,) = own.cli("usage", "--month", "2026-10", "--key", key_id, "--json").json
    assert (row["partner"], row["label"]) == (name, label)


def test_a_partner_that_is_no_text_is_unknown(site: Site) -> None:
    """Arguments are bytes: what is no UTF-8 is reported in JSON as well."""
    done = site.cli("usage", "--partner", "\udcff", "--json")
    assert (done.code, done.error()) == (1, r"partner \udcff has no key; `forecast keys list` shows all keys")


def test_unknown_keys_and_partners_are_named(site: Site) -> None:
    for arguments, said in (
        (("--key", "0B1zQmX4ktLw"), "no key 0B1zQmX4ktLw; `forecast keys list` shows all keys"),
        (("--partner", "nobody"), "partner nobody has no key; `forecast keys list` shows all keys"),
        (("--key", site.other, "--partner", "acme"), f"key {site.other} is not acme's: leave out --partner or --key"),
    ):
        done = site.cli("usage", *arguments, "--json")
        assert (done.code, done.error()) == (1, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--month", "2026-13"), "'2026-13' is not a month; write 2026-10"),
        (("--day", "5"), "'5' is not a day; write 2026-10-05"),
        (("--month", "2026-10", "--day", "2026-10-05"), "--month, --day and --from/--to exclude each other"),
        (("--out", "usage.csv"), "--format csv --out usage.csv"),
        (("--format", "parquet"), "--out usage.parquet"),
        (("--format", "csv", "--out", "missing/usage.csv"), "folder missing does not exist"),
        (("--format", "csv", "--out", "housing.parquet"), "--out must end in .csv"),
        (("--format", "csv", "--json"), "--json and --format csv exclude each other"),
        (("--format", "xml"), "'xml' is not one of"),
    ],
)
def test_wrong_usage_is_reported_before_the_store_is_called(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli("usage", *arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not cli.data.exists()


def test_a_whole_key_is_not_repeated(cli: Cli) -> None:
    key, parts = any_key()
    whole, cut = cli("usage", "--key", key, "--json"), cli("usage", "--key", key[:-1], "--json")
    assert whole.error() == f"this is a whole key; give its id, {parts.key_id}"
    assert cut.error().startswith("this is not a key id")
    assert parts.secret not in whole.out + whole.err + cut.out + cut.err
    assert cli("usage", "--key", "acme").error() == "'acme' is not a key id; `forecast keys list` shows them"
    assert not cli.data.exists()
