"""Collects the files of a drop: finds those at its paths, ignores some, and checks that each is Parquet."""

import errno
import glob
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from config.text import printable
from warehouse.drops.file_faults import find_more
from warehouse.drops.file_kinds import (
    EMPTY,
    ENCRYPTED,
    HEAD_BYTES,
    UNKNOWN,
    FileKind,
    UnreadFile,
    accompanies,
    columns_of,
    has_companion_name,
    is_unfinished,
    kind_of,
    managed_at,
    managed_by,
    may_hold_table,
    says_parquet,
)
from warehouse.drops.hidden_files import (
    files_with_rows,
    has_ignored_name,
    is_folder,
    is_ignored,
    is_null_folder,
    is_uncommitted,
)
from warehouse.files.remedies import remedy_for
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import DropError
from warehouse.schema.findings import Finding

_MAGIC = b"PAR1"
_PERMISSIONS = "check its permissions"
_COMMIT = "wait until the writer commits them; if it failed, export the table again and remove them"
_MIN_FILE_BYTES = 12  # two markers and the length of the footer


class DropFile(msgspec.Struct, frozen=True):
    """One Parquet file of a drop. Lives while the drop is read."""

    path: Path  # absolute
    label: str  # the path inside the drop, which findings show
    partitions: dict[str, str]  # values of its ``key=value`` folders, by lower-case key


class Drop(msgspec.Struct, frozen=True):
    """The Parquet files of one drop, and findings on its other files. Lives while the drop is read."""

    files: tuple[DropFile, ...]
    findings: tuple[Finding, ...]
    unread: dict[str, UnreadFile] = {}  # by label


def collect(paths: Sequence[str]) -> Drop:
    """Returns the drop at all `paths` together (folders, files, globs).

    Raises:
        DropError: if a path does not exist, or holds only ignored files.
    """
    files: dict[str, DropFile] = {}
    found = _Found([], [], {})
    for given in paths:
        for path, label in _expand(given):
            if has_ignored_name(path, label):
                if not _is_managed(path.parent, found):
                    _ignore(path, label, found)
                continue
            if _is_managed(path if path.is_dir() else path.parent, found):
                continue
            named = _checked(path, _shown(Path(path.name)), found, explicit=True)
            for file in _walk(path, found) if path.is_dir() else named:
                files.setdefault(os.path.realpath(file.path), file)
    if not files and not any(finding.severity == "error" for finding in found.findings):
        skipped = [*(f"{label} is {file.kind.name}" for label, file in found.unread.items()), *found.ignored]
        but = f" (ignored: {', '.join(skipped[:5])})" if skipped else ""
        raise DropError(f"no Parquet file in {', '.join(paths)}{but}: name the folder or the files of a drop")
    if found.ignored:
        many = len(found.ignored)
        message = f"ignored {many} file(s) or folder(s) whose names start with _ or . or end in .crc"
        found.findings.append(make_finding("ignored-file", message, count=many, samples=tuple(found.ignored[:5])))
    return Drop(_with_unique_labels(files.values()), tuple(found.findings), found.unread)


class _Found(msgspec.Struct):
    """Everything found besides the Parquet files. Lives while a drop is collected."""

    findings: list[Finding]
    ignored: list[str]
    unread: dict[str, UnreadFile]


def check_paths(paths: Sequence[str]) -> None:
    """Raises DropError if a path does not exist. Reads no file."""
    for given in paths:
        _expand(given)


def is_inside(folder: Path, paths: Sequence[str]) -> bool:
    """Returns whether the drop at `paths` includes files in `folder`: below a folder or pattern, or beside a file."""
    folder = folder.expanduser().resolve()
    for given in paths:
        path = Path(given).expanduser()
        if path.is_file():
            if folder == path.parent.resolve():
                return True
        elif folder.is_relative_to((path if os.path.lexists(path) else _fixed(path)).resolve()):
            return True
    return False


def _fixed(pattern: Path) -> Path:
    """Returns the part of a pattern before its first wildcard."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _expand(given: str) -> list[tuple[Path, Path]]:
    """Returns the files and folders at `given`, each with the part of its path that decides whether it is ignored."""
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
    fixed = _fixed(path)
    return [
        (Path(match), Path(match).relative_to(fixed)) for match in matches if folders.isdisjoint(Path(match).parents)
    ]


def _walk(root: Path, found: _Found) -> Iterator[DropFile]:
    def unreadable(error: OSError) -> None:
        folder = Path(error.filename)
        label = _shown(Path(root.absolute().name) if folder == root else folder.relative_to(root))
        found.findings.append(_unreadable(label, error))

    inside = os.path.realpath(root)
    walk: Iterable[tuple[str, list[str], list[str]]] = os.walk(root, onerror=unreadable)
    for folder, folders, names in walk:
        if managed_by(Path(folder)):
            _is_managed(Path(folder), found)
            folders.clear()
            continue
        folders.sort()
        for name in [*folders, *sorted(names)]:
            path = Path(folder) / name
            label = _shown(path.relative_to(root))
            if is_ignored(name, folder=name in folders):
                _ignore(path, path.relative_to(root), found)
            elif not Path(os.path.realpath(path)).is_relative_to(inside) and not _is_broken_link(path):
                found.findings.append(_error("link-out-of-drop", label, "is a link that leads out of the drop"))
            elif name not in folders:
                yield from _checked(path, label, found, explicit=False)
        folders[:] = [name for name in folders if not is_ignored(name, folder=True)]


def _is_broken_link(path: Path) -> bool:
    """Returns whether `path` is a link without a target, inside or outside the drop."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ENOENT and path.is_symlink()
    return False


def _is_managed(path: Path, found: _Found) -> bool:
    """Returns whether `path` is the folder of a managed table, or of its files. If so, adds one finding per table."""
    found_at = managed_at(path.absolute())
    if found_at is None:
        return False
    name, kind = _shown(Path(found_at[0].name)), found_at[1]
    finding = _error("table-format", name, f"is {kind}: its Parquet files also hold rows that were deleted or replaced")
    if finding not in found.findings:
        found.findings.append(finding)
    return True


def _checked(path: Path, label: str, found: _Found, *, explicit: bool) -> Iterator[DropFile]:
    """Yields the file if it starts and ends like Parquet; otherwise adds a finding with its kind."""
    if _is_broken_link(path):
        what, remedy = "is a link whose target does not exist", "put the file itself into the drop, or remove the link"
        found.findings.append(_error("unreadable-file", label, what, remedy=remedy))
        return
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
            found.findings.append(
                _error("unreadable-file", label, "is not a regular file", remedy="drop Parquet files")
            )
            return
        size = status.st_size
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            stream.seek(max(0, size - 4))
            tail = stream.read(4)
    except OSError as error:
        found.findings.append(_unreadable(label, error))
        return
    is_parquet = head.startswith(_MAGIC)
    if is_parquet and not _is_text(str(path.absolute())):
        found.findings.append(_error("unreadable-file", label, "has a name that is not UTF-8", remedy="rename it"))
    elif is_unfinished(label) and (is_parquet or says_parquet(label)):
        found.findings.append(_error("unfinished-file", label, "has the name of a file that is still being written"))
    elif is_parquet and tail == _MAGIC and size >= _MIN_FILE_BYTES:
        yield DropFile(path.absolute(), label, _partitions(path, label))
    elif is_parquet:
        fault = find_more(path, label, size)
        found.findings.append(
            _error("unreadable-file", label, fault.what, remedy=fault.remedy)
            if fault
            else _error("truncated-file", label, f"is truncated: {size:,} bytes, without PAR1 at its end")
        )
    else:
        kind = kind_of(head, path.name)
        expected = says_parquet(label) or (explicit and not has_companion_name(path.name))
        must_be_parquet = expected and not accompanies(path, kind)
        _add_other_file(label, kind, head, found, must_be_parquet=must_be_parquet)


def _add_other_file(label: str, kind: FileKind, head: bytes, found: _Found, *, must_be_parquet: bool) -> None:
    """Adds the finding on a file that is not readable Parquet."""
    what = f"is {kind.name}" + (f" (it starts with {head[:4]!r})" if kind is UNKNOWN else "")
    if kind is ENCRYPTED:
        found.findings.append(_error("unreadable-file", label, what, remedy=kind.remedy))
    elif must_be_parquet:
        but = "" if kind in (EMPTY, UNKNOWN) else ", not Parquet"
        found.findings.append(_error("not-parquet", label, what + but, remedy=kind.remedy))
    else:
        found.findings.append(make_finding("foreign-file", f"{label} {what} and was ignored", file=label))
        if may_hold_table(kind, label):
            companion = has_companion_name(Path(label).name)
            found.unread[label] = UnreadFile(kind, columns_of(kind, head), companion)


def _ignore(path: Path, label: Path, found: _Found) -> None:
    """Ignores a file or a folder. Parquet files with rows in it are an error."""
    shown = _shown(label) + "/" * is_folder(path)
    found.ignored.append(shown)
    files = files_with_rows(path)
    if files:
        where = {"count": len(files), "samples": tuple(_shown(label / file.relative_to(path)) for file in files[:5])}
        found.findings.append(
            _error("unfinished-file", shown, "holds rows that their writer has not committed", remedy=_COMMIT, **where)
            if is_uncommitted(label)
            else _error("hidden-rows", shown, "has Parquet rows, but such a name is not read", **where)
        )


def _is_text(path: str) -> bool:
    """Returns whether `path` is valid UTF-8, as DuckDB and reports need it."""
    return all(not "\ud800" <= sign <= "\udfff" for sign in path)


def _shown(path: Path) -> str:
    """Returns `path` for display, with bytes that are not UTF-8 escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _partitions(path: Path, label: str) -> dict[str, str]:
    """Returns the values of the file's ``key=value`` folders, in the drop and directly above its path."""
    folders = Path(label).parts[:-1]
    above = takewhile(lambda name: "=" in name, reversed(path.absolute().parts[: -1 - len(folders)]))
    pairs = (name.split("=", 1) for name in [*reversed(list(above)), *folders] if "=" in name)
    # writers escape characters that are invalid in folder names
    return {key.lower(): "" if is_null_folder(value) else unquote(value) for key, value in pairs}


def _with_unique_labels(files: Collection[DropFile]) -> tuple[DropFile, ...]:
    """Makes labels unique, because findings name files by them: files with the same label get their full path."""
    times = Counter(file.label for file in files)
    return tuple(
        msgspec.structs.replace(file, label=str(file.path)) if times[file.label] > 1 else file for file in files
    )


def _error(rule: str, label: str, what: str, **members: Any) -> Finding:
    return make_finding(rule, f"{label} {what}", file=label, **members)


def _unreadable(label: str, error: OSError) -> Finding:
    remedy = remedy_for(error) or _PERMISSIONS
    return _error("unreadable-file", label, f"cannot be read: {error.strerror}", remedy=remedy)
