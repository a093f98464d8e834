"""A reader of drops that reads equal ones once: most tests publish the same few, and look at what becomes of them."""

from pathlib import Path

import msgspec

from warehouse.drops import pipeline
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.schema.progress import ProgressCallback

_MOST_BYTES = 100_000  # larger drops are hardly ever read again


class _Read(msgspec.Struct, frozen=True):
    """What came of a drop: the steps that were told, the tables that were written, by name, and the result."""

    steps: tuple[str, ...]
    tables: dict[str, bytes]
    result: ReadResult


class ReadOnce:
    """Reads as `read_drop`. Lives as long as the tests of a process.

    Only whole drops of plain files, read without an error: what else there is may have its reason outside of the drop,
    as has whatever becomes of one while a test has replaced a part of the reader.
    """

    def __init__(self) -> None:
        self._read: dict[object, _Read] = {}
        self._parts = dict(vars(pipeline))

    def __call__(self, request: ReadRequest, progress: ProgressCallback = lambda _: None) -> ReadResult:
        files = _files_of(request)
        if files is None or request.failures is not None or request.withdrawn or vars(pipeline) != self._parts:
            return pipeline.read_drop(request, progress)
        before = (request.before.illustrative, request.before.tables) if request.before else None
        limits = tuple(sorted(request.limits.items()))
        key = (files, before, request.required, limits, request.partial)
        known = self._read.get(key)
        if known is None:
            return self._really(request, progress, key)
        for step in known.steps:
            progress(step)
        for name, content in known.tables.items():
            Path(request.out, name).write_bytes(content)
        return known.result

    def _really(self, request: ReadRequest, progress: ProgressCallback, key: object) -> ReadResult:
        steps: list[str] = []

        def tell(step: str) -> None:
            steps.append(step)
            progress(step)

        result = pipeline.read_drop(request, tell)
        failed = result.failure or result.no_drop or any(one.severity == "error" for one in result.findings)
        if not failed and not result.kept:
            tables = {path.name: path.read_bytes() for path in Path(request.out).iterdir()}
            self._read[key] = _Read(tuple(steps), tables, result)
        return result


def _files_of(request: ReadRequest) -> object | None:
    """The files of the one folder that the drop is, by name, with their bytes. None if it is something else."""
    folder, *others = map(Path, request.paths)
    if others or folder.is_symlink() or not folder.is_dir():
        return None
    entries = sorted(folder.rglob("*"))
    files = [one for one in entries if one.is_file()]
    if any(one.is_symlink() or not (one.is_file() or one.is_dir()) for one in entries):
        return None
    if sum(one.stat().st_size for one in files) > _MOST_BYTES:
        return None
    return tuple((str(one.relative_to(folder)), one.read_bytes()) for one in files)
