"""forecast extracts"""

import sys

import click
import msgspec
from rich.markup import escape

from config.settings import Settings
from service.cli import findings
from service.cli.output import FAILED, json_option, load_settings, print_json, reports_errors, stderr, stdout, table
from warehouse.instances import InstanceRecord, wait_until_served
from warehouse.publish import Options, Outcome, publish, roll_back
from warehouse.releases import Catalog, Manifest

_SERVED_WITHIN_SECONDS = 2.0


@click.group()
def extracts() -> None:
    """Publish drops of Parquet extracts; list, show and roll back releases.

    \b
    forecast extracts publish drops/2026-10
    forecast extracts list
    forecast extracts rollback
    """


@extracts.command(name="publish")
@click.argument("paths", nargs=-1, required=True)
@json_option
@reports_errors
def publish_drop(paths: tuple[str, ...], as_json: bool) -> None:
    """Validate the drop at PATHS (folders, files, globs) and make it the current release.

    Prints the release's id. A table that the drop does not bring stays as it is. With any error nothing changes: all
    findings are listed, and the exit code is 1; it is 3 if another publisher was first.

    \b
    forecast extracts publish drops/2026-10
    forecast extracts publish zip_locations.parquet 'parts/housing-*.parquet'
    """
    settings = load_settings().settings
    catalog = Catalog(settings.data_path)
    console = stderr()
    with findings.progress(console) as tell:
        outcome = publish(catalog, paths, Options(attribution=settings.attribution), tell)
        behind = _await_instances(settings, outcome, tell)
    if as_json:
        print_json(_as_json(outcome, behind))
        _warn_behind(behind)
    else:
        _print_outcome(outcome, behind)
    if outcome.result == "refused":
        if as_json:
            click.echo(f"forecast: refused: {outcome.report.summary()}", err=True)
        sys.exit(FAILED)


@extracts.command(name="list")
@json_option
@reports_errors
def list_releases(as_json: bool) -> None:
    """List the releases that there are, newest first.

    \b
    forecast extracts list
    forecast extracts list --json
    """
    catalog = Catalog(load_settings().settings.data_path)
    pointer = catalog.pointer()
    current, previous = (pointer.release, pointer.previous) if pointer else (None, None)
    releases = catalog.all()
    if as_json:
        print_json([_summary(manifest, current) for manifest in releases])
        return
    shown = table(
        "release", "published (UTC)", "ZIP codes", "cities", "warnings", "", numeric=("ZIP codes", "cities", "warnings")
    )
    for manifest in releases:
        marks = [mark for mark, holds in _marks(manifest, current, previous) if holds]
        shown.add_row(
            manifest.id,
            f"{manifest.published_at:%Y-%m-%d %H:%M:%S}",
            f"{manifest.zip_codes:,}",
            f"{manifest.cities:,}",
            str(manifest.findings.get("warning", 0)),
            " ".join(marks),
        )
    stdout().print(shown if releases else "No releases yet: run `forecast extracts publish PATH`.")


@extracts.command()
@click.argument("release", required=False)
@json_option
@reports_errors
def show(release: str | None, as_json: bool) -> None:
    """Show a release (default: the current one): its tables, where they came from, and its findings.

    \b
    forecast extracts show
    forecast extracts show 20261005T090000Z-0123456789ab
    """
    catalog = Catalog(load_settings().settings.data_path)
    current = catalog.current().id if release is None else None
    manifest = catalog.manifest(release or current or "")
    pointer = catalog.pointer()
    is_current = bool(pointer and pointer.release == manifest.id)
    report = catalog.findings(manifest.id)
    if as_json:
        print_json({"current": is_current, "manifest": manifest, "findings": report.findings})
        return
    findings.print_manifest(stdout(), manifest, current=is_current)
    findings.print_report(stdout(), report)


@extracts.command()
@click.argument("release", required=False)
@json_option
@reports_errors
def rollback(release: str | None, as_json: bool) -> None:
    """Make RELEASE current again; without it, the one that was current before this one.

    \b
    forecast extracts rollback
    forecast extracts rollback 20261005T090000Z-0123456789ab
    """
    settings = load_settings().settings
    manifest = roll_back(Catalog(settings.data_path), release)
    behind = wait_until_served(settings.data_path, manifest.id, _SERVED_WITHIN_SECONDS)
    if as_json:
        print_json({"release": manifest.id, "behind": [_instance(record) for record in behind]})
        return
    click.echo(manifest.id)
    _warn_behind(behind)


def _await_instances(settings: Settings, outcome: Outcome, tell: findings.Progress) -> list[InstanceRecord]:
    if outcome.result == "refused" or outcome.manifest is None:
        return []
    return wait_until_served(settings.data_path, outcome.manifest.id, _SERVED_WITHIN_SECONDS, tell)


def _print_outcome(outcome: Outcome, behind: list[InstanceRecord]) -> None:
    console = stderr()
    if outcome.result == "refused":
        kept = f"{outcome.manifest.id} stays current" if outcome.manifest else "nothing is published"
        console.print(f"[bold red]Refused[/]: {outcome.report.summary()}; {kept}.\n")
    elif outcome.result == "already_current":
        console.print(f"[green]Already current[/]: {outcome.report.summary()}.\n")
    elif outcome.manifest is not None:
        manifest = outcome.manifest
        size = f"{manifest.zip_codes:,} ZIP codes, {manifest.cities:,} cities"
        console.print(f"[bold green]Published[/]: {size}; {outcome.report.summary()}.\n")
    findings.print_report(console, outcome.report)
    _warn_behind(behind)
    if outcome.result != "refused" and outcome.manifest is not None:
        click.echo(outcome.manifest.id)


def _warn_behind(behind: list[InstanceRecord]) -> None:
    for record in behind:
        stderr().print(
            f"[yellow]warning[/] instance {record.pid} on {escape(record.host)} does not serve it after "
            f"{_SERVED_WITHIN_SECONDS:g} s: see {escape(record.operator_url)}/health/ready"
        )


def _as_json(outcome: Outcome, behind: list[InstanceRecord]) -> dict[str, object]:
    return {
        "result": outcome.result,
        "release": outcome.manifest.id if outcome.manifest else None,
        "findings": outcome.report.findings,
        "behind": [_instance(record) for record in behind],
    }


def _instance(record: InstanceRecord) -> dict[str, object]:
    return msgspec.structs.asdict(record)


def _summary(manifest: Manifest, current: str | None) -> dict[str, object]:
    return {
        "id": manifest.id,
        "published_at": manifest.published_at,
        "current": manifest.id == current,
        "illustrative": manifest.illustrative,
        "zip_codes": manifest.zip_codes,
        "cities": manifest.cities,
        "findings": manifest.findings,
    }


def _marks(manifest: Manifest, current: str | None, previous: str | None) -> list[tuple[str, bool]]:
    return [
        ("[green]current[/green]", manifest.id == current),
        ("[dim]previous[/dim]", manifest.id == previous),
        ("[yellow]illustrative[/yellow]", manifest.illustrative),
    ]
