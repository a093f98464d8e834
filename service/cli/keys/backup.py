"""forecast keys export and import."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import click
import msgspec

from service.cli.keys.opened import ROWS, changing, done, minute, with_store
from service.cli.output import FAILED, Output, print_error, stderr, stdout, wants_json, with_json
from service.keys import backup
from service.keys.backup import BackupHead, Dump, KeyItem, LineItem, PartnerItem, PlanItem, UsageItem
from service.keys.errors import ForeignStoreError, KeyStoreError
from service.keys.record import DamagedKey, StoreIdentity
from service.keys.restore import Restore, Restored
from service.keys.store import KeyStore
from service.quota.backup import UsageDump, UsageRecord
from service.quota.report import DamagedUsage
from service.quota.restore import RestoredUsage, restore_usage
from service.reports.text_table import plain
from warehouse.files.atomic import replacing

# In bytes; our longest lines are far shorter. Keeps a file without line ends from filling the memory.
_LONGEST_LINE = 1 << 20
_usage = msgspec.json.Decoder(UsageRecord)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option("--partial", is_flag=True, help="Replace an existing FILE even if damaged records are left out.")
@with_json
def export(file: Path, partial: bool) -> Output:
    """Back up keys, audit trail and usage to a file.

    FILE may be - for standard output. Only its owner can read the file. An earlier backup is replaced, and the output
    says so; any other existing file is refused.

    The backup holds every plan, the limits of partners, every key with its terms and the digest of its secret, the
    whole audit trail, and usage by key, area and UTC day. It has no secrets, which are stored nowhere, and not the
    pepper. Back up the pepper separately: the digests are worthless without it. Usage that workers have not stored yet,
    usually of the last half second, is missing.

    Damaged records are listed and left out. The command then exits with 1 and keeps an existing FILE, which may still
    have them, unless --partial is given.

    Exit codes: 0 everything was exported, 1 failed or records were left out, 2 wrong usage.

    \b
    Examples:
      forecast keys export /backup/keys-2026-11-20.jsonl
      forecast keys export - | gpg --encrypt --recipient ops@example.org > keys.gpg
    """
    to_stdout = str(file) == "-"
    if to_stdout and wants_json():
        raise click.UsageError("--json and - both need standard output; name a file")
    if not to_stdout and file.exists() and not file.is_file():  # a device or pipe would be replaced
        raise click.UsageError(f"{file} is not a regular file; - writes to standard output")
    if not to_stdout and file.exists() and not _may_replace(file):
        raise click.UsageError(f"{file} exists and is not a backup of keys: name another file")
    keeps = file.exists() and not partial
    replaces = not to_stdout and file.exists() and file.stat().st_size > 0
    dump = with_store(lambda store: _to_stdout(store) if to_stdout else _to_file(store, file, keeps=keeps))
    counted = dump.made.counted
    numbers = {
        "keys": counted[KeyItem],
        "plans": counted[PlanItem],
        "partners": counted[PartnerItem],
        "lines": counted[LineItem],
        "usage": counted[UsageItem],
    }
    members = {"file": str(file), **numbers, "replaced": replaces, "damaged": dump.damaged}
    counts = (
        "{keys:,} keys, {plans:,} plans, {partners:,} partners, {lines:,} lines of the audit trail, "
        "{usage:,} records of usage."
    ).format(**numbers)
    counts += " The earlier backup in this file was replaced." if replaces else ""
    _print_damaged(dump.damaged)
    return Output(members, lambda: stderr().print(counts, soft_wrap=True), code=FAILED if dump.damaged else 0)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, allow_dash=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Show what an import would do, and change nothing.")
@with_json
def import_(file: Path, dry_run: bool) -> Output:
    """Restore keys, audit trail and usage from a backup.

    FILE may be - for standard input. A file that is damaged, truncated, edited or made with another pepper is refused
    as a whole.

    Plans, partners and keys: the newer record of each wins. A key that was revoked according to either audit trail ends
    up revoked, however old the backup. If the store lost its trail as well, revoke the keys again that were revoked
    after the backup. Keys that only an audit trail has are lost; they are listed.

    Usage: counts that the store lacks are added, and no request is counted twice. Backups can be imported at any time
    and in any order. Backups of version 1 have no usage, those of version 2 no plans and partners.

    Workers accept the store again afterwards, even if it was emptied or recreated. If an import is interrupted, run it
    again.

    Exit codes: 0 imported, 1 refused, failed, or usage records in the store are damaged, 2 wrong usage.

    \b
    Examples:
      forecast keys import /backup/keys-2026-11-20.jsonl --dry-run
      forecast keys import /backup/keys-2026-11-20.jsonl
      gpg --decrypt keys.gpg | forecast keys import -
    """

    usage = RestoredUsage()

    async def run(store: KeyStore) -> Restored:
        with _seekable(file) as stream:
            head = backup.check(_lines(stream), store.pepper, _usage.decode)
            begun = await _begun(store, head)

            async def import_usage() -> None:
                nonlocal usage
                records = (_usage.decode(raw) for raw in backup.read_usage(_lines(stream)))
                usage = await restore_usage(store.redis, begun, records, dry_run=dry_run)

            restore = Restore(store, head, lambda: _lines(stream), dry_run=dry_run, before_ours=import_usage)
            return await restore.run()

    restored, warnings = changing(run)
    for damaged in usage.damaged:
        print_error(f"a damaged record was left unchanged: {damaged.detail}")
    members = {
        **msgspec.structs.asdict(restored),
        "usage": usage.added,
        "damaged_usage": usage.damaged,
        "dry_run": dry_run,
    }
    output = done(members, warnings, lambda: _print_summary(restored, usage, dry_run=dry_run))
    return output._replace(code=FAILED if usage.damaged else 0)


async def _begun(store: KeyStore, head: BackupHead) -> datetime | None:
    """Returns when this store was created, which identifies it; None if it was emptied. Raises StoreUnavailable.

    A store with a damaged identity may still have its usage. It is treated as the store of the backup: otherwise the
    backup's usage would be added to its own, and billed twice.
    """
    try:
        identity = await store.identity()
    except ForeignStoreError:
        return head.identity.since
    return None if identity is None else identity.since


def _print_summary(done: Restored, usage: RestoredUsage, *, dry_run: bool) -> None:
    console = stdout()
    console.print(f"{'Would import' if dry_run else 'Imported'} a backup of {minute(done.made_at)}:")
    for number, text in (
        (done.added, "keys added"),
        (done.updated, "keys updated"),
        (done.kept, "keys left unchanged"),
        (done.revoked, "of them revoked, according to an audit trail"),
        (done.plans, "plans added or updated"),
        (done.partners, "partners with limits added or updated"),
        (done.lines, "lines of the audit trail added"),
        (usage.added, "requests added to usage"),
        (done.damaged_lines, "damaged lines of an audit trail skipped"),
    ):
        console.print(f"  {number:>9,} {text}")
    if done.made_ours:
        accepts = "would accept" if dry_run else "accept"
        console.print(f"The key store was empty, or its identity was damaged; workers {accepts} it again.")
    if done.lost:
        console.print(
            f"Still lost: {len(done.lost):,} keys that only the audit trail has. Issue new keys to their partners:"
        )
        for key_id, partner in islice(sorted(done.lost.items(), key=lambda item: item[::-1]), ROWS):
            console.print(f"  {plain(key_id)} {plain(partner)}")
        if len(done.lost) > ROWS:
            console.print(f"  and {len(done.lost) - ROWS:,} more; --json lists all")


class _Backup:
    """One backup during writing: keys and usage, in one stream. Iterate over `made`."""

    def __init__(self, store: KeyStore, identity: StoreIdentity | None) -> None:
        self._usage = UsageDump(store.redis, None if identity is None else identity.since)
        self.made = Dump(store, self._usage)

    @property
    def damaged(self) -> list[DamagedKey | DamagedUsage]:
        return [*self.made.damaged, *self._usage.damaged]


async def _to_stdout(store: KeyStore) -> _Backup:
    backed_up = _Backup(store, await store.identity())
    async for line in backed_up.made:
        if sys.stdout.isatty():
            click.echo(line.decode(), nl=False)
        else:
            sys.stdout.buffer.write(line)
    sys.stdout.flush()
    return backed_up


async def _to_file(store: KeyStore, file: Path, *, keeps: bool) -> _Backup:
    backed_up = _Backup(store, await store.identity())
    with replacing(file, mode=0o600) as stream:
        async for line in backed_up.made:
            stream.write(line)
        if backed_up.damaged and keeps:
            _print_damaged(backed_up.damaged)
            raise KeyStoreError(
                f"{file} is kept, because it may still have the damaged records: import it, write to another file, or "
                "replace it with --partial"
            )
    return backed_up


def _may_replace(file: Path) -> bool:
    """Whether a file is empty or begins like a backup. Raises OSError if it cannot be read."""
    with file.open("rb") as stream:
        return stream.read(len(backup.BEGINNING)) in (b"", backup.BEGINNING)


def _print_damaged(records: list[DamagedKey | DamagedUsage]) -> None:
    for damaged in records:
        why = damaged.reason if isinstance(damaged, DamagedKey) else damaged.detail
        print_error(f"left out: {damaged.key_id}: {why}")


@contextmanager
def _seekable(file: Path) -> Iterator[BinaryIO]:
    """Opens the file so that it can be read more than once; a pipe is copied to an anonymous temporary file."""
    with ExitStack() as opened:
        stream = sys.stdin.buffer if str(file) == "-" else opened.enter_context(file.open("rb"))
        if not stream.seekable():
            copy = opened.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stream, copy)
            stream = copy
        yield cast("BinaryIO", stream)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    while line := stream.readline(_LONGEST_LINE):
        yield line
