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
from rich.markup import escape

from service.cli.keys.opened import ROWS, changing, minute, print_done, with_store
from service.cli.output import FAILED, json_option, print_json, reports_errors, stderr, stdout
from service.keys import backup
from service.keys.backup import Dump, Head
from service.keys.record import Control
from service.keys.record import Damaged as DamagedKey
from service.keys.restore import Restore, Restored
from service.keys.store import ForeignStoreError, KeyStore, KeyStoreError
from service.quota.backup import UsageDump, UsageRecord
from service.quota.report import Damaged as DamagedUsage
from service.quota.restore import RestoredUsage, restore_usage
from warehouse.files.atomic import replacing

# No line of ours comes near it; a file without line ends must not fill the memory.
_LONGEST_LINE = 1 << 20
_usage = msgspec.json.Decoder(UsageRecord)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option("--partial", is_flag=True, help="Replace FILE also by a backup without the damaged records.")
@json_option
@reports_errors
def export(file: Path, partial: bool, as_json: bool) -> None:
    """Write a backup of the key store to FILE, or to standard output with -.

    In it: every key with its terms and the digest of its secret, the whole audit trail, and usage by key, area and UTC
    day, which bills are made from and quotas are judged by. Not in it: secrets, which are kept nowhere; the pepper,
    without which the digests are worth nothing: back it up elsewhere; and what workers have counted in the last half
    second, or could not store yet. The file is readable by its owner alone.

    A damaged record is told and left out, and the exit code is 1 then; a FILE that is there may have it still, and is
    replaced only with --partial.

    \b
    forecast keys export /backup/keys-2026-11-20.jsonl
    forecast keys export - | gpg --encrypt --recipient ops@example.org > keys.gpg
    """
    to_stdout = str(file) == "-"
    if to_stdout and as_json:
        raise click.UsageError("--json and - both need standard output: give a file")
    if not to_stdout and file.exists() and not file.is_file():  # it would be replaced
        raise click.UsageError(f"{file} is no regular file; - writes to standard output")
    keeps = file.exists() and not partial
    dump = with_store(lambda store: _to_stdout(store) if to_stdout else _to_file(store, file, keeps=keeps))
    if as_json:
        numbers = {"keys": dump.made.keys, "lines": dump.made.lines, "usage": dump.made.usage}
        print_json({"file": str(file), **numbers, "damaged": dump.damaged})
    else:
        made = dump.made
        stderr().print(f"{made.keys:,} keys, {made.lines:,} lines of the audit trail, {made.usage:,} records of usage.")
    _tell_damaged(dump.damaged)
    if dump.damaged:
        sys.exit(FAILED)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, allow_dash=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@json_option
@reports_errors
def import_(file: Path, dry_run: bool, as_json: bool) -> None:
    """Bring the keys, audit trail and usage of a backup into the key store, from FILE or with - from standard input.

    A file that is damaged, cut off, edited or made with another pepper is refused as a whole. Of a key that is there
    already the newer record stays. A key that was ever revoked, by the trail that is there or by the one in the file,
    ends up revoked, however old the backup; what was revoked since then, in a store that lost its trail too, has to be
    revoked again. Keys that a trail names and that neither the file nor the store has are listed: they stay lost. An
    emptied store becomes ours again, and so does one that was begun anew. An import that was interrupted is simply run
    again.

    Usage adds up: what the backup has, and what an emptied store has counted since. What the store has already is never
    added twice, so any backup can be imported at any time, in any order. Backups of earlier versions have no usage.

    \b
    forecast keys import /backup/keys-2026-11-20.jsonl --dry-run
    forecast keys import /backup/keys-2026-11-20.jsonl
    gpg --decrypt keys.gpg | forecast keys import -
    """

    usage = RestoredUsage()

    async def run(store: KeyStore) -> Restored:
        with _seekable(file) as stream:
            head = backup.check(_lines(stream), store.pepper, _usage.decode)
            begun = await _begun(store, head)

            async def bring_usage() -> None:
                nonlocal usage
                records = (_usage.decode(raw) for raw in backup.read_usage(_lines(stream)))
                usage = await restore_usage(store.redis, begun, records, dry_run=dry_run)

            restore = Restore(store, head, lambda: _lines(stream), dry_run=dry_run, before_ours=bring_usage)
            return await restore.run()

    done, warnings = changing(run)
    if as_json:
        members = {**_members(done), "usage": usage.added, "damaged_usage": usage.damaged, "dry_run": dry_run}
        print_done(members, warnings)
    else:
        _tell(done, usage, dry_run=dry_run)
    for damaged in usage.damaged:
        click.echo(f"forecast: damaged, and nothing was added to it: {damaged.detail}", err=True)
    if usage.damaged:
        sys.exit(FAILED)


async def _begun(store: KeyStore, head: Head) -> datetime | None:
    """The moment that tells this store from others, None if it was emptied. Raises StoreUnavailable.

    One whose sentinel is damaged may have its usage still: it is taken for the store of the backup, as it becomes by
    the import. For another, all that the backup has would be added to what is there, and billed twice.
    """
    try:
        control = await store.control()
    except ForeignStoreError:
        return head.control.since
    return None if control is None else control.since


def _tell(done: Restored, usage: RestoredUsage, *, dry_run: bool) -> None:
    console = stdout()
    console.print(f"{'Would import' if dry_run else 'Imported'} a backup of {minute(done.made_at)}:")
    for number, text in (
        (done.added, "keys added"),
        (done.updated, "keys brought up to date"),
        (done.kept, "keys kept as they are"),
        (done.revoked, "of them revoked, because an audit trail says so"),
        (done.lines, "lines of the audit trail added"),
        (usage.added, "requests added to usage"),
        (done.damaged_lines, "damaged lines of an audit trail passed over"),
    ):
        console.print(f"  {number:>9,} {text}")
    if done.made_ours:
        ours = "would be" if dry_run else "is"
        console.print(f"The key store was empty, or its sentinel was damaged; it {ours} ours again.")
    if done.lost:
        console.print(
            f"Still lost: {len(done.lost):,} keys that the audit trail names. Issue new ones to their partners:"
        )
        for key_id, partner in islice(sorted(done.lost.items(), key=lambda item: item[::-1]), ROWS):
            console.print(f"  {escape(key_id)} {escape(partner)}")
        if len(done.lost) > ROWS:
            console.print(f"  and {len(done.lost) - ROWS:,} more: --json has them all")


def _members(done: Restored) -> dict[str, object]:
    return {name: getattr(done, name) for name in done.__struct_fields__}


class _Backup:
    """Keys and usage, written into one file."""

    def __init__(self, store: KeyStore, control: Control | None) -> None:
        self._usage = UsageDump(store.redis, None if control is None else control.since)
        self.made = Dump(store, self._usage)

    @property
    def damaged(self) -> list[DamagedKey | DamagedUsage]:
        return [*self.made.damaged, *self._usage.damaged]


async def _to_stdout(store: KeyStore) -> _Backup:
    backed_up = _Backup(store, await store.control())
    stream = sys.stdout.buffer
    async for line in backed_up.made:
        stream.write(line)
    stream.flush()
    return backed_up


async def _to_file(store: KeyStore, file: Path, *, keeps: bool) -> _Backup:
    backed_up = _Backup(store, await store.control())
    with replacing(file, mode=0o600) as stream:
        async for line in backed_up.made:
            stream.write(line)
        if backed_up.damaged and keeps:
            _tell_damaged(backed_up.damaged)
            raise KeyStoreError(
                f"{file} is kept as it was, it may have what is damaged now: import it, write to another file, or "
                "replace it with --partial"
            )
    return backed_up


def _tell_damaged(records: list[DamagedKey | DamagedUsage]) -> None:
    for damaged in records:
        why = damaged.reason if isinstance(damaged, DamagedKey) else damaged.detail
        click.echo(f"forecast: left out, damaged: {ascii(damaged.key_id)[1:-1]}: {why}", err=True)


@contextmanager
def _seekable(file: Path) -> Iterator[BinaryIO]:
    """The file, which is read more than once; a pipe is copied to one that has no name and is only ours."""
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
