"""Damaged files of the embedded key store: what is lost, and what can be kept of them.

The files are of Valkey 7 and later (https://valkey.io/topics/persistence): a manifest, a base (RDB), and increments,
which are the commands since. Every command that can be read is kept, also behind the damage. A transaction of which a
part is missing is left out as a whole.
"""

import mmap
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from service.embedded.disk import FILES
from service.embedded.runtime import EmbeddedError, server_program
from warehouse.files.atomic import sync, sync_tree

MANIFEST = "appendonly.aof.manifest"
_REPAIRED, _DAMAGED = f"{FILES}.repaired", f"{FILES}.damaged-"
_ENTRY = re.compile(r"file (\S+) seq (\d+) type ([bhi])")
_NAME = re.compile(r"appendonly\.aof\.(\d+)\.(base|incr)\.(?:rdb|aof)")
_COUNT, _LENGTH = re.compile(rb"\*(\d{1,6})\r\n"), re.compile(rb"\$(\d{1,9})\r\n")
_COMMAND = re.compile(rb"\*\d{1,6}\r\n\$\d{1,9}\r\n[A-Za-z]+\r\n")
_WRITTEN = re.compile(rb"\r\nk:\{([\w-]{1,64})\}\r\n")
_NAMED = re.compile(rb'(?:k:\{|"key_id":")([\w-]{1,64})["}]')
_LINE_AT = re.compile(rb"a:audit\r\n\$\d+\r\n(\d{13})-")


class Findings(msgspec.Struct, frozen=True):
    """What is damaged in the files of a key store, in sentences; none if nothing is."""

    damage: tuple[str, ...]
    lost_keys: tuple[str, ...]  # ids of keys whose changes are lost, and were not made again later
    keys: int  # records of keys that can be read in the increments
    restore: bool  # the base is lost: only a backup brings back the older keys, and usage


class Part(NamedTuple):
    """A stretch of an increment: commands that belong together, or bytes to leave out (`lost`)."""

    start: int
    end: int
    lost: bool


def plain_damage(folder: Path) -> str | None:
    """What a server would not notice before it starts as if it was new, or only say in its log."""
    files = folder / FILES
    if _is_interrupted(folder):
        return "a repair was interrupted"
    names = {path.name for path in files.glob("*") if _NAME.fullmatch(path.name)}
    if names and not _entries(files):
        return f"{MANIFEST} is missing, empty or damaged"
    missing = [name for name, _, kind in _entries(files) if kind != "h" and not (files / name).exists()]
    return f"{missing[0]} is missing" if missing else None


def examine(folder: Path, into: Path | None = None) -> Findings:
    """What is damaged in the key store's `folder`. Writes what can be kept of it to the new folder `into`.

    Raises:
        EmbeddedError: if there is no program that can check the base; OSError.
    """
    interrupted = _is_interrupted(folder)
    files, program = folder / (_REPAIRED if interrupted else FILES), server_program()
    damage = ["a repair was interrupted: it must be finished"] if interrupted else []
    entries = _entries(files)
    if not entries:
        damage.append(f"{MANIFEST} is missing, empty or damaged: it is made again from the files that are there")
        entries = _guessed(files)
    lost_base, kept = "", []
    lost: set[str] = set()
    keys: set[str] = set()
    for name, number, kind in sorted(entries, key=lambda entry: (entry[2], entry[1])):
        path = files / name
        problem = "is missing" if not path.exists() else _damaged_base(program, path) if kind == "b" else None
        if problem is not None and kind == "b":
            # the first base is written before there are keys
            held = ": it is the first, which held nothing" if number == 1 else ", with all that is older than the rest"
            damage.append(f"{name} {problem}{held}")
            lost_base = name if number > 1 else lost_base
        elif problem is not None:
            damage.append(f"{name} is missing, with the changes in it")
        elif kind != "h":
            kept.append((name, number, kind))
            if kind == "i" and path.stat().st_size:
                damage += _read_increment(path, lost, keys, into, only_keys=bool(lost_base))
            elif into is not None:
                shutil.copy2(path, into / name)
    if into is not None:
        lines = (f"file {name} seq {number} type {kind}\n" for name, number, kind in kept)
        (into / MANIFEST).write_text("".join(lines))
    return Findings(tuple(damage), tuple(sorted(lost)), len(keys), bool(lost_base))


def repair(folder: Path, check: Callable[[], None]) -> Path:
    """Replaces the files by what can be kept of them; returns the folder that has them as they were. Nothing else may
    use them. An interrupted repair can be run again. `check` raises EmbeddedError if the result cannot be read.

    Raises:
        EmbeddedError: what `check` raised; OSError. Nothing is changed then.
    """
    files, repaired = folder / FILES, folder / _REPAIRED
    if not _is_interrupted(folder):
        shutil.rmtree(repaired, ignore_errors=True)
        repaired.mkdir(mode=0o700)
        try:
            examine(folder, repaired)
            sync_tree(repaired)
        except BaseException:
            shutil.rmtree(repaired, ignore_errors=True)
            raise
        files.rename(folder / f"{_DAMAGED}{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    repaired.rename(files)
    sync(folder)
    damaged = max(folder.glob(f"{_DAMAGED}*"))
    try:
        check()
    except EmbeddedError:
        shutil.rmtree(files)
        damaged.rename(files)
        raise
    return damaged


def _entries(files: Path) -> list[tuple[str, int, str]]:
    """The manifest's; none if it is missing or damaged."""
    try:
        lines = (files / MANIFEST).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = [_ENTRY.fullmatch(line.strip()) for line in lines if line.strip()]
    return (
        [(entry[1], int(entry[2]), entry[3]) for entry in found if entry and _NAME.fullmatch(entry[1])]
        if all(found)
        else []
    )


def _guessed(files: Path) -> list[tuple[str, int, str]]:
    """What the manifest must have named: the newest base, and the increments since, the newest in any case."""
    found = [(match, path) for path in files.glob("*") if (match := _NAME.fullmatch(path.name))]
    bases = sorted((int(match[1]), path) for match, path in found if match[2] == "base")[-1:]
    since = bases[0][1].stat().st_mtime if bases else 0.0
    increments = sorted((int(match[1]), path) for match, path in found if match[2] == "incr")
    increments = [one for one in increments if one == increments[-1] or one[1].stat().st_mtime >= since]
    return [(path.name, number, kind) for some, kind in ((bases, "b"), (increments, "i")) for number, path in some]


def _damaged_base(program: str, path: Path) -> str | None:
    if not path.stat().st_size:
        return "is empty"
    # the server's program checks files if it is called by the name of that tool
    name = Path(program).name.replace("-server", f"-check-{path.suffix[1:]}")
    done = subprocess.run([name, str(path)], executable=program, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
    return "is damaged" if done.returncode else None


def _is_interrupted(folder: Path) -> bool:
    return (folder / _REPAIRED).exists() and not (folder / FILES).exists()


def _read_increment(path: Path, lost: set[str], keys: set[str], into: Path | None, *, only_keys: bool) -> list[str]:
    """What is damaged in an increment; notes the ids of keys in `lost` and `keys`. Writes what is kept to `into`."""
    damage = []
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        parts = list(_parts(data))
        for part in parts:
            found = (_NAMED if part.lost else _WRITTEN).findall(data, part.start, part.end)
            named = {key.decode() for key in found}
            if part.lost:
                lost |= named
                before = _LINE_AT.findall(data, 0, part.start)[-1:]
                since = (
                    f", after {datetime.fromtimestamp(int(before[0]) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
                    if before
                    else ""
                )
                damage.append(
                    f"{path.name}: {part.end - part.start:,} bytes from byte {part.start:,} on are lost{since}"
                )
            else:
                lost -= named  # records are written whole
                keys |= named
        if into is not None:
            with (into / path.name).open("wb") as kept:
                for part in parts:
                    words = data[part.start : part.end]
                    # counts of usage would stand in the way of the backup's
                    if not part.lost and (not only_keys or b"\r\nk:" in words or b"\r\na:audit\r\n" in words):
                        kept.write(words)
    return damage


def _parts(data: mmap.mmap) -> Iterator[Part]:
    at = start = 0  # `start`: of a transaction, or of commands behind damage that may be the rest of one
    inside = doubtful = False
    while at < len(data):
        end, name = _command_at(data, at)
        if end is None:
            found = next(
                (one.start() for one in _COMMAND.finditer(data, at + 1) if _command_at(data, one.start())[0]), len(data)
            )
            yield Part(start if inside or doubtful else at, found, lost=True)
            at, start, inside, doubtful = found, found, False, True
            continue
        if name == b"MULTI":
            if start < at:
                yield Part(start, at, lost=inside)
            start, inside, doubtful = at, True, False
        elif name == b"EXEC":
            yield Part(start, end, lost=not inside)
            inside = doubtful = False
            start = end
        elif not inside and not doubtful:
            yield Part(at, end, lost=False)
            start = end
        at = end
    if start < at:
        yield Part(start, at, lost=inside)


def _command_at(data: mmap.mmap, at: int) -> tuple[int | None, bytes]:
    """Where the command that begins `at` ends, None if there is none or it is damaged; and its name."""
    count = _COUNT.match(data, at)
    end, name = (count.end() if count else at), b""
    for number in range(int(count[1]) if count else 0):
        length = _LENGTH.match(data, end)
        if length is None:
            return None, b""
        end = length.end() + int(length[1])
        if data[end : end + 2] != b"\r\n":
            return None, b""
        name = name if number else data[length.end() : end].upper()
        end += 2
    return (end, name) if name else (None, b"")
