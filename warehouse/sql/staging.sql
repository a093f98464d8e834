-- name: claimed_rows
-- How many rows a file says that it has, in all and in its row groups: whichever is more. Its footer is all that is read.
SELECT greatest(whole, parts) FROM
    (SELECT sum(num_rows) AS whole FROM parquet_file_metadata({file})),
    (SELECT coalesce(sum(rows), 0) AS parts FROM (
        SELECT max(row_group_num_rows) AS rows FROM parquet_metadata({file}) GROUP BY row_group_id))

-- name: conversions
-- Macros that turn a value of any exported type into ours, or into NULL where it is not one.
-- Text is trimmed, of no-break spaces too, and empty text is no value. A fraction is never rounded; NaN and infinity
-- are no numbers, nor are days beyond four-digit years days, or a book a name.
CREATE OR REPLACE MACRO clean_text(v) AS nullif(trim(v::VARCHAR, E' \t\r\n' || chr(160)), '');
CREATE OR REPLACE MACRO short_text(v) AS CASE WHEN length(clean_text(v)) <= 10000 THEN clean_text(v) END;
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

-- name: distrust_statistics
-- What a file says of its values is no reason to skip rows, or to leave out a comparison: it may be wrong.
SET disabled_optimizers = 'filter_pushdown,statistics_propagation'

-- name: trust_statistics
-- Those of staged tables are our own.
RESET disabled_optimizers

-- name: describe_extract
-- Columns and types of one file. Old writers mark text as bare bytes; key=value folders are ours to read.
DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false, binary_as_string = true)

-- name: column_names
-- Every name in the schema of one file, as it spells them.
SELECT name FROM parquet_schema(?)

-- name: footer_marks
-- What the writer of one file noted in its footer.
SELECT key, value FROM parquet_kv_metadata(?)

-- name: create_staged
-- The staged form of a table: our columns, then what could not be converted (as text), file and row number.
CREATE OR REPLACE TEMP TABLE {staged} ({columns})

-- name: stage_extract
-- One file, or one year column of a wide file, into the staged form of its table.
INSERT INTO {staged}
SELECT {values}, {unreadable}, ? AS _file, {row} AS _row
FROM read_parquet(?, hive_partitioning = false, binary_as_string = true, file_row_number = {numbered})
WHERE {condition}
