"""forecast extracts contract"""

from pathlib import Path

import click
import msgspec

from service.cli.output import json_option, load_settings, print_json, reports_errors
from warehouse.files.atomic import write_atomically
from warehouse.rules.acceptance import check_severities
from warehouse.rules.all_rules import RuleLimits
from warehouse.rules.contract import json_schema, open_data_contract

_FORMS = {"json-schema": json_schema, "odcs": open_data_contract}
_ENDINGS = (".json", ".yaml", ".yml")


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
    help="Write to FILE instead. It ends in .json, .yaml or .yml, and is replaced.",
)
@json_option
@reports_errors
def contract(form: str, out: Path | None, as_json: bool) -> None:
    """Print the contract for drops, to give to those who export them.

    It has the tables with their columns, types, keys and ranges, and the rules with the limits in force. Both formats
    are JSON, which tools for YAML read as well. The version in it changes whenever the contract does.

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
    made = _FORMS[form](RuleLimits(settings.limits), settings.severities)
    if out is None:
        print_json(made)
        return
    write_atomically(out, msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    if as_json:
        print_json({"format": form, "written": str(out.absolute())})
