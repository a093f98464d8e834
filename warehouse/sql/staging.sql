-- name: conversions
-- Macros that convert an exported value to our type, or to NULL if it does not fit.
-- Text is trimmed, including no-break spaces; empty text is NULL. A fraction is never rounded. NaN and infinity are not
-- numbers. A date must have a year of four digits. A text that is too long does not fit, nor do bytes that are not UTF-8.
CREATE OR REPLACE MACRO clean_text(v) AS nullif(trim(v::VARCHAR, E' \t\r\n' || chr(160)), '');
CREATE OR REPLACE MACRO text_of_bytes(v) AS TRY(decode(v));
CREATE OR REPLACE MACRO shown_bytes(v) AS coalesce(text_of_bytes(v), v::VARCHAR);
CREATE OR REPLACE MACRO short_text(v) AS CASE WHEN length(clean_text(v)) <= {longest} THEN clean_text(v) END;
CREATE OR REPLACE MACRO digits_of_text(v) AS
    CASE WHEN regexp_full_match(clean_text(v), '[0-9]{5}') THEN clean_text(v) END;
CREATE OR REPLACE MACRO digits_of_whole(v) AS
    CASE WHEN v BETWEEN 0 AND 99999 THEN lpad(v::BIGINT::VARCHAR, 5, '0') END;
CREATE OR REPLACE MACRO digits_of_fraction(v) AS
    CASE WHEN v BETWEEN 0 AND 99999 AND v = trunc(v) THEN lpad(v::BIGINT::VARCHAR, 5, '0') END;
CREATE OR REPLACE MACRO state_of_text(v) AS
    CASE WHEN regexp_full_match(upper(clean_text(v)), '[A-Z]{2}') THEN upper(clean_text(v)) END;
CREATE OR REPLACE MACRO whole_of_whole(v) AS TRY_CAST(v AS BIGINT);
CREATE OR REPLACE MACRO whole_of_fraction(v) AS
    CASE WHEN isfinite(v::DOUBLE) AND v = trunc(v) AND abs(v) < 9e15 THEN v::BIGINT END;
CREATE OR REPLACE MACRO whole_of_text(v) AS
    CASE WHEN regexp_full_match(clean_text(v), '[+-]?[0-9]{1,18}([.]0+)?')
         THEN TRY_CAST(split_part(clean_text(v), '.', 1) AS BIGINT) END;
CREATE OR REPLACE MACRO real_of_number(v) AS
    CASE WHEN isfinite(v::DOUBLE) THEN v::DOUBLE END;
CREATE OR REPLACE MACRO real_of_text(v) AS
    CASE WHEN isfinite(TRY_CAST(clean_text(v) AS DOUBLE)) THEN TRY_CAST(clean_text(v) AS DOUBLE) END;
CREATE OR REPLACE MACRO date_of_any(v) AS
    CASE WHEN TRY_CAST(v AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN TRY_CAST(v AS DATE) END;

-- name: keep_first_rows
-- Removes rows that share their key with an earlier one. Their drop is refused; its comparison counts each key once.
DELETE FROM {staged} WHERE rowid NOT IN (SELECT min(rowid) FROM {staged} GROUP BY {key})

-- name: distrust_statistics
-- The statistics in a raw file may be wrong, so DuckDB must not skip rows or comparisons because of them.
SET disabled_optimizers = 'filter_pushdown,statistics_propagation'

-- name: trust_statistics
-- The statistics of staged tables are DuckDB's own, so they can be used.
RESET disabled_optimizers

-- name: describe_extract
-- Columns and types of one file. We read key=value folders ourselves.
DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)

-- name: column_types
-- Every name in the schema of one file, as spelled there, with the number of columns inside, and its type in the words of
-- DuckDB if the file declares one that DuckDB may read as another: DuckDB has no FLOAT16, its DECIMAL has at most 38 digits,
-- and it ignores some types of writers that leave out the older notation (converted_type).
SELECT name, coalesce(num_children, 0), CASE
    WHEN logical_type LIKE 'Float16%' THEN 'FLOAT16'
    WHEN converted_type = 'DECIMAL' OR logical_type LIKE 'Decimal%' THEN printf('DECIMAL(%s,%s)',
        coalesce(precision::VARCHAR, regexp_extract(logical_type, 'precision=([0-9]+)', 1)),
        coalesce(scale::VARCHAR, nullif(regexp_extract(logical_type, 'scale=([0-9]+)', 1), ''), '0'))
    WHEN converted_type IS NOT NULL THEN NULL
    WHEN logical_type LIKE 'Date%' THEN 'DATE'
    WHEN logical_type LIKE 'Json%' THEN 'JSON'
    WHEN logical_type LIKE 'Bson%' THEN 'BSON'
    WHEN logical_type LIKE 'Int%isSigned=0)' AND type = 'INT32' THEN 'UINTEGER'
    WHEN logical_type LIKE 'Int%isSigned=0)' THEN 'UBIGINT'
END
FROM parquet_schema(?)

-- name: first_row
-- Reads something of each of these columns, which fails if one is encrypted.
SELECT {columns} FROM read_parquet(?, hive_partitioning = false) LIMIT 1

-- name: footer_marks
-- The key-value metadata in the footer of one file.
SELECT key, value FROM parquet_kv_metadata(?)

-- name: dates_of_file
-- The month of a file: first and last day, how many days, months, and the year if all rows have the same. Then, for days
-- and for months, how many values are invalid, with the first and the last of these.
SELECT min(day) FILTER (dated), max(day) FILTER (dated), count(DISTINCT day) FILTER (dated),
       list(DISTINCT month) FILTER (numbered), CASE WHEN min(year) = max(year) THEN min(year) END,
       count(day_text) FILTER (NOT dated), min(day_text) FILTER (NOT dated), max(day_text) FILTER (NOT dated),
       count(month_text) FILTER (NOT numbered), min(month_text) FILTER (NOT numbered),
       max(month_text) FILTER (NOT numbered)
FROM (SELECT *, coalesce(day BETWEEN DATE '2000-01-01' AND DATE '2100-01-01', false) AS dated,
             coalesce(month BETWEEN 1 AND 12, false) AS numbered
      FROM (SELECT {day} AS day, {daytext} AS day_text, {month} AS month, {monthtext} AS month_text, {year} AS year
            FROM read_parquet(?, hive_partitioning = false)))

-- name: create_staged
-- The staged form of a table: our columns, then for each the text that could not be converted, then
-- the figure's own column (of a wide file), file and row number.
CREATE OR REPLACE TEMP TABLE {staged} ({columns})

-- name: stage_extract
-- Adds one file to the staged form of its table.
INSERT INTO {staged}
{rows}

-- name: extract_rows
-- The rows of one file as they are staged. The subquery converts each value once, and keeps the file's own beside it.
SELECT {names}, {unreadable}, NULL AS _source, $file AS _file, _row
FROM (SELECT {values}, {row} AS _row
      FROM read_parquet($path, hive_partitioning = false, file_row_number = {numbered}))

-- name: wide_rows
-- The rows of one wide file: for each year column, those of {years}. ZIP codes are converted once, not for each year.
WITH wide AS (
    SELECT {zip} AS _zip, {unreadable} AS _unreadable, {row} AS _row, {figures}
    FROM read_parquet($path, hive_partitioning = false, file_row_number = {numbered}))
{years}

-- name: year_rows
-- The rows of one year column of a wide file. An empty cell means no figure for the year, so it gives no row.
SELECT _zip, {year}, {figure}, _unreadable, NULL, {unreadable}, {source} AS _source, $file AS _file, _row
FROM wide
WHERE {condition}

-- name: shared_keys
-- How many keys of a staged table occur in several folders, and how many keys there are in the folder with the second
-- most: two folders cannot share more.
WITH held AS (
    SELECT DISTINCT {key}, folder
    FROM {staged} JOIN (SELECT unnest($files) AS _file, unnest($folders) AS folder) USING (_file))
SELECT (SELECT count(*) FROM (SELECT {key} FROM held GROUP BY {key} HAVING count(*) > 1)),
       (SELECT list(keys ORDER BY keys DESC)[2] FROM (SELECT count(*) AS keys FROM held GROUP BY folder))
