"""forecast usage"""

import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import click
import msgspec

from service.cli.keys.opened import checked_id
from service.cli.output import FAILED, print_error, stderr, wants_json, with_json
from service.cli.stores import with_key_store
from service.cli.usage import periods
from service.cli.usage.formats import BillingRow, Format, writer
from service.cli.usage.periods import Days, days_of
from service.keys.errors import KeyStoreError
from service.keys.plan_history import read_plan_history
from service.keys.reader import every_key
from service.keys.record import ApiKey, DamagedKey
from service.keys.store import KeyStore
from service.quota.report import DamagedUsage, UsageReport, UsageRow
from service.redis.client import RedisStore
from warehouse.files.atomic import replacing

_IN_MEMORY = 16 << 20  # bytes of output; more goes to a temporary file
_OUT = "Write to FILE, or not at all on failure. FILE ends in the format (.csv, .json, .parquet); it is replaced."


class _Owner(msgspec.Struct, frozen=True):
    """The owner of a key, and its plan now. All are empty if the key's record is gone."""

    partner: str
    label: str
    plan: str | None


@click.command()
@click.option("--month", type=periods.month, help="A month: 2026-10. Default: the current one.")
@click.option("--day", type=periods.day, help="One day: 2026-10-05.")
@click.option("--from", "first", type=periods.day, help="First day. Without --to: until the end of its month.")
@click.option("--to", "last", type=periods.day, help="Last day, included. Without --from: from the start of its month.")
@click.option("--partner", help="Only keys of this partner.")
@click.option("--key", "key_id", metavar="KEY_ID", callback=checked_id, help="Only this key.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="`table` shows totals; the others have a row per key, area and UTC day. Default: table.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=_OUT)
@partial(with_json, help_text="Same as --format json.")
def usage(
    month: date | None,
    day: date | None,
    first: date | None,
    last: date | None,
    partner: str | None,
    key_id: str | None,
    kind: str | None,
    out: Path | None,
) -> None:
    """Show partners' usage, for billing.

    Billable answers are `answered` (200, or 206 for a part of a file), `answered_empty` (200 without figures) and
    `not_modified` (304). Failures on our side are not counted. Running workers add their counts every half second.
    All days are UTC. If the plan of a key changed on a day, the rows of that day name each plan: `basic → pro`.

    Exit codes: 0 shown, 1 failed, or records are damaged (the figures of the listed keys are incomplete), 2 wrong
    usage.

    \b
    Examples:
      forecast usage --month 2026-10
      forecast usage --month 2026-10 --format parquet --out usage-2026-10.parquet
      forecast usage --from 2026-10-01 --to 2026-10-15 --partner acme --format csv
    """
    chosen = _format(kind, out)
    damaged = _report(days_of(month, day, first, last), partner, key_id, chosen, out)
    for record in damaged:
        print_error(f"a damaged record was not counted: {record.detail}")
    if damaged:
        sys.exit(FAILED)


def _report(days: Days, partner: str | None, key_id: str | None, kind: Format, out: Path | None) -> list[DamagedUsage]:
    """Writes all valid records; returns the damaged ones."""
    with _sink(out) as sink, stderr().status("reading usage") as status:
        made = writer(kind, sink)

        async def work(redis: RedisStore, keys: KeyStore) -> list[DamagedUsage]:
            keys.check_identity((await keys.find("none")).identity)
            report = UsageReport(redis)
            owners = await _owners(keys, report, days, partner, key_id)
            plans = await read_plan_history(redis, days.first)
            damaged: list[DamagedUsage] = []
            rows = 0
            async for found in report.of_keys(owners, days.first, days.last):
                if isinstance(found, DamagedUsage):
                    damaged.append(found)
                    continue
                owner = owners[found.key_id]
                made.write(_billing_row(found, owner, plans.on(found.date, found.key_id, owner.plan)))
                rows += 1
                if rows % 1000 == 0:
                    status.update(f"reading usage: {rows:,} rows")
            return damaged

        damaged = with_key_store(work)
        made.close()
        return damaged


async def _owners(
    keys: KeyStore, report: UsageReport, days: Days, partner: str | None, key_id: str | None
) -> dict[str, _Owner]:
    """Returns the keys to report, ordered by partner and id. A key with usage but without a record has no partner."""
    if key_id is not None:
        found = (await keys.find(key_id)).key
        if found is None:
            raise KeyStoreError(f"no key {key_id}; `forecast keys list` shows all keys")
        if partner not in (None, found.partner):
            raise KeyStoreError(f"key {key_id} is not {partner}'s: leave out --partner or --key")
        return {key_id: _owner(found)}
    used = await report.keys(days.first, days.last)
    owners = {} if partner is not None else dict.fromkeys(used, _Owner("", "", None))
    is_known = partner is None
    async for key in every_key(keys):
        if isinstance(key, DamagedKey):
            if key.key_id in used:
                raise KeyStoreError(
                    f"the record of key {key.key_id} is damaged, so its usage belongs to an unknown partner; "
                    "`forecast keys import` restores it from a backup"
                )
            continue
        if partner in (None, key.partner):
            is_known = True
            if key.key_id in used:
                owners[key.key_id] = _owner(key)
    if not is_known:
        raise KeyStoreError(f"partner {partner} has no key; `forecast keys list` shows all keys")
    return dict(sorted(owners.items(), key=lambda item: (item[1].partner, item[0])))


def _owner(key: ApiKey) -> _Owner:
    return _Owner(key.partner, key.label, key.more.plan)


def _billing_row(row: UsageRow, owner: _Owner, plan: str) -> BillingRow:
    counts = msgspec.structs.asdict(row)
    return BillingRow(partner=owner.partner, label=owner.label, billable=row.billable, plan=plan, **counts)


def _format(kind: str | None, out: Path | None) -> Format:
    if wants_json() and kind not in (None, "json"):
        raise click.UsageError(f"--json and --format {kind} exclude each other")
    chosen = cast("Format", "json" if wants_json() else kind or "table")  # click allows no other value
    if out is not None and chosen == "table":
        raise click.UsageError("--out needs a format, for example: --format csv --out usage.csv")
    if out is None and chosen == "parquet":
        raise click.UsageError("Parquet cannot go to standard output; name a file, for example: --out usage.parquet")
    if out is not None and out.suffix.lower() != f".{chosen}":
        raise click.UsageError(f"--out must end in .{chosen}, for --format {chosen}")
    if out is not None and not out.parent.is_dir():
        raise click.UsageError(f"folder {out.parent} does not exist")
    return chosen


@contextmanager
def _sink(out: Path | None) -> Iterator[BinaryIO]:
    """Writes the output when the block ends, or not at all if it fails: half a bill would look complete."""
    if out is not None:
        with replacing(out) as stream:
            yield stream
        return
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as waiting:
        yield cast("BinaryIO", waiting)
        waiting.seek(0)
        sys.stdout.writelines(io.TextIOWrapper(waiting, encoding="utf-8", newline=""))
