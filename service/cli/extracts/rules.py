"""forecast extracts: the commands that list the rules for drops, the source words of project statuses, the contract."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click
import msgspec
from rich.text import Text

from service.cli.output import Output, load_settings, print_json, stdout, with_json
from service.reports import terminal
from service.reports.text_table import text_table
from warehouse.files.atomic import write_atomically
from warehouse.rules.acceptance import check_severities
from warehouse.rules.all_rules import RULES, RuleLimits, shown_limit
from warehouse.rules.contract import json_schema, open_data_contract
from warehouse.rules.rule import Rule
from warehouse.schema.findings import Severity
from warehouse.schema.vocabulary import PROJECT_STATUSES, ProjectStatus

_FORMS = {"json-schema": json_schema, "odcs": open_data_contract}
_ENDINGS = (".json", ".yaml", ".yml")


@click.command()
@with_json
def rules() -> Output:
    """List the rules for drops and the limits in force.

    Errors of rules marked --accept can be overridden: `forecast extracts publish --accept RULE=LIMIT`, without =LIMIT
    for rules that have no limit. FORECAST_LIMITS sets limits permanently, FORECAST_SEVERITIES severities.

    Exit codes: 0 listed, 1 a setting is invalid, 2 wrong usage.

    \b
    Examples:
      forecast extracts rules
      FORECAST_LIMITS='total-drift=10%, zip-codes-lost=0.05' forecast extracts rules
    """
    settings = load_settings().settings
    limits = RuleLimits(settings.limits)
    check_severities(settings.severities)
    shown = text_table("rule", "severity", "limit", "description", numeric=("limit",))
    for rule in RULES.values():
        severity = terminal.severity_text(settings.severities.get(rule.name, rule.severity))
        limit = "" if rule.limit is None else shown_limit(rule.unit, limits[rule.name])
        about = Text(rule.about).append(" (--accept)" if rule.override else "", "dim")
        shown.add_row(rule.name, severity, limit, about)
    value = [_rule_as_json(rule, limits, settings.severities) for rule in RULES.values()]
    return Output(value, lambda: stdout().print(shown))


@click.command()
@with_json
def statuses() -> Output:
    """List the source words of each project status.

    The left column has the values of `status` for partners; the right one the words in sources of development projects.

    Exit codes: 0 listed, 2 wrong usage.

    \b
    Examples:
      forecast extracts statuses
      forecast extracts statuses --json
    """
    words: dict[str, list[str]] = {status: [] for status in get_args(ProjectStatus)}
    for word, meaning in PROJECT_STATUSES.items():
        words[meaning].append(word)
    shown = text_table("status", "source words, in any case")
    for status, understood in words.items():
        shown.add_row(status, ", ".join(understood))
    return Output(words, lambda: stdout().print(shown))


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_FORMS)),
    default="json-schema",
    show_default=True,
    help="JSON Schema (draft 2020-12), or the Open Data Contract Standard (3.1.0).",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE (.json, .yaml or .yml) instead. Replaces FILE.",
)
@with_json
def contract(form: str, out: Path | None) -> Output:
    """Print the contract for drops, for the teams that export them.

    It has the tables with their columns, types, keys and ranges, and the rules with the limits in force. Both formats
    are JSON, which YAML tools read as well. Its version changes with its content.

    `forecast extracts check --no-release` checks a drop against it, without a data folder.

    Exit codes: 0 printed, 1 a setting is invalid or FILE cannot be written, 2 wrong usage.

    \b
    Examples:
      forecast extracts contract --out drop.schema.json
      forecast extracts contract --format odcs --out drop.odcs.yaml
    """
    if out is not None and out.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"--out must end in {', '.join(_ENDINGS)}")
    settings = load_settings().settings
    check_severities(settings.severities)
    text = _FORMS[form](RuleLimits(settings.limits), settings.severities)
    if out is None:
        return Output(text, lambda: print_json(text))
    write_atomically(out, msgspec.json.format(msgspec.json.encode(text), indent=2) + b"\n")
    return Output({"format": form, "written": str(out.absolute())}, lambda: None)


def _rule_as_json(rule: Rule, limits: RuleLimits, severities: Mapping[str, Severity]) -> dict[str, object]:
    return {
        "name": rule.name,
        "severity": severities.get(rule.name, rule.severity),
        "about": rule.about,
        "remedy": rule.remedy,
        "limit": limits[rule.name] if rule.limit is not None else None,
        "unit": rule.unit if rule.limit is not None else None,
        "accept": rule.override,
    }
