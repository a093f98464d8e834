-- name: any_offends
-- The number of rows, and for each rule, whether any of them fails.
SELECT count(*), {predicates} FROM {staged}

-- name: faults_where
-- The rows for which a predicate holds: file, row number, the rest of the key, the value, its column in the file if that
-- is another, and the likely cause.
SELECT _file AS file, _row AS "row", left({identity}, 200) AS key, left({value}, 200) AS value, {source} AS source,
       {cause} AS cause
FROM {staged} WHERE {offends}

-- name: faults_of_table
-- Failing rows, as rows of a file for the data engineer: with their table, and the column by the name in the file.
SELECT '{table}' AS "table", file, "row", key, coalesce(source, nullif('{column}', '')) AS "column", value, cause
FROM ({faults})

-- name: sum_up_rows
-- Failing rows, by file and likely cause, with the first of them.
SELECT file, cause, count(*), min_by({'row': "row", 'key': key, 'value': value, 'source': source}, "row", 200)
FROM ({faults}) GROUP BY file, cause ORDER BY file, cause

-- name: sum_up_values
-- How many different values failing rows have, with the first of them.
SELECT min(file), NULL, count(DISTINCT value), min_by(DISTINCT value, value, 5) FROM ({faults}) HAVING count(*) > 0

-- name: sum_up_words
-- Values of failing rows, each with its number of rows.
SELECT min(file), NULL, sum(copies), list(described ORDER BY copies DESC, described)[:5]
FROM (SELECT min(file) AS file, count(*) AS copies, left(value, 60) || ' (' || count(*) || ' rows)' AS described
      FROM ({faults}) GROUP BY value)
HAVING count(*) > 0

-- name: occurs_duplicate_key
-- Whether any two rows have the same key.
EXISTS (SELECT 1 FROM {staged} WHERE {known} GROUP BY {key} HAVING count(*) > 1)

-- name: sum_up_duplicates
-- Rows with the same key, in all files of the table together. Only the few keys that are shown get a description: one for
-- each of millions of keys would not fit into memory.
WITH repeated AS MATERIALIZED (
    SELECT {key}, count(*) AS copies, min(_row) AS first_row
    FROM {staged} WHERE {known} GROUP BY {key} HAVING count(*) > 1
), shown AS MATERIALIZED (
    SELECT {key}, first_row FROM repeated ORDER BY first_row, {key} LIMIT 5
)
SELECT min(_file), NULL, (SELECT sum(copies) FROM repeated), list(described ORDER BY _file, first_row) FROM (
    SELECT min(_file) AS _file, min(_row) AS first_row,
           {described} || ' in ' || array_to_string(min_by(_file || ' row ' || _row, (_file, _row), 4), ', ') AS described
    FROM {staged} SEMI JOIN shown USING ({key}) GROUP BY {key}
) HAVING count(*) > 0

-- name: sum_up_empty_column
-- The rows of a table, all of which lack a column.
SELECT min(_file), NULL, count(*), []::VARCHAR[] FROM {staged}

-- name: value_of_implausible_project
-- Why a project is implausible, in words.
concat_ws(', ', CASE WHEN completion_date < start_date THEN start_date || ' to ' || completion_date END,
          CASE WHEN total_units >= 0 AND affordable_units > total_units
               THEN affordable_units || ' of ' || total_units || ' units affordable' END)

-- name: distinct_cities
-- Every city of every state, as spelled in the locations.
SELECT DISTINCT state_code, city_name FROM {locations}
WHERE state_code IS NOT NULL AND city_name IS NOT NULL ORDER BY ALL

-- name: folded_text
-- A word in the form of the vocabulary: lower case, only letters and digits, one space between words.
trim(regexp_replace(lower(strip_accents({value})), '[^a-z0-9]+', ' ', 'g'))

-- name: write_failures
-- Writes failing rows to a file. Columns that do not apply to a rule are NULL.
COPY (
    SELECT NULL::VARCHAR AS rule, NULL::VARCHAR AS "table", NULL::VARCHAR AS file, NULL::BIGINT AS "row",
           NULL::VARCHAR AS key, NULL::VARCHAR AS "column", NULL::VARCHAR AS value, NULL::VARCHAR AS cause WHERE false
    UNION ALL BY NAME (SELECT '{rule}' AS rule, * FROM ({rows}) LIMIT {most})
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: failures_beyond
-- Whether there are more failing rows than a file may hold.
SELECT true FROM ({rows}) LIMIT 1 OFFSET {most}
