"""forecast keys export and import."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import click
from rich.markup import escape

from service.cli.keys_store import ROWS, changing, minute, print_done, with_store
from service.cli.output import FAILED, json_option, print_json, reports_errors, stderr, stdout
from service.keys import backup
from service.keys.backup import Dump
from service.keys.restore import Restore, Restored
from service.keys.store import KeyStore, KeyStoreError
from warehouse.durable import replacing

# No line of ours comes near it; a file without line ends must not fill the memory.
_LONGEST_LINE = 1 << 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option("--partial", is_flag=True, help="Replace FILE also by a backup without the damaged records.")
@json_option
@reports_errors
def export(file: Path, partial: bool, as_json: bool) -> None:
    """Write a backup of the key store to FILE, or to standard output with -.

    In it: every key with its terms and the digest of its secret, and the whole audit trail. Not in it: secrets, which
    are kept nowhere, and the pepper, without which the digests are worth nothing: back it up elsewhere. Usage and what
    is left of quotas is not in it either. The file is readable by its owner alone.

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
        print_json({"file": str(file), "keys": dump.keys, "lines": dump.lines, "damaged": dump.damaged})
    else:
        stderr().print(f"{dump.keys:,} keys and {dump.lines:,} lines of the audit trail.")
    _tell_damaged(dump)
    if dump.damaged:
        sys.exit(FAILED)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, allow_dash=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@json_option
@reports_errors
def import_(file: Path, dry_run: bool, as_json: bool) -> None:
    """Bring the keys and the audit trail of a backup into the key store, from FILE or with - from standard input.

    A file that is damaged, cut off, edited or made with another pepper is refused as a whole. Of a key that is there
    already the newer record stays. A key that was ever revoked, by the trail that is there or by the one in the file,
    ends up revoked, however old the backup; what was revoked since then, in a store that lost its trail too, has to be
    revoked again. Keys that a trail names and that neither the file nor the store has are listed: they stay lost. An
    emptied store becomes ours again, and so does one that was begun anew. An import that was interrupted is simply run
    again.

    \b
    forecast keys import /backup/keys-2026-11-20.jsonl --dry-run
    forecast keys import /backup/keys-2026-11-20.jsonl
    gpg --decrypt keys.gpg | forecast keys import -
    """

    async def run(store: KeyStore) -> Restored:
        with _seekable(file) as stream:
            head = backup.check(_lines(stream), store.pepper)
            return await Restore(store, head, lambda: _lines(stream), dry_run=dry_run).run()

    done, warnings = changing(run)
    if as_json:
        print_done({**_members(done), "dry_run": dry_run}, warnings)
    else:
        _tell(done, dry_run=dry_run)


def _tell(done: Restored, *, dry_run: bool) -> None:
    console = stdout()
    console.print(f"{'Would import' if dry_run else 'Imported'} a backup of {minute(done.made_at)}:")
    for number, text in (
        (done.added, "keys added"),
        (done.updated, "keys brought up to date"),
        (done.kept, "keys kept as they are"),
        (done.revoked, "of them revoked, because an audit trail says so"),
        (done.lines, "lines of the audit trail added"),
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


async def _to_stdout(store: KeyStore) -> Dump:
    dump = Dump(store)
    stream = sys.stdout.buffer
    async for line in dump:
        stream.write(line)
    stream.flush()
    return dump


async def _to_file(store: KeyStore, file: Path, *, keeps: bool) -> Dump:
    dump = Dump(store)
    with replacing(file, mode=0o600) as stream:
        async for line in dump:
            stream.write(line)
        if dump.damaged and keeps:
            _tell_damaged(dump)
            raise KeyStoreError(
                f"{file} is kept as it was, it may have what is damaged now: import it, write to another file, or "
                "replace it with --partial"
            )
    return dump


def _tell_damaged(dump: Dump) -> None:
    for damaged in dump.damaged:
        click.echo(f"forecast: left out, damaged: {ascii(damaged.key_id)[1:-1]}: {damaged.reason}", err=True)


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
