-- name: any_offends
-- For each predicate whether any row offends.
SELECT {predicates} FROM {staged}

-- name: offends_unreadable_value
-- Whether a value is not what the column means.
_unreadable_{column} IS NOT NULL

-- name: rule_unreadable_value
-- Values that are not what the column means: text in a number, four digits for a ZIP code, a fraction of a person.
SELECT _file, count(*), min_by('row ' || _row || ': ' || _unreadable_{column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_missing_value
-- Whether a value is missing.
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: rule_missing_value
-- Rows without a value that every row needs.
SELECT _file, count(*), min_by('row ' || _row || {identity}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_odd_name
-- Whether a name is one that no query could ask for, or that breaks or turns a line wherever it is shown.
length({column}) > 95 OR regexp_matches({column}, '[\x{00}-\x{1f}\x{7f}-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]')

-- name: rule_odd_name
-- Names that no query could ask for, or that would break or turn a line wherever they are shown.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || left({column}, 40), _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_out_of_range
-- Whether a figure or a coordinate is below or above what can be.
{column} < {minimum} OR {column} > {maximum}

-- name: rule_out_of_range
-- Figures and coordinates below or above what can be.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || {column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: offends_unknown_figure
-- Whether a figure is what a source writes for "unknown".
{column} < {bound}

-- name: rule_unknown_figure
-- Figures that a source writes for "unknown"; they are published as NULL.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || {column}, _row, 5)
FROM {staged} WHERE {offends} GROUP BY _file ORDER BY _file

-- name: rule_duplicate_key
-- Rows that share the columns that must tell them apart, over all files of the table. Only the few keys that are shown
-- are described: text about each of millions of keys would not fit into memory.
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
-- Alias rows whose status the postal service does not have.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ' has ' || usps_status, _row, 5)
FROM {staged} WHERE lower(usps_status) NOT IN ('primary', 'acceptable', 'unacceptable') GROUP BY _file ORDER BY _file

-- name: rule_orphan_rows
-- Rows of a ZIP code that has no location: nothing could show them, so they are left out.
SELECT min(_file), count(DISTINCT zip_code), min_by(DISTINCT zip_code, zip_code, 5)
FROM {staged} WHERE zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)
HAVING count(*) > 0

-- name: rule_empty_figure
-- Rows of the long population shape without a figure; such years are left out.
SELECT _file, count(*), min_by('row ' || _row || {identity}, _row, 5)
FROM {staged} WHERE tot_population IS NULL AND _unreadable_tot_population IS NULL GROUP BY _file ORDER BY _file

-- name: rule_empty_column
-- Columns in which no row has a value.
SELECT min(_file), count(*), []::VARCHAR[] FROM {staged}
HAVING count(*) > 0 AND count({column}) = 0 AND count(_unreadable_{column}) = 0

-- name: count_staged
-- Rows of a staged table.
SELECT count(*) FROM {staged}

-- name: distinct_cities
-- Every city of every state, as locations spell it.
SELECT DISTINCT state_code, city_name FROM {locations}
WHERE state_code IS NOT NULL AND city_name IS NOT NULL ORDER BY ALL

-- name: rule_unmapped_value
-- Words whose meaning is not known; each with how many rows have it.
SELECT min(_file), sum(copies), list(described ORDER BY copies DESC, described)[:5]
FROM (SELECT min(_file) AS _file, count(*) AS copies, left({column}, 60) || ' (' || count(*) || ' rows)' AS described
      FROM {staged} WHERE {column} IS NOT NULL AND {folded} NOT IN ({words}) GROUP BY {column})
HAVING count(*) > 0

-- name: rule_unplaced_project
-- Projects without city and state, and without a ZIP code that could tell them.
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
-- Projects whose state is not the one that their ZIP code is in.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ': ' || state_code || ', but ' || zip_code || ' is in '
                               || zip_state, _row, 5)
FROM (SELECT s.*, l.state_code AS zip_state FROM {staged} s JOIN {locations} l ON s.zip_code = l.zip_code)
WHERE state_code <> zip_state GROUP BY _file ORDER BY _file

-- name: rule_implausible_project
-- Projects that end before they begin, or have more affordable units than units.
SELECT _file, count(*), min_by('row ' || _row || {identity} || ': ' || concat_ws(', ',
           CASE WHEN completion_date < start_date THEN start_date || ' to ' || completion_date END,
           CASE WHEN total_units >= 0 AND affordable_units > total_units
                THEN affordable_units || ' of ' || total_units || ' units affordable' END), _row, 5)
FROM {staged} WHERE completion_date < start_date OR (total_units >= 0 AND affordable_units > total_units)
GROUP BY _file ORDER BY _file

-- name: folded_text
-- A word as the vocabulary has it: lower case, letters and digits, one space between words.
trim(regexp_replace(lower(strip_accents({value})), '[^a-z0-9]+', ' ', 'g'))
