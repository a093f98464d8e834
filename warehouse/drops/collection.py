"""Collects a drop: which files the given paths hold, which are ignored, and whether each is Parquet."""

import glob
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import msgspec

from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import DropError
from warehouse.schema.findings import Finding
from warehouse.schema.printable import printable

_MAGIC = b"PAR1"
_PERMISSIONS = "check its permissions"
_MIN_FILE_BYTES = 12  # two markers and the length of the footer


class DropFile(msgspec.Struct, frozen=True):
    """One Parquet file of a drop. Lives while the drop is read."""

    path: Path  # absolute
    label: str  # the path as the sender of the drop knows it; findings name the file by it
    partitions: dict[str, str]  # values of its ``key=value`` folders, by lower-case key


class Drop(msgspec.Struct, frozen=True):
    """The Parquet files of one delivery, and findings on everything else there. Lives while the drop is read."""

    files: tuple[DropFile, ...]
    findings: tuple[Finding, ...]


def collect(paths: Sequence[str]) -> Drop:
    """The drop at `paths` (folders, files, globs), taken together.

    Raises:
        DropError: if a path does not exist, or holds only ignored files.
    """
    files: dict[str, DropFile] = {}
    findings: list[Finding] = []
    ignored: list[str] = []
    for given in paths:
        for path, label in _expand(given):
            if any(map(_is_ignored, label.parts)):
                ignored.append(str(label))
                continue
            for file in _walk(path, ignored, findings) if path.is_dir() else _named(path, findings):
                files.setdefault(os.path.realpath(file.path), file)
    if ignored:
        findings.append(_ignored(ignored))
    if not files and not any(finding.severity == "error" for finding in findings):
        but = f" (ignored: {', '.join(ignored[:5])})" if ignored else ""
        raise DropError(f"no Parquet file in {', '.join(paths)}{but}: give the folder or the files of a drop")
    return Drop(_with_unique_labels(files.values()), tuple(findings))


def check_paths(paths: Sequence[str]) -> None:
    """Raises DropError if a path does not exist. Reads no file."""
    for given in paths:
        _expand(given)


def _expand(given: str) -> list[tuple[Path, Path]]:
    """The files and folders that `given` names, each with the part of its path that decides whether it is ignored."""
    path = Path(given).expanduser()
    if not _is_text(given):
        raise DropError(f"{_shown(path)}: the path is not UTF-8; rename the folder")
    try:
        if os.path.lexists(path):
            return [(path, Path() if path.is_dir() else Path(path.name))]
    except (OSError, ValueError) as error:
        raise DropError(f"{printable(given)}: {error}") from None
    matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob knows no absolute patterns
    if not matches:
        raise DropError(f"{printable(given)}: no such file or folder")
    # a recursive glob matches a folder and its contents; the folder is enough
    folders = {Path(match) for match in matches if Path(match).is_dir()}
    fixed = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    return [
        (Path(match), Path(match).relative_to(fixed)) for match in matches if folders.isdisjoint(Path(match).parents)
    ]


def _walk(root: Path, ignored: list[str], findings: list[Finding]) -> Iterator[DropFile]:
    def unreadable(error: OSError) -> None:
        label = _shown(Path(error.filename).relative_to(root))
        findings.append(_error("unreadable-file", label, f"cannot be read: {error.strerror}", remedy=_PERMISSIONS))

    walk: Iterable[tuple[str, list[str], list[str]]] = os.walk(root, onerror=unreadable)
    for folder, folders, names in walk:
        folders.sort()
        for name in [*folders, *sorted(names)]:
            path = Path(folder) / name
            label = _shown(path.relative_to(root))
            if _is_ignored(name):
                ignored.append(label + "/" * (name in folders))
            elif not _is_inside(path, root):
                findings.append(_error("link-out-of-drop", label, "is a link that leads out of the drop"))
            elif name not in folders:
                yield from _checked(path, label, findings, explicit=False)
        folders[:] = [name for name in folders if not _is_ignored(name)]


def _is_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _named(path: Path, findings: list[Finding]) -> Iterator[DropFile]:
    yield from _checked(path, _shown(Path(path.name)), findings, explicit=True)


def _checked(path: Path, label: str, findings: list[Finding], *, explicit: bool) -> Iterator[DropFile]:
    """Yields the file if it starts and ends like Parquet; otherwise adds a finding that says what it is."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
            findings.append(_error("unreadable-file", label, "is not a regular file", remedy="drop Parquet files"))
            return
        size = status.st_size
        with path.open("rb") as stream:
            head = stream.read(4)
            stream.seek(max(0, size - 4))
            tail = stream.read(4)
    except OSError as error:
        findings.append(_error("unreadable-file", label, f"cannot be read: {error.strerror}", remedy=_PERMISSIONS))
        return
    if head == _MAGIC and not _is_text(str(path.absolute())):
        findings.append(_error("unreadable-file", label, "has a name that is not UTF-8", remedy="rename it"))
    elif head == _MAGIC and tail == _MAGIC and size >= _MIN_FILE_BYTES:
        yield DropFile(path.absolute(), label, _partitions(path, label))
    elif head == _MAGIC:
        findings.append(_error("truncated-file", label, f"is truncated: {size:,} bytes without a closing marker"))
    elif explicit or label.lower().endswith((".parquet", ".parq", ".pq")):
        what = "is empty" if size == 0 else f"is not Parquet (it starts with {head!r})"
        findings.append(_error("not-parquet", label, what))
    else:
        findings.append(make_finding("foreign-file", f"{label} is not Parquet and was ignored", file=label))


def _is_ignored(name: str) -> bool:
    return name.startswith(("_", ".")) or name.endswith(".crc")


def _is_text(path: str) -> bool:
    """Whether `path` is valid UTF-8, as DuckDB and reports need it."""
    return all(not "\ud800" <= sign <= "\udfff" for sign in path)


def _shown(path: Path) -> str:
    """`path` for display; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _partitions(path: Path, label: str) -> dict[str, str]:
    """The values of the file's ``key=value`` folders, in the drop and directly above the given path."""
    folders = Path(label).parts[:-1]
    above = takewhile(lambda name: "=" in name, reversed(path.absolute().parts[: -1 - len(folders)]))
    pairs = (name.split("=", 1) for name in [*reversed(list(above)), *folders] if "=" in name)
    # writers escape characters that a folder name cannot hold, and use this name for NULL
    return {key.lower(): "" if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for key, value in pairs}


def _with_unique_labels(files: Collection[DropFile]) -> tuple[DropFile, ...]:
    """Makes labels unique, because findings name files by them: files with the same label get their full path."""
    times = Counter(file.label for file in files)
    return tuple(
        msgspec.structs.replace(file, label=str(file.path)) if times[file.label] > 1 else file for file in files
    )


def _ignored(ignored: list[str]) -> Finding:
    message = f"ignored {len(ignored)} file(s) whose names start with _ or . or end in .crc"
    return make_finding("ignored-file", message, count=len(ignored), samples=tuple(ignored[:5]))


def _error(rule: str, label: str, what: str, **members: str) -> Finding:
    return make_finding(rule, f"{label} {what}", file=label, **members)
