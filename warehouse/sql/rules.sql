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

-- name: offends_unreadable_value
-- Whether a value could not be converted: text in a number, a ZIP code of four digits, a fraction of a person.
_unreadable_{column} IS NOT NULL

-- name: offends_missing_value
-- Whether the value is missing. A value that could not be converted is not missing.
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: offends_odd_name
-- Whether a name is too long for a query, or has control characters that would break or reverse a line of output.
length({column}) > {longest} OR regexp_matches({column}, '[{control}]')

-- name: offends_zero_coordinate
-- Whether a coordinate is 0, or too close to it for a place in the country.
abs({column}) < {zero}

-- name: offends_garbled_name
-- Whether a name has traces of text in the wrong encoding (UTF-8 read as Latin-1, characters that were replaced), or of
-- an escape (HTML, URL, JSON).
regexp_matches({column}, '\x{FFFD}|[ÃÂ]|â€|[?]|&(#x?)?[0-9a-zA-Z]+;|%[0-9A-F]{2}|[a-zA-Z][+][a-zA-Z]|''''|\\[ux][0-9a-fA-F]{2}|^["“''].*["”'']$')

-- name: offends_placeholder_name
-- Whether a name is a word that programs write for "none", for a test or for a total, or a number of three or more digits.
-- True and Sample are places.
regexp_full_match({column}, '(?i)nan|none|null|nil|n/?a|#n/a|undefined|unknown|missing|not available|tbd|x{3,}|-+|[.]+|'
                  || '[0-9.,]{3,}|(city|county)[ _]name|test([ _-]?[0-9]+|[ _-]?(city|county|data|row))?|dummy|example|'
                  || 'deleted|void|((grand|sub)[ -]?)?totals?|usa|united states|all( other)?|others?')

-- name: offends_state_in_name
-- Whether a name ends in the state of its own row, as answers print it, or after a comma in the full name of a state.
(regexp_extract(upper({column}), '[,(] *([A-Z]{2})[ )]*$', 1) = state_code OR regexp_matches({column}, ', *[A-Z][A-Za-z. ]{2,}$'))

-- name: offends_unassigned_zip
-- Whether the Postal Service assigned the first three digits of a ZIP code to no state.
left({column}, 3) NOT IN ({prefixes})

-- name: offends_unknown_state
-- Whether no ZIP code has the state code.
{column} NOT IN ({choices})

-- name: offends_out_of_range
-- Whether a figure or a coordinate is outside its range.
{column} < {minimum} OR {column} > {maximum}

-- name: offends_unknown_figure
-- Whether a figure is one that sources write for "unknown". It is published as NULL.
{column} < {bound}

-- name: offends_unknown_status
-- Whether the status of an alias is one that the postal service does not use.
lower({column}) NOT IN ({choices})

-- name: offends_implausible_project
-- Whether a project ends before it starts, or has more affordable units than units in total.
completion_date < start_date OR (total_units >= 0 AND affordable_units > total_units)

-- name: offends_unplaced_project
-- Whether a project has neither a city and state nor a ZIP code with a location. Values that could not be converted are
-- not missing.
({city} IS NULL OR state_code IS NULL)
    AND coalesce(zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL), true)
    AND _unreadable_city_name IS NULL AND _unreadable_state_code IS NULL AND _unreadable_zip_code IS NULL

-- name: offends_unlocated_zip
-- Whether the ZIP code has no location.
zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)

-- name: offends_unmapped_value
-- Whether the vocabulary lacks the word.
{folded} NOT IN ({words})

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

-- name: faults_duplicate_key
-- Every row that shares its key with another row.
SELECT _file AS file, _row AS "row", left({described}, 200) AS key, NULL AS value, NULL AS source, NULL AS cause
FROM {staged}
SEMI JOIN (SELECT {key} FROM {staged} WHERE {known} GROUP BY {key} HAVING count(*) > 1) USING ({key})

-- name: faults_other_state
-- Projects whose state differs from the state of their ZIP code.
SELECT s._file AS file, s._row AS "row", s.project_id AS key,
       s.state_code || ', but ' || s.zip_code || ' is in ' || l.state_code AS value, NULL AS source, NULL AS cause
FROM {staged} s JOIN {locations} l ON s.zip_code = l.zip_code WHERE s.state_code <> l.state_code

-- name: occurs_empty_column
-- Whether a column has no value, readable or not.
count({column}) = 0 AND count(_unreadable_{column}) = 0

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
