"""Rules on the files of a drop and their columns, checked while files are collected and recognised."""

from warehouse.rules.rule import EXPORT_AGAIN, Rule, Subject

# What an old table also makes look wrong.
_STALE: tuple[Subject, ...] = ("figures", "total", "coverage", "column", "records")

FILE_RULES: tuple[Rule, ...] = (
    Rule(
        name="ignored-file",
        severity="info",
        about="Files and folders whose names start with _ or . or end in .crc are ignored.",
    ),
    Rule(
        name="hidden-rows",
        about="A Parquet file with rows must not have an ignored name, or be in a folder with one.",
        remedy="rename it so that the name begins with a letter or digit, or remove it from the drop",
    ),
    Rule(
        name="foreign-file",
        severity="warning",
        about="A non-Parquet file beside the extracts, such as a checksum or a manifest, is ignored.",
    ),
    Rule(
        name="unread-table",
        about="A drop must not hold a non-Parquet file that may be a table that the drop lacks.",
        remedy="export the table as Parquet, or leave the file out",
    ),
    Rule(
        name="table-format",
        about="A Delta, Iceberg or Hudi table folder is not an extract: it also holds files of deleted rows.",
        remedy="unload the current rows as plain Parquet: COPY (FROM delta_scan('TABLE')) TO 'housing.parquet' in "
        "DuckDB (iceberg_scan for Iceberg), or spark.table('TABLE').write.parquet('FOLDER') in Spark",
    ),
    Rule(
        name="link-out-of-drop",
        about="A link must not lead out of the drop.",
        remedy="copy its target into the drop",
    ),
    Rule(name="unreadable-file", about="Every file must be readable Parquet.", remedy=EXPORT_AGAIN),
    Rule(name="truncated-file", about="A file must end as Parquet does, with the bytes PAR1.", remedy=EXPORT_AGAIN),
    Rule(
        name="not-parquet",
        about="A file with a Parquet name, or listed by name, must be Parquet, not an archive, CSV or other format.",
        remedy="export the table as Parquet",
    ),
    Rule(
        name="unfinished-file",
        about="A Parquet file must not have a name such as .tmp, .part or .crdownload, nor be in a folder such as "
        "_temporary.",
        remedy="wait until it is complete, then rename it or leave it out",
    ),
    Rule(
        name="changed-file",
        about="A file must not change while it is read, or while its drop is held.",
        remedy="publish after the export is complete",
    ),
    Rule(
        name="mixed-months",
        about="All files and rows of a drop must have the same MONTH_CODE, the same year= and month= folders, and "
        "days in UPDATED_AT that are at most ten days apart.",
        remedy="deliver files of one month only",
        override=True,
    ),
    Rule(
        name="wrong-folder",
        about="The year= and month= folders of a file must agree with its UPDATED_AT and MONTH_CODE, and with its "
        "column year if all rows have the same.",
        remedy="check which month was delivered",
        override=True,
    ),
    Rule(
        name="unreadable-date",
        severity="warning",
        about="Values of UPDATED_AT must be dates from 2000 to 2100, and those of MONTH_CODE numbers from 1 to 12.",
        remedy="export UPDATED_AT as a date (2026-10-05) and MONTH_CODE as a number (10), "
        "so that an old export is recognised",
    ),
    Rule(
        name="future-date",
        about="No UPDATED_AT may be more than a month after today.",
        remedy="correct the date: later drops would be refused as older than this one",
        override=True,
        explains=("date",),
    ),
    Rule(
        name="missing-date",
        applies="release",
        severity="warning",
        about="A table that has UPDATED_AT or MONTH_CODE in the current release must have one of them again.",
        remedy="export UPDATED_AT or MONTH_CODE again, so that an old export is recognised",
    ),
    Rule(
        name="too-many-rows",
        about="The row counts in the footers of all files must not add up to more than the limit.",
        remedy="check the export, or raise the limit",
        limit=50_000_000,
        unit="rows",
    ),
    Rule(
        name="oversized-file",
        about="A file must not exceed the limits on columns, row groups, footer bytes and unpacked bytes.",
        remedy="check the export: one table, with its own columns only",
    ),
    Rule(
        name="reader-failed",
        about="A drop must be read within limits on memory, disk and time, in a separate process.",
        remedy="look for a damaged or very large file",
    ),
    Rule(
        name="several-drops",
        about="A folder must hold one drop, not several that bring the same rows.",
        remedy="give the folder of one drop, not the folder above",
    ),
    Rule(
        name="overtaken",
        applies="inbox",
        about="An inbox drop that failed or was held does not replace a newer drop that went live in the meantime.",
        remedy="to replace the newer one, move this drop back into the inbox",
    ),
    Rule(
        name="already-held",
        applies="inbox",
        about="An inbox drop must not have the same contents as a held drop.",
        remedy="approve or discard the held drop",
    ),
    Rule(
        name="required-table",
        applies="inbox",
        about="An inbox drop must contain the tables that FORECAST_INBOX_TABLES names.",
        remedy="deliver all tables of a month together",
        override=True,
    ),
    Rule(
        name="delivered-before",
        applies="release",
        about="A table of the drop must not be the same as in an older release, if newer releases replaced it.",
        remedy="deliver the newest export; to go back to a release, use `forecast extracts rollback`",
        override=True,
        explains=("date", *_STALE),
    ),
    Rule(
        name="older-than-current",
        applies="release",
        about="The date of a table (UPDATED_AT, MONTH_CODE) must not be before that of the newest release with one.",
        remedy="deliver the newest export; to go back to a release, use `forecast extracts rollback`",
        override=True,
        of=("date",),
        explains=_STALE,
    ),
    Rule(
        name="unchanged-table",
        applies="release",
        severity="warning",
        about="A table with a new date has the rows of the current release, while other tables changed.",
        remedy="check whether it was exported again",
    ),
)

COLUMN_RULES: tuple[Rule, ...] = (
    Rule(
        name="unrecognised-file",
        about="Every file must have the columns of a table.",
        remedy="unload with headers (Snowflake: HEADER = TRUE)",
    ),
    Rule(
        name="missing-column",
        about="Every file must have all columns of its table, also those that may be NULL.",
        remedy="export the missing columns under these names",
    ),
    Rule(
        name="missing-figure",
        about="Every housing figure in the answers needs a column. If accepted, a missing one is published as null.",
        remedy="export it",
        override=True,
        explains=("column",),
    ),
    Rule(
        name="unlike-parts",
        about="All files of a wide population table must have the same years, unless they have none in common.",
        remedy="export all files again, with one statement",
        override=True,
        explains=("coverage", "total"),
    ),
    Rule(
        name="ambiguous-column",
        about="Two column names must not differ only in case or spaces.",
        remedy="export each column once",
    ),
    Rule(name="ignored-column", severity="info", about="Columns that no table needs are ignored."),
    Rule(name="not-in-v1", severity="info", about="A housing year that the v1 answers lack is ignored."),
    Rule(
        name="year-in-both",
        severity="warning",
        about="If a year has both a CENSUS and an FX column, the CENSUS column is used.",
    ),
    Rule(
        name="missing-table",
        about="Locations, population and housing must be in the drop or in the current release.",
        remedy="add the file of the table",
    ),
    Rule(
        name="carried-table",
        applies="release",
        severity="info",
        about="Tables that the drop lacks stay as in the current release.",
    ),
    Rule(
        name="dropped-table",
        applies="release",
        severity="warning",
        about="Tables withdrawn by --drop-table are left out.",
    ),
)
