"""A drop: which files the given paths bring, which are passed over, and whether each is Parquet at all."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from warehouse.errors import DropError
from warehouse.findings import Finding

_MAGIC = b"PAR1"
_SMALLEST = 12  # two markers and the length of the footer


class DropFile(msgspec.Struct, frozen=True):
    """`label` is the path as the person who dropped it knows it; `partitions` are its ``key=value`` folders."""

    path: Path
    label: str
    partitions: dict[str, str]


class Drop(msgspec.Struct, frozen=True):
    """The Parquet files of one delivery, and findings on what else was there."""

    files: tuple[DropFile, ...]
    findings: tuple[Finding, ...]


def collect(paths: Sequence[str]) -> Drop:
    """The drop that `paths` (folders, files, globs) bring together.

    Raises:
        DropError: if a path does not exist, or nothing but ignored files is there.
    """
    files: dict[Path, DropFile] = {}
    findings: list[Finding] = []
    ignored: list[str] = []
    for given in paths:
        for path in _expand(given):
            if path.is_dir():
                found = _walk(path, ignored, findings)
            else:
                found = _named(path, findings)
            for file in found:
                files.setdefault(file.path.resolve(), file)
    if ignored:
        findings.append(
            Finding(
                severity="info",
                rule="ignored-file",
                message=f"passed over {len(ignored)} file(s) that begin with _ or . or end in .crc",
                count=len(ignored),
                samples=tuple(ignored[:5]),
            )
        )
    if not files and not any(finding.severity == "error" for finding in findings):
        raise DropError(f"no Parquet file in {', '.join(paths)}: give the folder or the files of a drop")
    return Drop(tuple(files.values()), tuple(findings))


def _expand(given: str) -> list[Path]:
    path = Path(given).expanduser()
    try:
        if path.exists():
            return [path]
    except OSError as error:
        raise DropError(f"{given}: {error.strerror}") from None
    matches = sorted(glob.glob(str(path), recursive=True))
    if not matches:
        raise DropError(f"{given}: no such file or folder")
    return [Path(match) for match in matches]


def _walk(root: Path, ignored: list[str], findings: list[Finding]) -> Iterator[DropFile]:
    real_root = root.resolve()
    walk: Iterable[tuple[str, list[str], list[str]]] = os.walk(root)
    for folder, folders, names in walk:
        folders.sort()
        for name in list(folders):
            if _is_ignored(name):
                folders.remove(name)
                ignored.append(str((Path(folder) / name).relative_to(root)) + "/")
        for name in sorted(names):
            path = Path(folder) / name
            label = str(path.relative_to(root))
            if _is_ignored(name):
                ignored.append(label)
            elif not path.resolve().is_relative_to(real_root):
                findings.append(
                    _error("link-out-of-drop", label, "is a link that leads out of the drop", "copy the file itself")
                )
            else:
                yield from _checked(path, label, findings, explicit=False)


def _named(path: Path, findings: list[Finding]) -> Iterator[DropFile]:
    if not path.is_file():
        findings.append(_error("unreadable-file", path.name, "is not a regular file", "drop Parquet files"))
        return
    yield from _checked(path, path.name, findings, explicit=True)


def _checked(path: Path, label: str, findings: list[Finding], *, explicit: bool) -> Iterator[DropFile]:
    """The file itself if it begins and ends as Parquet does; else a finding that says what it is."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(4)
            stream.seek(max(0, size - 4))
            tail = stream.read(4)
    except OSError as error:
        findings.append(_error("unreadable-file", label, f"cannot be read: {error.strerror}", "check its permissions"))
        return
    if head == _MAGIC and tail == _MAGIC and size >= _SMALLEST:
        yield DropFile(path.absolute(), label, _partitions(label))
    elif head == _MAGIC:
        findings.append(
            _error("truncated-file", label, f"is truncated: {size:,} bytes without a closing marker", "export it again")
        )
    elif explicit or label.lower().endswith((".parquet", ".parq", ".pq")):
        what = "is empty" if size == 0 else f"is not Parquet (it begins with {head!r})"
        findings.append(_error("not-parquet", label, what, "export the table as Parquet"))
    else:
        findings.append(
            Finding(
                severity="warning",
                rule="ignored-file",
                message=f"{label} is not Parquet and was passed over",
                file=label,
            )
        )


def _is_ignored(name: str) -> bool:
    return name.startswith(("_", ".")) or name.endswith(".crc")


def _partitions(label: str) -> dict[str, str]:
    pairs = (part.split("=", 1) for part in Path(label).parts[:-1] if "=" in part)
    return {key.lower(): value for key, value in pairs if value != "__HIVE_DEFAULT_PARTITION__"}


def _error(rule: str, label: str, what: str, remedy: str) -> Finding:
    return Finding(severity="error", rule=rule, message=f"{label} {what}", file=label, remedy=remedy)
