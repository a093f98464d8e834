"""Publishes a drop: reads it, compares it, builds a release, warms the cache, switches. Or rejects it as a whole."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import msgspec

from warehouse import sql
from warehouse.compare.drift import drift_findings
from warehouse.compare.plausibility import judge_plausibility, write_implausible
from warehouse.compare.release_comparison import compare
from warehouse.drops.collection import check_paths
from warehouse.drops.disk_budget import DiskBudget, connect_within, disk_budget_for
from warehouse.drops.messages import BaseRelease, ReadRequest, ReadResult
from warehouse.drops.reader import DropReader, read_in_subprocess
from warehouse.drops.writing import content_of
from warehouse.files.remedies import with_remedy
from warehouse.publishing.build import ReleaseContents, build_release, rewrite_report
from warehouse.publishing.bulk import ReleaseBefore
from warehouse.publishing.history import baseline_of, delivered_before, kept_releases, older_than_current
from warehouse.publishing.outcome import PublishOptions, PublishOutcome, Result, approval_findings
from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.releases.files import table_file
from warehouse.rules.acceptance import judge, used
from warehouse.rules.all_rules import RuleLimits, make_finding
from warehouse.rules.failures import FailureFile, prepare_folder
from warehouse.rules.folding import fold
from warehouse.schema.comparison import Comparison
from warehouse.schema.errors import CatalogError, DropError, NoReleaseError
from warehouse.schema.findings import Finding, make_report
from warehouse.schema.progress import ProgressCallback
from warehouse.schema.tables import TABLES, first_open_year, table_named


@contextmanager
def publishing(
    catalog: Catalog,
    paths: Sequence[str],
    options: PublishOptions = PublishOptions(),  # noqa: B008 - frozen
    progress: ProgressCallback = lambda _: None,
    *,
    reader: DropReader = read_in_subprocess,
) -> Iterator["Publication"]:
    """Reads the drop at `paths` and builds its release, unless the drop is rejected. Holds the publish lock meanwhile.

    The caller makes the release current: `adopt`, then `switch`. Without these calls, the data folder is unchanged.

    Raises:
        DropError: if the paths bring no Parquet file.
        BusyError: if another publisher is at work.
        CatalogError: if the data folder cannot be written.
    """
    options.check()
    check_paths(paths)
    with catalog.publishing() as staged:
        publication = Publication(catalog, staged, options, progress, reader)
        publication.build(paths)
        yield publication


def dry_run(
    catalog: Catalog,
    paths: Sequence[str],
    options: PublishOptions = PublishOptions(),  # noqa: B008 - frozen
    progress: ProgressCallback = lambda _: None,
    *,
    reader: DropReader = read_in_subprocess,
) -> PublishOutcome:
    """Checks the drop as `publishing` would, without publishing it. Raises as `publishing`, except BusyError."""
    options.check()
    check_paths(paths)
    with catalog.examining() as staged:
        publication = Publication(catalog, staged, options, progress, reader)
        publication.examine(paths)
        return publication.outcome


class Publication:
    """One drop on its way to a release. Lives for one `publishing` or `dry_run`.

    `outcome` is the outcome so far. `next` is the manifest of the release built in `folder`; None if the drop is not
    published.
    """

    outcome: PublishOutcome
    next: Manifest | None = None

    def __init__(
        self, catalog: Catalog, staged: Path, options: PublishOptions, progress: ProgressCallback, reader: DropReader
    ) -> None:
        self._catalog = catalog
        self.folder = staged
        self._tables = staged / "tables"
        self._tables.mkdir()
        self._options = options
        self._limits = RuleLimits(options.limits)
        self._progress = progress
        self._reader = reader
        self._failures: list[FailureFile] = []

    def build(self, paths: Sequence[str]) -> None:
        """Examines the drop, and builds its release if it may be published."""
        contents = self.examine(paths)
        outcome = self.outcome
        if outcome.result != "passed":
            return
        self._progress("encoding entries")
        budget = disk_budget_for(self._tables.iterdir(), self.folder)
        try:
            with connect_within(budget, self.folder.parent) as connection:
                options = self._options
                accepted = used(options.acceptance, outcome.report.findings)
                current = outcome.manifest
                before = ReleaseBefore(current.id, self._catalog.folder(current.id)) if current else None
                self.next, self._report = build_release(
                    connection, self._tables, self.folder, contents, outcome.report, accepted, options.origin, before
                )
        except (duckdb.Error, OSError) as error:
            excess = budget.excess(error, self.folder)
            if excess is None:
                raise CatalogError(with_remedy(f"the release cannot be built: {sql.reason(error)}")) from None
            findings = (make_finding("reader-failed", f"building the release {excess}"), *outcome.report.findings)
            report = make_report(findings, outcome.report.comparison)
            self.outcome = msgspec.structs.replace(outcome, result="refused", report=report)

    def note(self, findings: Sequence[Finding]) -> None:
        """Adds findings to the report that the built release keeps. Call before `adopt`."""
        if findings and self.next is not None:
            self._report = make_report([*findings, *self._report.findings], self._report.comparison)
            self.next = rewrite_report(self.folder, self.next, self._report)

    def adopt(self) -> Path:
        """Moves the built release to its place; returns its folder. It is not current yet."""
        assert self.next is not None  # noqa: S101 - as the callers have checked
        self._catalog.adopt(self.folder, self.next)
        self.folder = self._catalog.folder(self.next.id)
        return self.folder

    def switch(self, findings: Sequence[Finding] = ()) -> None:
        """Makes the adopted release current. `findings` are reported, but the release does not keep them."""
        assert self.next is not None  # noqa: S101 - as the callers have checked
        self._progress("switching")
        self._catalog.switch(self.next.id, self._options.origin.by if self._options.origin else None)
        report = make_report([*findings, *self._report.findings], self._report.comparison)
        self.outcome = msgspec.structs.replace(self.outcome, result="published", report=report, manifest=self.next)

    def examine(self, paths: Sequence[str]) -> ReleaseContents:
        """Reads the drop and compares it with the current release. The outcome is `passed` if it may be published."""
        current = self._current()
        read = self._read(paths, current)
        before = current if current and current.illustrative == read.illustrative else None
        attribution = read.attribution or self._options.attribution
        kept = kept_releases(self._catalog, before) if before else []
        budget = disk_budget_for(self._tables.iterdir(), self.folder)
        with connect_within(budget, self.folder.parent) as connection:
            tables = read.tables | self._carry(connection, before, read.kept)
            contents = ReleaseContents(tables, attribution, read.illustrative)
            comparison, compared = self._compare(connection, kept, tables, budget)
        options = self._options
        findings = [*read.findings]
        if before is not None:
            findings += [*delivered_before(kept, read.tables), *older_than_current(kept, read)]
        findings += compared
        known = before is not None and before.id.endswith(f"-{contents.digest}")
        if options.seen is not None and not known:
            findings += approval_findings(options.seen, read.tables, current)
        severities = options.severities | ({} if known else dict.fromkeys(options.hold, "error"))
        judged = judge(findings, options.acceptance, severities, strict=options.strict)
        summary = make_report(fold(judged), comparison)
        result: Result = "passed"
        if known and (not summary.refused or summary.refused_only_by(options.hold)):
            result = "already_current"
        elif summary.refused:
            result = "held" if summary.refused_only_by(options.hold) else "refused"
        brought = {name: info.checksum for name, info in read.tables.items()}
        self.outcome = PublishOutcome(
            result=result, report=summary, manifest=current, failures=tuple(self._failures), tables=brought
        )
        return contents

    def _read(self, paths: Sequence[str], current: Manifest | None) -> ReadResult:
        before = None
        if current is not None:
            folder = str(self._catalog.folder(current.id) / "tables")
            before = BaseRelease(current.id, current.illustrative, folder, tuple(sorted(current.tables)))
        request = ReadRequest(
            paths=tuple(paths),
            out=str(self._tables),
            before=before,
            withdrawn=self._options.withdrawn,
            required=self._options.required,
            limits=self._options.limits,
            partial=self._options.partial,
            failures=self._options.failures,
        )
        if self._options.failures is not None:
            _prepare(Path(self._options.failures))
        read = self._reader(request, self._progress)
        if read.no_drop is not None:
            raise DropError(read.no_drop)
        if read.failure is not None:
            raise CatalogError(with_remedy(read.failure))
        self._failures += read.failures
        return read

    def _current(self) -> Manifest | None:
        if not self._options.compared:
            return None
        try:
            return self._catalog.current()
        except NoReleaseError:
            return None

    def _carry(
        self, connection: duckdb.DuckDBPyConnection, before: Manifest | None, kept: Sequence[str]
    ) -> dict[str, TableInfo]:
        """Copies the tables that the drop does not bring from the current release.

        Raises:
            CatalogError: if one of them is damaged.
        """
        carried = {}
        for name in kept if before else ():
            assert before is not None  # noqa: S101 - without a current release, nothing is kept
            info = before.tables[name]
            source = table_file(self._catalog.folder(before.id) / "tables", name)
            copy = table_file(self._tables, name)
            try:
                shutil.copyfile(source, copy)
                intact = content_of(connection, table_named(name), copy) == (info.rows, info.checksum)
            except (FileNotFoundError, duckdb.Error):
                intact = False
            if not intact:
                raise CatalogError(f"{source} is damaged: publish a drop that brings {name}, or roll back")
            carried[name] = msgspec.structs.replace(info, carried_from=info.carried_from or before.id)
        return carried

    def _compare(
        self,
        connection: duckdb.DuckDBPyConnection,
        kept: Sequence[Manifest],
        tables: dict[str, TableInfo],
        budget: DiskBudget,
    ) -> tuple[Comparison | None, list[Finding]]:
        """Compares with the current release, if the needed tables are there.

        Returns also findings on implausible figures.

        `kept` are the `kept_releases`; empty if there is no release to compare with. A comparison that needs too much
        memory or disk gives a finding.
        """
        needed = {one.name for one in TABLES if one.needed}
        if not needed <= set(tables):
            return None, []
        self._progress("comparing")
        open_year = first_open_year(datetime.now(UTC).date())
        old = self._catalog.folder(kept[0].id) / "tables" if kept else None
        comparison = None
        try:
            findings: list[Finding] = []
            if old is not None:
                comparison = compare(connection, old, self._tables, open_year)
                findings += drift_findings(comparison, self._limits)
            oldest = baseline_of(kept) if kept else None
            baseline = self._catalog.folder(oldest.id) / "tables" if oldest else None
            judged = judge_plausibility(connection, old, self._tables, self._limits, open_year, baseline)
            findings += judged.findings
            if self._options.failures is not None:
                self._failures += write_implausible(connection, judged, Path(self._options.failures))
        except duckdb.Error as error:
            than = kept[0].id if kept else "itself"
            excess = budget.excess(error, self.folder)
            if excess is not None:
                return None, [make_finding("reader-failed", f"comparing the drop with {than} {excess}")]
            raise CatalogError(with_remedy(f"cannot compare the drop with {than}: {sql.reason(error)}")) from None
        return comparison, findings


def _prepare(folder: Path) -> None:
    """Creates the folder for failing rows and removes our earlier files. Raises CatalogError."""
    try:
        prepare_folder(folder)
    except OSError as error:
        raise CatalogError(f"cannot write the failing rows to {folder}: {error.strerror}") from None
