-- name: any_offends
-- For each predicate, whether it holds for any row.
SELECT {predicates} FROM {staged}

-- name: offends_unreadable_value
-- Whether a value could not be converted to the column's type.
_unreadable_{column} IS NOT NULL

-- name: rule_unreadable_value
-- Values that do not fit the column: text in a number, a ZIP code of four digits, a fraction of a person.
SELECT _file, count(*), min_by('row ' || _row || ': ' || _unreadable_{column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_missing_value
-- Whether the value is missing. A value that could not be converted is not missing.
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: rule_missing_value
-- Rows that lack a required value.
SELECT _file, count(*), min_by('row ' || _row || {identity}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_odd_name
-- Whether a name is too long for a query, or has control characters that would break or reverse a line of output.
length({column}) > 95 OR regexp_matches({column}, '[\x{00}-\x{1f}\x{7f}-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]')

-- name: rule_odd_name
-- Names that are too long for a query, or have control characters.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || left({column}, 40), _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_out_of_range
-- Whether a figure or a coordinate is outside its range.
{column} < {minimum} OR {column} > {maximum}

-- name: rule_out_of_range
-- Figures and coordinates outside their range.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || {column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_unknown_figure
-- Whether a figure is one that sources write for "unknown".
{column} < {bound}

-- name: rule_unknown_figure
-- Figures that sources write for "unknown". They are published as NULL.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || {column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: rule_duplicate_key
-- Rows with the same key, in all files of the table together. Only the few keys that are shown get a description: one for
-- each of millions of keys would not fit into memory.
WITH repeated AS MATERIALIZED (
    SELECT {key}, count(*) AS copies, min(_row) AS first_row
    FROM {staged} WHERE {known} GROUP BY {key} HAVING count(*) > 1
), shown AS MATERIALIZED (
    SELECT {key}, first_row FROM repeated ORDER BY first_row, {key} LIMIT 5
)
SELECT min(_file), (SELECT sum(copies) FROM repeated), list(described ORDER BY _file, first_row) FROM (
    SELECT min(_file) AS _file, min(_row) AS first_row,
           {described} || ' in ' || array_to_string(min_by(_file || ' row ' || _row, (_file, _row), 4), ', ') AS described
    FROM {staged} SEMI JOIN shown USING ({key}) GROUP BY {key}
) HAVING count(*) > 0

-- name: rule_unknown_status
-- Alias rows with a status that the postal service does not use.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || usps_status, _row, 5)
FROM {staged} WHERE lower(usps_status) NOT IN ('primary', 'acceptable', 'unacceptable') GROUP BY _file ORDER BY _file

-- name: rule_orphan_rows
-- Rows whose ZIP code has no location. No answer could show them, so they are left out.
SELECT min(_file), count(DISTINCT zip_code), min_by(DISTINCT zip_code, zip_code, 5)
FROM {staged} WHERE zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)
HAVING count(*) > 0

-- name: rule_empty_figure
-- Rows of a long population table that have no figure. These years are left out.
SELECT _file, count(*), min_by('row ' || _row || {identity}, _row, 5)
FROM {staged} WHERE tot_population IS NULL AND _unreadable_tot_population IS NULL GROUP BY _file ORDER BY _file

-- name: rule_empty_column
-- Columns without any value.
SELECT min(_file), count(*), []::VARCHAR[] FROM {staged}
HAVING count(*) > 0 AND count({column}) = 0 AND count(_unreadable_{column}) = 0

-- name: count_staged
-- The number of rows of a staged table.
SELECT count(*) FROM {staged}

-- name: distinct_cities
-- Every city of every state, as spelled in the locations.
SELECT DISTINCT state_code, city_name FROM {locations}
WHERE state_code IS NOT NULL AND city_name IS NOT NULL ORDER BY ALL

-- name: rule_unmapped_value
-- Words that the vocabulary lacks, each with its number of rows.
SELECT min(_file), sum(copies), list(described ORDER BY copies DESC, described)[:5]
FROM (SELECT min(_file) AS _file, count(*) AS copies, left({column}, 60) || ' (' || count(*) || ' rows)' AS described
      FROM {staged} WHERE {column} IS NOT NULL AND {folded} NOT IN ({words}) GROUP BY {column})
HAVING count(*) > 0

-- name: rule_unplaced_project
-- Projects without a city and state, and without a ZIP code that has a location.
SELECT _file, count(*), min_by('row ' || _row || {identity}, _row, 5)
FROM {staged} WHERE ({city} IS NULL OR state_code IS NULL)
    AND coalesce(zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL), true)
GROUP BY _file ORDER BY _file

-- name: rule_zip_without_location
-- Projects in a ZIP code that has no location.
SELECT min(_file), count(*), min_by(DISTINCT zip_code, zip_code, 5)
FROM {staged} WHERE zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)
HAVING count(*) > 0

-- name: rule_other_state
-- Projects whose state differs from the state of their ZIP code.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ': ' || state_code || ', but ' || zip_code || ' is in '
                               || zip_state, _row, 5)
FROM (SELECT s.*, l.state_code AS zip_state FROM {staged} s JOIN {locations} l ON s.zip_code = l.zip_code)
WHERE state_code <> zip_state GROUP BY _file ORDER BY _file

-- name: rule_implausible_project
-- Projects that end before they start, or have more affordable units than units in total.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ': ' || concat_ws(', ',
           CASE WHEN completion_date < start_date THEN start_date || ' to ' || completion_date END,
           CASE WHEN total_units >= 0 AND affordable_units > total_units
                THEN affordable_units || ' of ' || total_units || ' units affordable' END), _row, 5)
FROM {staged} WHERE completion_date < start_date OR (total_units >= 0 AND affordable_units > total_units)
GROUP BY _file ORDER BY _file

-- name: folded_text
-- A word in the form of the vocabulary: lower case, only letters and digits, one space between words.
trim(regexp_replace(lower(strip_accents({value})), '[^a-z0-9]+', ' ', 'g'))
