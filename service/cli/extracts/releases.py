"""forecast extracts: the commands for releases. Those for drops are in drops.py."""

from pathlib import Path

import click
import msgspec

from service.base.whoami import whoami
from service.cli.extracts.outcome import explain_interruption, print_place, print_switch, warn_behind
from service.cli.output import Output, fail, load_settings, printable_message, stderr, stdout, with_json
from service.publishing.releases import open_releases, roll_back_and_wait
from service.reports import terminal
from service.reports.terminal_comparison import print_comparison
from service.reports.text_table import plain
from warehouse.compare.release_comparison import compare_releases, write_release_changes
from warehouse.releases.catalog import Manifest

_FORMS = (".csv", ".parquet")


@click.command(name="list")
@with_json
def list_releases() -> Output:
    """List the releases, newest first.

    Shows which one is current, which one a rollback returns to, and who published each, from which host and path.

    Exit codes: 0 listed, 1 failed or the current release is unknown, 2 wrong usage.

    \b
    Examples:
      forecast extracts list
      forecast extracts list --json
    """
    place = open_releases(load_settings().settings)
    with place.reading() as reader:
        lost = reader.lost
        pointer = reader.catalog.pointer() if lost is None else None
        releases = reader.catalog.all()
    if lost is not None and not releases:
        fail(lost)

    def show() -> None:
        if releases:
            terminal.print_releases(stdout(), (place.kind, place.place), releases, pointer)
        else:
            click.echo(f"No releases yet in {printable_message(place.place)}: run `forecast extracts publish PATH`.")

    current = pointer.release if pointer else None
    return Output([_summary(manifest, current) | place.member for manifest in releases], show, lost)


@click.command()
@click.argument("release", required=False)
@with_json
def show(release: str | None) -> Output:
    """Show a release: its tables, their files, its findings.

    RELEASE is an id from `forecast extracts list`. Default: the current release.

    Exit codes: 0 shown, 1 there is no such release, 2 wrong usage.

    \b
    Examples:
      forecast extracts show
      forecast extracts show 20261005T090000Z-0123456789ab
    """
    place = open_releases(load_settings().settings)
    with place.reading() as reader:
        catalog = reader.catalog
        name = release or reader.current()
        reader.fetch_findings(name)
        manifest = catalog.manifest(name)
        pointer = catalog.pointer()
        if pointer and pointer.release != manifest.id:
            pointer = None
        report = catalog.findings(manifest.id)

    def print_release() -> None:
        terminal.print_manifest(stdout(), (place.kind, place.place), manifest, pointer)
        terminal.print_report(stdout(), report)

    state = {"current": pointer is not None, "switched_by": pointer.by if pointer else None}
    return Output(state | {"manifest": manifest, "findings": report.findings} | place.member, print_release)


@click.command()
@click.argument("release", required=False)
@with_json
def rollback(release: str | None) -> Output:
    """Make an earlier release current again.

    RELEASE is an id from `forecast extracts list`. Default: the release that was current before this one, so a second
    rollback undoes the first.

    Prints the release's id. Waits until every running instance on the data folder, or on the store of releases
    (FORECAST_RELEASES_URL), serves the release, and lists those that do not.

    Exit codes: 0 done, 1 there is no such release or it is damaged, 2 wrong usage, 3 another publisher was first,
    130 interrupted.

    \b
    Examples:
      forecast extracts rollback
      forecast extracts rollback 20261005T090000Z-0123456789ab
    """
    releases = open_releases(load_settings().settings)
    with explain_interruption(releases), terminal.progress(stderr()) as progress:
        done = roll_back_and_wait(releases, release, whoami(), progress)

    def show() -> None:
        click.echo(printable_message(done.release))
        warn_behind(releases, done.behind)
        print_switch(releases, done.behind)
        print_place(releases)

    return Output(msgspec.structs.asdict(done) | releases.member, show)


@click.command()
@click.argument("old")
@click.argument("new", required=False)
@click.option(
    "--to",
    "to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write every changed figure to FILE, a new .csv or .parquet file.",
)
@with_json
def diff(old: str, new: str | None, to: Path | None) -> Output:
    """Compare two releases: places, answers, totals, movers.

    OLD and NEW are ids from `forecast extracts list`. Default of NEW: the current release.

    Exit codes: 0 compared, 1 there is no such release, 2 wrong usage.

    \b
    Examples:
      forecast extracts diff 20261005T090000Z-0123456789ab
      forecast extracts diff OLD NEW --to changes.csv
    """
    if to is not None and to.suffix.lower() not in _FORMS:
        raise click.UsageError(f"--to must end in {' or '.join(_FORMS)}")
    if to is not None and to.exists():  # an extract has such a name, too
        raise click.UsageError(f"--to {printable_message(str(to))} exists: name a new file")
    with open_releases(load_settings().settings).reading() as reader:
        names = (old, new or reader.current())
        reader.fetch_tables(*names)
        comparison = compare_releases(reader.catalog, *names)
        written = write_release_changes(reader.catalog, *names, to) if to is not None else None

    def show() -> None:
        print_comparison(stdout(), comparison, f"{names[0]} → {names[1]}")
        if written is not None:
            stdout().print(f"{written:,} changed figures written to {plain(str(to))}")

    return Output({"old": names[0], "new": names[1], "comparison": comparison, "written": written}, show)


@click.command(name="retire")
@click.argument("names", nargs=-1, metavar="[RELEASES]...")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Keep the N newest releases, and the newest of each of the last N versions of the figures; remove the others.",
)
@with_json
def retire_releases(names: tuple[str, ...], keep: int | None) -> Output:
    """Remove old releases permanently.

    Name RELEASES, or give --keep. The current release, the one that a rollback returns to, and every release that an
    instance serves always stay. Publishing retires releases by itself and keeps FORECAST_KEEP_RELEASES. Releases
    without new figures do not count toward N: the newest release of each of the last N versions of the figures stays
    as well.

    Exit codes: 0 done, 1 a named release cannot be removed, 2 wrong usage, 3 a publisher is at work.

    \b
    Examples:
      forecast extracts retire 20261005T090000Z-0123456789ab
      forecast extracts retire --keep 5
    """
    if bool(names) == (keep is not None):
        raise click.UsageError("name releases, or give --keep N")
    releases = open_releases(load_settings().settings)
    gone = releases.retire(names) if keep is None else releases.retire_all_but(keep)

    def show() -> None:
        stdout().print("\n".join(map(plain, gone)) if gone else "Nothing to retire.")
        print_place(releases)

    return Output({"retired": gone} | releases.member, show)


def _summary(manifest: Manifest, current: str | None) -> dict[str, object]:
    return {
        "id": manifest.id,
        "published_at": manifest.published_at,
        "current": manifest.id == current,
        "illustrative": manifest.illustrative,
        "zip_codes": manifest.zip_codes,
        "cities": manifest.cities,
        "findings": manifest.findings,
        "origin": manifest.origin,
    }
