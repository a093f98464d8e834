"""Messages between the publisher and the process that reads a drop (reader.py, reader_main.py)."""

import msgspec

from warehouse.releases.catalog import TableInfo
from warehouse.rules.failures import FailureFile
from warehouse.schema.findings import Finding


class BaseRelease(msgspec.Struct, frozen=True):
    """The current release, as far as reading a drop needs it. Part of a `ReadRequest`."""

    release: str  # its id
    illustrative: bool
    folder: str  # the folder of its tables
    tables: tuple[str, ...]


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The publisher's request to the reader process. Created for one drop."""

    paths: tuple[str, ...]
    out: str  # an empty folder for the tables
    before: BaseRelease | None  # the current release
    withdrawn: tuple[str, ...] = ()  # tables not to keep from `before`
    required: tuple[str, ...] = ()  # tables that the drop must contain
    limits: dict[str, float] = {}  # by rule
    partial: bool = False  # needed tables may be missing
    failures: str | None = None  # a folder for the failing rows


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a drop: the reader process's reply to one `ReadRequest`.

    If `no_drop` or `failure` is set, all other fields are empty.
    """

    findings: tuple[Finding, ...] = ()
    tables: dict[str, TableInfo] = {}  # written to `ReadRequest.out`, by name
    kept: tuple[str, ...] = ()  # tables that stay as they are in the current release
    illustrative: bool = False
    attribution: tuple[str, ...] = ()
    failures: tuple[FailureFile, ...] = ()  # written to `ReadRequest.failures`
    no_drop: str | None = None  # why there was no drop to read
    failure: str | None = None  # why the drop could not be read, if the drop did not cause it


class ReaderLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from the reader process: either the current step or the outcome."""

    step: str | None = None
    outcome: ReadResult | None = None
