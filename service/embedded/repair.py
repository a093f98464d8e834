"""Finds and repairs damaged files of the embedded key store.

The files are those of Valkey 7 and later (https://valkey.io/topics/persistence): a manifest, a base (RDB), and
increments, which hold the commands since. After damage, reading resumes at the next transaction: every change of a key
is one.
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
_MULTI, _EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"
_WRITTEN = re.compile(rb"\r\nk:\{([\w-]{1,64})\}\r\n")
_NAMED = re.compile(rb'(?:k:\{|"key_id":")([\w-]{1,64})["}]')
_LINE_AT = re.compile(rb"a:audit\r\n\$\d+\r\n(\d{13})-")


class Findings(msgspec.Struct):
    """The damage to the files of a key store. `damage` is empty if all are whole."""

    damage: list[str] = []
    lost_keys: set[str] = set()  # ids of keys with lost changes that no later change replaces
    restore: bool = False  # the base is lost: only a backup restores the older keys and usage
    kept: dict[str, list[slice]] = {}  # readable files by name; for an increment, the commands to keep


def find_missing_file(folder: Path) -> str | None:
    """Returns the problem of a missing file. A server would start empty without it, or only log the problem."""
    files = folder / FILES
    names = _read_manifest(files)
    if not names and _guess_names(files):
        return f"{MANIFEST} is missing, empty or damaged"
    return next((f"{name} is missing" for name in names if not (files / name).exists()), None)


def find_incomplete_end(folder: Path) -> str | None:
    """Returns a warning if the last change in the files is incomplete. A server drops it without an error."""
    name = next((name for name in reversed(_read_manifest(folder / FILES)) if ".incr." in name), "")
    if not name:
        return None
    with _map_file(folder / FILES / name) as data:
        last = data.rfind(_EXEC)
        at = 0 if last < 0 else last + len(_EXEC)
        while at < len(data):
            end = _end_of_change(data, at)
            if end is None and data[at : at + 1] != b"*":
                return None  # other damage, with which a server does not start
            if end is None:
                return (
                    f"the last change in {folder / FILES / name} is incomplete, and is dropped "
                    f"({len(data) - at:,} bytes{_time_before(data, at)}). A crash leaves this, and loses no confirmed "
                    "change. If the file was cut, confirmed changes are lost: run `forecast keys import` with the "
                    "newest backup"
                )
            at = end
    return None


def examine(folder: Path) -> Findings:
    """Examines the files in the key store's `folder`.

    Raises:
        EmbeddedError: if there is no program that can check the base.
        OSError: if a file cannot be read.
    """
    files = folder / FILES
    found = Findings()
    names = _read_manifest(files)
    if not names:
        found.damage.append(f"{MANIFEST} is missing, empty or damaged: a repair rebuilds it from the other files")
        names = _guess_names(files)
    for name in names:
        path, is_base = files / name, ".base." in name
        problem = "is missing" if not path.exists() else _check_base(path) if is_base else None
        if problem is None:
            found.kept[name] = [] if is_base else _read_increment(path, found)
        elif not is_base:
            found.damage.append(f"{name} is missing, with the changes in it")
        elif ".aof.1." in name:  # written before there are keys
            found.damage.append(f"{name} {problem}: no data is lost, because the first base is empty")
        else:
            found.damage.append(f"{name} {problem}: all older keys and usage are lost")
            found.restore = True
    return found


def repair(folder: Path, found: Findings, check: Callable[[], None]) -> Path:
    """Reduces the files to the parts that `found` keeps; returns the folder of a copy of the old files. No other
    process may use them. `check` raises EmbeddedError if the result cannot be read. The manifest is written last, so an
    interrupted repair can be run again.

    Raises:
        EmbeddedError: from `check`. The old files are restored.
        OSError: if a file cannot be written. The old files are restored.
    """
    files, copy = folder / FILES, folder / f"{FILES}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    shutil.copytree(files, copy)
    sync_tree(copy)
    try:
        for name, commands in found.kept.items():
            if ".incr." in name:
                with _map_file(files / name) as data, replacing(files / name) as stream:
                    stream.writelines(data[command] for command in commands)
        parts = [(name, *name.split(".")) for name in found.kept]
        lines = [f"file {name} seq {number} type {kind[0]}\n" for name, _, _, number, kind, _ in parts]
        write_atomically(files / MANIFEST, "".join(lines).encode())
        check()
    except BaseException:
        shutil.copytree(copy, files, dirs_exist_ok=True)
        raise
    return copy


def _read_manifest(files: Path) -> list[str]:
    """Returns the names of base and increments in the manifest, in order; none if it is missing or damaged."""
    try:
        lines = (files / MANIFEST).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    entries = [_ENTRY.fullmatch(line.strip()) for line in lines if line.strip()]
    return [entry["name"] for entry in entries if entry and entry["type"] != "h"] if all(entries) else []


def _guess_names(files: Path) -> list[str]:
    """Returns the names for a new manifest: the newest base, the increments since, and always the newest increment."""
    found = [(int(match[1]), path) for path in files.glob("*") if (match := _NAME.fullmatch(path.name))]
    bases = [path for _, path in sorted(found) if ".base." in path.name][-1:]
    increments = [path for _, path in sorted(found) if ".incr." in path.name]
    since = bases[0].stat().st_mtime if bases else 0.0
    older = [path for path in increments[:-1] if path.stat().st_mtime < since]
    return [path.name for path in (*bases, *increments) if path not in older]


def _check_base(path: Path) -> str | None:
    if not path.stat().st_size:
        return "is empty"
    # the server's program checks files if it runs under the name of the checking tool
    program = server_program()
    name = Path(program).name.replace("-server", f"-check-{path.suffix[1:]}")
    done = subprocess.run([name, str(path)], executable=program, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
    return "is damaged" if done.returncode else None


def _read_increment(path: Path, found: Findings) -> list[slice]:
    """Adds damage and lost keys to `found`; returns the commands to keep, each transaction as one slice."""
    kept: list[slice] = []
    at = 0
    with _map_file(path) as data:
        while at < len(data):
            end = _end_of_change(data, at)
            if end is None:
                end = data.find(_MULTI, at + 1) % (len(data) + 1)  # -1 is the end
                found.lost_keys |= {key.decode() for key in _NAMED.findall(data, at, end)}
                lost = f"{end - at:,} bytes from offset {at:,} are lost{_time_before(data, at)}"
                found.damage.append(f"{path.name}: {lost}")
            else:
                found.lost_keys -= {key.decode() for key in _WRITTEN.findall(data, at, end)}  # records are whole
                # without the base, newer usage would hide the backup's
                if not found.restore or any(data.find(name, at, end) >= 0 for name in (b"\r\nk:", b"\r\na:audit\r\n")):
                    kept.append(slice(at, end))
            at = end
    return kept


def _time_before(data: mmap.mmap | bytes, at: int) -> str:
    """Returns ", after TIME" with the time of the last line of the audit trail before offset `at`; "" if none is."""
    times = _LINE_AT.findall(data, 0, at)[-1:]
    return "".join(f", after {datetime.fromtimestamp(int(time) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" for time in times)


def _end_of_change(data: mmap.mmap | bytes, at: int) -> int | None:
    """Returns the end of the command or transaction at offset `at`; None if it is damaged or incomplete."""
    first, end = _parse_command(data, at)
    name = first
    while first == b"MULTI" and name != b"EXEC":
        name, end = _parse_command(data, end)
        if name in (b"", b"MULTI"):
            return None
    return None if first in (b"", b"EXEC") else end


def _parse_command(data: mmap.mmap | bytes, at: int) -> tuple[bytes, int]:
    """Returns the name and end of the command at offset `at`; the name is empty if it is damaged."""
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
def _map_file(path: Path) -> Iterator[mmap.mmap | bytes]:
    with path.open("rb") as stream:
        yield mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
