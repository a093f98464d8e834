"""Rules on the files of a drop and on their columns, found while they are collected and recognised."""

from warehouse.rules.rule import EXPORT_AGAIN, Rule

FILE_RULES: tuple[Rule, ...] = (
    Rule(
        name="ignored-file",
        severity="info",
        about="Files and folders whose names begin with _ or . or end in .crc are passed over.",
    ),
    Rule(
        name="foreign-file", severity="warning", about="A file beside the extracts that is not Parquet is passed over."
    ),
    Rule(
        name="link-out-of-drop",
        severity="error",
        about="A link must not lead out of the drop.",
        remedy="copy what it leads to",
    ),
    Rule(name="unreadable-file", severity="error", about="Every file must be readable Parquet.", remedy=EXPORT_AGAIN),
    Rule(name="truncated-file", severity="error", about="A file must end as Parquet does.", remedy=EXPORT_AGAIN),
    Rule(
        name="not-parquet",
        severity="error",
        about="A file that is named or given as Parquet must be Parquet.",
        remedy="export the table as Parquet",
    ),
    Rule(
        name="changed-file",
        severity="error",
        about="No file may change while it is read.",
        remedy="publish when the export is complete",
    ),
    Rule(
        name="too-many-rows",
        severity="error",
        about="All files together must not claim more rows than the limit.",
        remedy="check what was exported, or raise the limit",
        limit=50_000_000,
        unit="rows",
    ),
    Rule(
        name="reader-failed",
        severity="error",
        about="Reading must end within its limits of memory, disk and time; it is done in a process of its own.",
        remedy="look for a damaged or enormous file",
    ),
    Rule(
        name="overtaken",
        severity="error",
        about="A drop of the inbox that fails for no fault of its own is set aside when a newer one has gone live.",
        remedy="move it back into the inbox to publish it after all, over what is newer",
    ),
)

COLUMN_RULES: tuple[Rule, ...] = (
    Rule(
        name="unrecognised-file",
        severity="error",
        about="Every file must be one of the tables, by its columns.",
        remedy="unload with headers (Snowflake: HEADER = TRUE)",
    ),
    Rule(name="missing-column", severity="error", about="A table must have all of its columns."),
    Rule(
        name="missing-figure",
        severity="error",
        about="A housing figure that answers name must be there; accepted, it is published as null.",
        remedy="export it, or publish it as null with --accept missing-figure",
        override=True,
    ),
    Rule(
        name="ambiguous-column",
        severity="error",
        about="No two columns may be told apart by case or spaces alone.",
        remedy="export each column once",
    ),
    Rule(name="ignored-column", severity="info", about="Columns that nothing needs are ignored."),
    Rule(name="not-in-v1", severity="info", about="A housing year that answers of v1 do not name is ignored."),
    Rule(
        name="year-in-both",
        severity="warning",
        about="Of a year that is there as CENSUS and as FX, the CENSUS column is taken.",
    ),
    Rule(
        name="missing-table",
        severity="error",
        about="Locations, population and housing must be in the drop, or in the release before.",
    ),
    Rule(name="carried-table", severity="info", about="Tables that the drop does not bring stay as they are."),
    Rule(name="dropped-table", severity="warning", about="Tables that --drop-table withdraws are left out."),
)
