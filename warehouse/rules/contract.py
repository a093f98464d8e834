"""The contract for drops, for the teams that export them: generated from the tables and the rules in force.

Two forms, as JSON, which is also YAML:

- JSON Schema, draft 2020-12 (https://json-schema.org/draft/2020-12/schema): a drop as an object that has an array of
  rows for each table.
- Open Data Contract Standard 3.1.0 (ODCS, Bitol, LF AI & Data; https://bitol-io.github.io/open-data-contract-standard/):
  a schema object for each table, with library and text checks.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from warehouse.rules.all_rules import RULES, RuleLimits
from warehouse.rules.row_rules import KIND_DESCRIPTIONS, ROW_RULES
from warehouse.rules.rule import Rule
from warehouse.schema.findings import Severity
from warehouse.schema.tables import (
    CONTROL_CHARACTERS,
    LOCATIONS,
    MONTH_CODE,
    POPULATION,
    TABLES,
    UPDATED_AT,
    WIDE_POPULATION,
    Column,
    ColumnKind,
    Table,
)

_ID = "population-housing-forecast-drop"
_NAME = "Drops of population and housing forecasts"
_PURPOSE = "Parquet files that are published as a release of the forecast API."
_LIMITATIONS = (
    "Names of columns are read in any letter case. Other columns are ignored. A table may come in many files. A table "
    "that the drop lacks stays as in the current release."
)
_WIDE = "One column for each year instead of year and tot_population: counted (census) or forecast (fx)."


def _years(column: Column) -> str:
    """Returns a pattern for the years in a column's range: whole centuries, then single years."""
    years = range(int(column.minimum or 0), int(column.maximum or 9999) + 1)
    whole = [century for century in range(100) if century * 100 in years and century * 100 + 99 in years]
    return "|".join(
        [*(f"{century:02}[0-9]{{2}}" for century in whole), *(str(year) for year in years if year // 100 not in whole)]
    )


_POSSIBLE = _years(POPULATION.column("year"))
_WIDE_COLUMN = f"^{WIDE_POPULATION.pattern.replace('[0-9]{4}', _POSSIBLE)}$"
_IMPOSSIBLE_COLUMN = f"^{WIDE_POPULATION.pattern.replace('[0-9]{4}', f'(?!({_POSSIBLE})$)[0-9]{{4}}')}$"

_PATTERNS: dict[ColumnKind, str] = {"zip": "^[0-9]{5}$", "fips": "^[0-9]{5}$"}
_LOGICAL_TYPES: dict[ColumnKind, str] = {"integer": "integer", "real": "number", "date": "date"}  # others: string
_PHYSICAL_TYPES: dict[ColumnKind, str] = {"integer": "INT64", "real": "DOUBLE", "date": "DATE"}  # others: STRING


def json_schema(limits: RuleLimits, severities: Mapping[str, Severity]) -> dict[str, Any]:
    """Returns the contract as JSON Schema. ``x-key`` and ``x-rules`` hold what a schema cannot express."""
    schema = {
        "title": _NAME,
        "description": f"{_PURPOSE} {_LIMITATIONS}",
        "type": "object",
        "properties": {table.name: {"type": "array", "minItems": 1, "items": _row(table)} for table in TABLES},
        "required": [table.name for table in TABLES if table.needed],
        "$defs": {table.name: _row_of(table) for table in TABLES} | {"population_wide": _wide_row()},
        "x-rules": [_rule(rule, limits, severities) for rule in RULES.values()],
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{_ID}:{_version(schema)}"}
    return head | schema


def open_data_contract(limits: RuleLimits, severities: Mapping[str, Severity]) -> dict[str, Any]:
    """Returns the contract in the Open Data Contract Standard. Rules and their limits are custom properties."""
    rules = [_rule(rule, limits, severities) for rule in RULES.values()]
    body = {
        "name": _NAME,
        "status": "active",
        "description": {"purpose": _PURPOSE, "limitations": _LIMITATIONS},
        "schema": [_schema_object(table, severities) for table in TABLES],
        "customProperties": [{"property": "rules", "value": rules}],
    }
    return {"apiVersion": "v3.1.0", "kind": "DataContract", "id": _ID, "version": _version(body)} | body


def _version(contract: dict[str, Any]) -> str:
    """Returns a version that changes with the contract, so that a pipeline can pin it."""
    return f"1.0.0+{blake2b(msgspec.json.encode(contract), digest_size=6).hexdigest()}"


def _rule(rule: Rule, limits: RuleLimits, severities: Mapping[str, Severity]) -> dict[str, Any]:
    limited = {"limit": limits[rule.name], "unit": rule.unit} if rule.limit is not None else {}
    severity = severities.get(rule.name, rule.severity)
    return {"name": rule.name, "severity": severity, "about": rule.about, **limited, "accept": rule.override}


def _row(table: Table) -> dict[str, Any]:
    reference = {"$ref": f"#/$defs/{table.name}"}
    return {"anyOf": [reference, {"$ref": "#/$defs/population_wide"}]} if table is POPULATION else reference


def _row_of(table: Table) -> dict[str, Any]:
    columns = {column.name: _value(column) for column in table.columns} | _date_columns()
    return {
        "type": "object",
        "properties": columns,
        "required": list(table.column_names),
        "x-key": list(table.key),
    }


def _wide_row() -> dict[str, Any]:
    figure = _value(POPULATION.column("tot_population"))
    zip_code = {"zip_code": _value(POPULATION.column("zip_code"))}
    return {
        "description": _WIDE,
        "type": "object",
        "properties": zip_code | _date_columns(),
        "patternProperties": {_WIDE_COLUMN: figure, _IMPOSSIBLE_COLUMN: False},
        "required": ["zip_code"],
        "allOf": [
            {"not": {"required": ["year", "tot_population"]}},
            {"not": {"propertyNames": {"not": {"pattern": _WIDE_COLUMN}}}},  # one year at least
        ],
        "x-key": ["zip_code"],
    }


def _date_columns() -> dict[str, Any]:
    return {
        UPDATED_AT: {"type": ["string", "null"], "format": "date", "description": "day of the export; optional"},
        MONTH_CODE: {"type": ["integer", "null"], "minimum": 1, "maximum": 12, "description": "its month; optional"},
    }


def _value(column: Column) -> dict[str, Any]:
    kind = _LOGICAL_TYPES.get(column.kind, "string")
    kind = "string" if kind == "date" else kind
    form = {"format": "date"} if column.kind == "date" else {}
    words = [*column.choices, *([] if column.required else [None])]
    zero = column.zero_within
    return {
        "type": kind if column.required else [kind, "null"],
        **form,
        **_options(column),
        **({"enum": words} if column.choices else {}),
        **({"anyOf": [{"maximum": -zero}, {"minimum": zero}]} if zero is not None else {}),
        "description": _described(column),
    }


def _described(column: Column) -> str:
    if column.kind != "text":
        return KIND_DESCRIPTIONS[column.kind]
    return "one of these words" if column.choices else f"text of at most {column.longest:,} characters"


def _options(column: Column) -> dict[str, Any]:
    """Returns bounds and patterns. Both standards use the same names for them."""
    if column.kind in _PATTERNS:
        return {"pattern": _PATTERNS[column.kind]}
    if column.choices:
        return {}
    if column.kind == "text":
        lengths = {"minLength": 1, "maxLength": column.longest} if column.required else {"maxLength": column.longest}
        return lengths | ({"pattern": _name_pattern(column)} if column.short else {})
    # a figure below `unknown_below` means unknown, which is not an error
    floor = None if column.unknown_below is not None else column.minimum
    bounds = {"minimum": floor, "maximum": column.maximum}
    return {name: int(bound) for name, bound in bounds.items() if bound is not None}


def _name_pattern(column: Column) -> str:
    """Returns a pattern without control characters. A required column needs a character that is not a space."""
    name = f"[^{CONTROL_CHARACTERS}]*"
    pattern = f"^{name}[^{CONTROL_CHARACTERS} \u00a0]{name}$" if column.required else f"^{name}$"
    return pattern.encode("ascii", "backslashreplace").decode()  # escapes work in every regex engine


def _schema_object(table: Table, severities: Mapping[str, Severity]) -> dict[str, Any]:
    wide = [{"property": "wideForm", "value": _WIDE}, {"property": "wideColumns", "value": _WIDE_COLUMN}]
    optional = [{"property": "optionalColumns", "value": [UPDATED_AT, MONTH_CODE]}]
    return {
        "name": table.name,
        "logicalType": "object",
        "physicalType": "Parquet",
        "description": "Every drop or the current release must have it." if table.needed else "Optional.",
        "properties": [_property(table, column) for column in table.columns],
        "quality": [
            {"metric": "rowCount", "mustBeGreaterThan": 0, "severity": "error"},
            {
                "metric": "duplicateValues",
                "mustBe": 0,
                "arguments": {"properties": list(table.key)},
                "severity": "error",
            },
            *(_check(rule, severities) for rule in ROW_RULES if rule.concerns(table)),
        ],
        "customProperties": optional + (wide if table is POPULATION else []),
    }


def _property(table: Table, column: Column) -> dict[str, Any]:
    options = _options(column)
    key = table.key.index(column.name) + 1 if column.name in table.key else None
    of_locations = table.of_locations and column.name == "zip_code"
    words = {"metric": "invalidValues", "arguments": {"validValues": list(column.choices)}, "mustBe": 0}
    return {
        "name": column.name,
        "logicalType": _LOGICAL_TYPES.get(column.kind, "string"),
        "physicalType": _PHYSICAL_TYPES.get(column.kind, "STRING"),
        "description": _described(column),
        "required": column.required,
        **({"logicalTypeOptions": options} if options else {}),
        **({"primaryKey": True, "primaryKeyPosition": key} if key else {}),
        **({"relationships": [{"to": f"{LOCATIONS.name}.zip_code"}]} if of_locations else {}),
        **({"quality": [{**words, "severity": "error"}]} if column.choices else {}),
    }


def _check(rule: Rule, severities: Mapping[str, Severity]) -> dict[str, Any]:
    severity = severities.get(rule.name, rule.severity)
    return {"type": "text", "name": rule.name, "description": rule.about, "severity": severity}
