"""forecast extracts: what looks at drops. What looks at releases is in releases.py."""

import sys
from pathlib import Path
from typing import get_args

import click
import msgspec

from config.settings import Settings
from service.base import interruption
from service.cli.extracts.releases import (
    diff,
    explains_interruption,
    list_releases,
    retire_releases,
    rollback,
    show,
    warn_behind,
)
from service.cli.extracts.watch import watch
from service.cli.output import (
    FAILED,
    data_folder_member,
    json_option,
    load_settings,
    print_json,
    reports_errors,
    stderr,
    stdout,
    tell_data_folder,
)
from service.publishing.publisher import Published, options_of, origin_of, publish_and_wait
from service.reports import terminal
from service.reports.text_table import text_table
from warehouse.publishing.publish import PublishOptions, PublishOutcome, dry_run
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import RULES, RuleLimits
from warehouse.rules.rule import Rule
from warehouse.schema.vocabulary import PROJECT_STATUSES, ProjectStatus
from warehouse.sql import connections


@click.group()
def extracts() -> None:
    """Publish drops of Parquet extracts; list, compare and roll back releases.

    \b
    forecast extracts check drops/2026-10
    forecast extracts publish drops/2026-10
    forecast extracts list
    forecast extracts rollback
    """
    interruption.ends_by(connections.interrupt)


for _command in (list_releases, show, rollback, diff, retire_releases, watch):
    extracts.add_command(_command)


@extracts.command(name="publish")
@click.argument("paths", nargs=-1, required=True)
@click.option("--drop-table", "withdrawn", multiple=True, metavar="TABLE", help="Leave out a table that would be kept.")
@click.option(
    "--accept", "accepted", multiple=True, metavar="RULE", help="Let findings of RULE through; needs --reason."
)
@click.option("--reason", default="", help="Why they are let through; kept in the release's manifest.")
@json_option
@reports_errors
def publish_drop(
    paths: tuple[str, ...], withdrawn: tuple[str, ...], accepted: tuple[str, ...], reason: str, as_json: bool
) -> None:
    """Validate the drop at PATHS (folders, files, globs) and make it the current release.

    Prints the release's id. A table that the drop does not bring stays as it is. With any error nothing changes: all
    findings are listed, and the exit code is 1; it is 3 if another publisher was first.

    \b
    forecast extracts publish drops/2026-10
    forecast extracts publish zip_locations.parquet 'parts/housing-*.parquet'
    forecast extracts publish drops/2026-10 --accept total-drift --reason "2030 census base"
    """
    settings = load_settings().settings
    options = _options(settings, paths, withdrawn, accepted, reason)
    with explains_interruption(Catalog(settings.data_path)), terminal.progress(stderr()) as tell:
        published = publish_and_wait(settings, paths, options, tell)
    if as_json:
        print_json(_as_json(published.outcome) | _aftermath(published) | data_folder_member(settings))
    else:
        _print_outcome(published.outcome)
        _print_aftermath(published)
        tell_data_folder(settings)
    warn_behind(list(published.behind))
    _end(published.outcome, as_json=as_json)


@extracts.command(name="check")
@click.argument("paths", nargs=-1, required=True)
@click.option("--drop-table", "withdrawn", multiple=True, metavar="TABLE", help="Leave out a table that would be kept.")
@click.option("--accept", "accepted", multiple=True, metavar="RULE", help="Let findings of RULE through.")
@click.option(
    "--html", "html", type=click.Path(dir_okay=False, path_type=Path), help="Write a report with charts here."
)
@json_option
@reports_errors
def check_drop(
    paths: tuple[str, ...], withdrawn: tuple[str, ...], accepted: tuple[str, ...], html: Path | None, as_json: bool
) -> None:
    """Say everything that publishing the drop at PATHS would say, and change nothing.

    Exit codes: 0 it could be published, 1 it would be refused, 2 wrong usage.

    \b
    forecast extracts check drops/2026-10
    forecast extracts check drops/2026-10 --html report.html
    """
    settings = load_settings().settings
    options = options_of(settings, withdrawn, accepted, "checked")
    with terminal.progress(stderr()) as tell:
        outcome = dry_run(Catalog(settings.data_path), paths, options, tell)
    if html is not None:
        terminal.write_html(html, outcome, " ".join(paths))
    if as_json:
        print_json(_as_json(outcome) | data_folder_member(settings))
    else:
        _print_outcome(outcome)
        tell_data_folder(settings)
    _end(outcome, as_json=as_json)


@extracts.command()
@json_option
@reports_errors
def rules(as_json: bool) -> None:
    """List the rules that drops are held to, with the limits in force.

    \b
    forecast extracts rules
    FORECAST_LIMITS='total-drift=10%, zip-codes-lost=0.05' forecast extracts rules
    """
    limits = RuleLimits(load_settings().settings.limits)
    if as_json:
        print_json([_rule_as_json(rule, limits) for rule in RULES.values()])
        return
    shown = text_table("rule", "severity", "limit", "what it says", numeric=("limit",))
    for rule in RULES.values():
        accepted = " [dim](--accept)[/dim]" if rule.override else ""
        severity = terminal.severity_markup(rule.severity)
        shown.add_row(rule.name, severity, _limit_text(rule, limits), rule.about + accepted)
    stdout().print(shown)


@extracts.command()
@json_option
@reports_errors
def statuses(as_json: bool) -> None:
    """List the words for a project's status that are understood, and what partners are told for each.

    \b
    forecast extracts statuses
    """
    words: dict[str, list[str]] = {status: [] for status in get_args(ProjectStatus)}
    for word, meaning in PROJECT_STATUSES.items():
        words[meaning].append(word)
    if as_json:
        print_json(words)
        return
    shown = text_table("status", "words, in any case")
    for status, understood in words.items():
        shown.add_row(status, ", ".join(understood))
    stdout().print(shown)


def _options(
    settings: Settings, paths: tuple[str, ...], withdrawn: tuple[str, ...], accepted: tuple[str, ...], reason: str
) -> PublishOptions:
    if accepted and not reason.strip():
        raise click.UsageError("--accept needs --reason: it is kept in the release's manifest")
    return options_of(settings, withdrawn, accepted, reason.strip(), origin_of(paths, "command"))


def _print_outcome(outcome: PublishOutcome) -> None:
    terminal.print_outcome(stderr(), outcome)
    if outcome.result in ("published", "already_current") and outcome.manifest is not None:
        click.echo(outcome.manifest.id)


def _print_aftermath(published: Published) -> None:
    if published.retired:
        stderr().print(f"[dim]retired {len(published.retired)}: {', '.join(published.retired)}[/dim]")


def _end(outcome: PublishOutcome, *, as_json: bool) -> None:
    if outcome.result != "refused":
        return
    if as_json:
        click.echo(f"forecast: refused: {outcome.report.summary()}", err=True)
    sys.exit(FAILED)


def _as_json(outcome: PublishOutcome) -> dict[str, object]:
    return {
        "result": outcome.result,
        "release": outcome.manifest.id if outcome.manifest else None,
        "findings": outcome.report.findings,
        "comparison": outcome.report.comparison,
    }


def _aftermath(published: Published) -> dict[str, object]:
    return {
        "behind": [msgspec.structs.asdict(record) for record in published.behind],
        "retired": published.retired,
    }


def _rule_as_json(rule: Rule, limits: RuleLimits) -> dict[str, object]:
    return {
        "name": rule.name,
        "severity": rule.severity,
        "about": rule.about,
        "remedy": rule.remedy,
        "limit": limits[rule.name] if rule.limit is not None else None,
        "unit": rule.unit if rule.limit is not None else None,
        "accept": rule.override,
    }


def _limit_text(rule: Rule, limits: RuleLimits) -> str:
    if rule.limit is None:
        return ""
    return f"{limits[rule.name]:,.0f} rows" if rule.unit == "rows" else f"{limits[rule.name]:.1%}"
