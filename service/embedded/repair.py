"""Damaged files of the embedded key store: what is lost, and what can be kept of them.

The files are of Valkey 7 and later (https://valkey.io/topics/persistence): a manifest, a base (RDB), and increments,
which are the commands since. Behind damage, reading resumes with the next transaction: every change of a key is one.
"""

import mmap
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from service.embedded.disk import FILES
from service.embedded.runtime import server_program
from warehouse.files.atomic import replacing, sync_tree, write_atomically

MANIFEST = "appendonly.aof.manifest"
_NAME = re.compile(r"appendonly\.aof\.(\d+)\.(?:base|incr)\.(?:rdb|aof)")
_ENTRY = re.compile(rf"file (?P<name>{_NAME.pattern}) seq \d+ type (?P<type>[bhi])")
_COUNT, _LENGTH = re.compile(rb"\*(\d{1,6})\r\n"), re.compile(rb"\$(\d{1,9})\r\n")
_MULTI = b"*1\r\n$5\r\nMULTI\r\n"
_WRITTEN = re.compile(rb"\r\nk:\{([\w-]{1,64})\}\r\n")
_NAMED = re.compile(rb'(?:k:\{|"key_id":")([\w-]{1,64})["}]')
_LINE_AT = re.compile(rb"a:audit\r\n\$\d+\r\n(\d{13})-")


class Findings(msgspec.Struct):
    """What is damaged in the files of a key store, in sentences; none if nothing is."""

    damage: list[str] = []
    lost_keys: set[str] = set()  # ids of keys whose changes are lost, and were not made again later
    restore: bool = False  # the base is lost: only a backup brings back the older keys, and usage
    kept: dict[str, list[slice]] = {}  # readable files by name; of an increment, the commands to keep


def plain_damage(folder: Path) -> str | None:
    """What a server would not notice before it starts as if it was new, or only say in its log."""
    files = folder / FILES
    names = _listed(files)
    if not names and _guessed(files):
        return f"{MANIFEST} is missing, empty or damaged"
    return next((f"{name} is missing" for name in names if not (files / name).exists()), None)


def examine(folder: Path) -> Findings:
    """What is damaged in the key store's `folder`.

    Raises:
        EmbeddedError: if there is no program that can check the base; OSError.
    """
    files = folder / FILES
    found = Findings()
    names = _listed(files)
    if not names:
        found.damage.append(f"{MANIFEST} is missing, empty or damaged: it is made again from the files that are there")
        names = _guessed(files)
    for name in names:
        path, is_base = files / name, ".base." in name
        problem = "is missing" if not path.exists() else _damaged_base(path) if is_base else None
        if problem is None:
            found.kept[name] = [] if is_base else _read_increment(path, found)
        elif not is_base:
            found.damage.append(f"{name} is missing, with the changes in it")
        elif ".aof.1." in name:  # written before there are keys
            found.damage.append(f"{name} {problem}: it is the first, which held nothing")
        else:
            found.damage.append(f"{name} {problem}, with all that is older than the rest")
            found.restore = True
    return found


def repair(folder: Path, found: Findings, check: Callable[[], None]) -> Path:
    """Leaves what `found` keeps of the files; returns the folder that has a copy of them as they were. Nothing else may
    use them. `check` raises EmbeddedError if the result cannot be read. The manifest comes last, so a repair that was
    interrupted can be run again.

    Raises:
        EmbeddedError: what `check` raised; OSError. The files are as they were then.
    """
    files, copy = folder / FILES, folder / f"{FILES}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    shutil.copytree(files, copy)
    sync_tree(copy)
    try:
        for name, commands in found.kept.items():
            if ".incr." in name:
                with _mapped(files / name) as data, replacing(files / name) as stream:
                    stream.writelines(data[command] for command in commands)
        parts = [(name, *name.split(".")) for name in found.kept]
        lines = [f"file {name} seq {number} type {kind[0]}\n" for name, _, _, number, kind, _ in parts]
        write_atomically(files / MANIFEST, "".join(lines).encode())
        check()
    except BaseException:
        shutil.copytree(copy, files, dirs_exist_ok=True)
        raise
    return copy


def _listed(files: Path) -> list[str]:
    """The names of base and increments in the manifest, in order; none if it is missing or damaged."""
    try:
        lines = (files / MANIFEST).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    entries = [_ENTRY.fullmatch(line.strip()) for line in lines if line.strip()]
    return [entry["name"] for entry in entries if entry and entry["type"] != "h"] if all(entries) else []


def _guessed(files: Path) -> list[str]:
    """What the manifest must have named: the newest base, and the increments since, the newest in any case."""
    found = [(int(match[1]), path) for path in files.glob("*") if (match := _NAME.fullmatch(path.name))]
    bases = [path for _, path in sorted(found) if ".base." in path.name][-1:]
    increments = [path for _, path in sorted(found) if ".incr." in path.name]
    since = bases[0].stat().st_mtime if bases else 0.0
    older = [path for path in increments[:-1] if path.stat().st_mtime < since]
    return [path.name for path in (*bases, *increments) if path not in older]


def _damaged_base(path: Path) -> str | None:
    if not path.stat().st_size:
        return "is empty"
    # the server's program checks files if it is called by the name of that tool
    program = server_program()
    name = Path(program).name.replace("-server", f"-check-{path.suffix[1:]}")
    done = subprocess.run([name, str(path)], executable=program, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
    return "is damaged" if done.returncode else None


def _read_increment(path: Path, found: Findings) -> list[slice]:
    """Adds damage and lost keys to `found`; returns the commands to keep, a transaction as one."""
    kept: list[slice] = []
    at = 0
    with _mapped(path) as data:
        while at < len(data):
            end = _end_of_change(data, at)
            if end is None:
                end = data.find(_MULTI, at + 1) % (len(data) + 1)  # -1 is the end
                found.lost_keys |= {key.decode() for key in _NAMED.findall(data, at, end)}
                before = _LINE_AT.findall(data, 0, at)[-1:]
                times = [f"{datetime.fromtimestamp(int(time) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" for time in before]
                since = "".join(f", after {time}" for time in times)
                found.damage.append(f"{path.name}: {end - at:,} bytes from byte {at:,} on are lost{since}")
            else:
                found.lost_keys -= {key.decode() for key in _WRITTEN.findall(data, at, end)}  # records are whole
                # without the base, counts of usage would stand in the way of the backup's
                if not found.restore or any(data.find(name, at, end) >= 0 for name in (b"\r\nk:", b"\r\na:audit\r\n")):
                    kept.append(slice(at, end))
            at = end
    return kept


def _end_of_change(data: mmap.mmap | bytes, at: int) -> int | None:
    """Where the command or transaction that begins `at` ends; None if it is damaged, or a part is missing."""
    first, end = _command(data, at)
    name = first
    while first == b"MULTI" and name != b"EXEC":
        name, end = _command(data, end)
        if name in (b"", b"MULTI"):
            return None
    return None if first in (b"", b"EXEC") else end


def _command(data: mmap.mmap | bytes, at: int) -> tuple[bytes, int]:
    """Name and end of the command that begins `at`; the name is empty if it is damaged."""
    count, name = _COUNT.match(data, at), b""
    end = count.end() if count else at
    for number in range(int(count[1]) if count else 0):
        length = _LENGTH.match(data, end)
        begin, end = (length.end(), length.end() + int(length[1])) if length else (end, end)
        if length is None or data[end : end + 2] != b"\r\n":
            return b"", at
        name = name if number else data[begin:end].upper()
        end += 2
    return name, end


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    with path.open("rb") as stream:
        yield mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
