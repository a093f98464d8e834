-- name: unreadable_value
-- Every value must fit its column: ZIP codes have five digits, whole numbers have no fraction.
-- rule: offends concerns=every
-- finding: {count} value(s) of {table}.{column} are not {meaning}
-- remedy: correct them in the source and export again
_unreadable_{column} IS NOT NULL

-- name: missing_value
-- A required column must have a value in every row.
-- rule: offends concerns=required
-- finding: {count} row(s) of {table} have no {column}
-- remedy: add a value to every row
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: odd_name
-- City and county names and project ids must be short enough for a query, and have no invisible characters.
-- rule: offends concerns=names
-- finding: {count} value(s) of {table}.{column} are longer than {longest} characters or have invisible ones
-- remedy: correct them in the source and export again
length({column}) > {longest} OR regexp_matches({column}, '[{control}]')

-- name: zero_coordinate
-- A latitude or longitude between -0.5 and 0.5 is in no state. A 0 stands for an unknown place.
-- rule: offends concerns=coordinates limit=0
-- explains: point
-- finding: {count} value(s) of {table}.{column} are 0
-- remedy: leave unknown coordinates empty (NULL)
abs({column}) < {zero}

-- name: unassigned_zip
-- The first three digits of a ZIP code must be ones that the Postal Service assigned to a state.
-- rule: offends concerns=locations.zip_code limit=0
-- explains: zip state city
-- finding: {count} value(s) of {table}.{column} are no ZIP codes: no state has their first three digits
-- remedy: leave rows of totals and tests out; correct the others in the source
left({column}, 3) IN ({unassigned})

-- name: placeholder_name
-- City and county names must not be placeholders, numbers, or words for tests and totals.
-- rule: offends concerns=place_names limit=0
-- of: city
-- explains: city county alias
-- finding: {count} value(s) of {table}.{column} are placeholders, numbers, or words for tests and totals
-- remedy: leave missing names empty (NULL), and rows of tests and totals out
regexp_full_match({column}, '(?i)nan|none|null|nil|n/?a|#n/a|undefined|unknown|missing|not available|tbd|x{3,}|-+|[.]+|'
                  || '[0-9.,]{3,}|(city|county)[ _]name|test([ _-]?[0-9]+|[ _-]?(city|county|data|row))?|dummy|example|'
                  || 'deleted|void|((grand|sub)[ -]?)?totals?|usa|united states|all( other)?|others?')

-- name: garbled_name
-- City and county names must not be escaped, or decoded with the wrong encoding.
-- rule: offends concerns=place_names limit=0
-- explains: city county alias
-- finding: {count} value(s) of {table}.{column} were decoded with the wrong encoding, or are escaped
-- remedy: read and write text as UTF-8 throughout, without escaping it
regexp_matches({column}, '\x{FFFD}|[ÃÂ]|â€|[?]|&(#x?)?[0-9a-zA-Z]+;|%[0-9A-F]{2}|[a-zA-Z][+][a-zA-Z]|''''|\\[ux][0-9a-fA-F]{2}|^["“''].*["”'']$')

-- name: state_in_name
-- City and county names must not end in their state, as in `Stowe, VT`: answers have it beside the name.
-- rule: offends concerns=place_names limit=0
-- explains: city county alias
-- finding: {count} value(s) of {table}.{column} end in their state
-- remedy: export the name alone
(regexp_extract(upper({column}), '[,(] *([A-Z]{2})[ )]*$', 1) = state_code OR regexp_matches({column}, ', *[A-Z][A-Za-z. ]{2,}$'))

-- name: unknown_state
-- State codes must be those of states, territories and military areas that have ZIP codes.
-- rule: offends concerns=states limit=0
-- explains: state county point
-- finding: {count} value(s) of {table}.{column} are not codes of states or territories
-- remedy: correct them in the source and export again
{column} NOT IN ({choices})

-- name: out_of_range
-- Figures and coordinates must be plausible: not negative, not absurdly large.
-- rule: offends concerns=bounded
-- finding: {count} value(s) of {table}.{column} are outside {minimum} to {maximum}
-- remedy: correct them in the source and export again
{column} < {minimum} OR {column} > {maximum}

-- name: duplicate_key
-- No two rows may have the same key: ZIP code, ZIP code and year, or project id.
-- rule: faults concerns=rows occurs=occurs_duplicate_key summary=sum_up_duplicates
-- finding: {count} rows of {table} share their {key} with another row
-- remedy: keep one row for each key; check whether a file was delivered twice
SELECT _file AS file, _row AS "row", left({described}, 200) AS key, NULL AS value, NULL AS source, NULL AS cause
FROM {staged}
SEMI JOIN (SELECT {key} FROM {staged} WHERE {known} GROUP BY {key} HAVING count(*) > 1) USING ({key})

-- name: unknown_status
-- The status of an alias must be primary, acceptable or unacceptable.
-- rule: offends concerns=aliases.usps_status
-- finding: {count} row(s) of {table} have an unknown usps_status
-- remedy: use primary, acceptable or unacceptable
lower({column}) NOT IN ({choices})

-- name: orphan_rows
-- Figures and aliases of a ZIP code without a location are left out.
-- rule: offends concerns=of_locations severity=warning summary=sum_up_values
-- finding: {count} ZIP code(s) of {table} have no location and were left out
-- remedy: add them to the locations, if they exist
zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)

-- name: empty_figure
-- Rows of a long population table without a figure are left out.
-- rule: offends concerns=population.tot_population severity=warning
-- finding: {count} row(s) of {table} have no tot_population; those years were left out
-- remedy: leave the rows out of the export
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: blank_alias
-- Aliases without a name are left out.
-- rule: offends concerns=aliases.city_name severity=warning
-- finding: {count} row(s) of {table} have no {column} and were left out
-- remedy: leave the rows out of the export
{column} IS NULL AND _unreadable_{column} IS NULL

-- name: empty_column
-- A column without any value is null in answers that show it.
-- rule: occurs concerns=optional severity=warning summary=sum_up_empty_column
-- finding: no row of {table} has a {column}
-- remedy: check the export, if values were expected
count({column}) = 0 AND count(_unreadable_{column}) = 0

-- name: unknown_figure
-- A negative unit count of a project means unknown and is published as null.
-- rule: offends concerns=unknowable severity=warning
-- finding: {count} negative value(s) of {table}.{column} are published as null
-- remedy: leave unknown figures empty
{column} < {bound}

-- name: unmapped_status
-- A project status that the vocabulary lacks is answered as unknown, with the source's own word.
-- rule: offends concerns=words severity=warning summary=sum_up_words
-- finding: {count} row(s) of {table} have a {column} that the vocabulary lacks; it is answered as unknown
-- remedy: if it means a status that `forecast extracts statuses` lists, use a word listed there
{folded} NOT IN ({words})

-- name: unplaced_project
-- Projects without a city and state, and without a ZIP code that has a location, are left out.
-- rule: offends concerns=development_projects severity=warning
-- finding: {count} row(s) of {table} have no place that a query can name, and were left out
-- remedy: add a city and a state, or a ZIP code
({city} IS NULL OR state_code IS NULL)
    AND coalesce(zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL), true)
    AND _unreadable_city_name IS NULL AND _unreadable_state_code IS NULL AND _unreadable_zip_code IS NULL

-- name: zip_without_location
-- Projects in a ZIP code without a location are served, with a null county.
-- rule: offends concerns=development_projects.zip_code severity=warning summary=sum_up_values
-- finding: {count} ZIP code(s) of {table} have no location; the county of projects there is null
-- remedy: correct the ZIP codes, or add them to the locations
zip_code NOT IN (SELECT zip_code FROM {locations} WHERE zip_code IS NOT NULL)

-- name: other_state
-- Projects whose ZIP code is in another state than their own are served as they are.
-- rule: faults concerns=development_projects severity=warning
-- finding: {count} row(s) of {table} have a ZIP code in another state than their own
-- remedy: correct the ZIP code or the state
SELECT s._file AS file, s._row AS "row", s.project_id AS key,
       s.state_code || ', but ' || s.zip_code || ' is in ' || l.state_code AS value, NULL AS source, NULL AS cause
FROM {staged} s JOIN {locations} l ON s.zip_code = l.zip_code WHERE s.state_code <> l.state_code

-- name: implausible_project
-- Projects that end before they start, or have more affordable units than units, are served as they are.
-- rule: offends concerns=development_projects severity=warning value=value_of_implausible_project
-- finding: {count} row(s) of {table} end before they start, or have more affordable units than units in total
-- remedy: correct the dates or the units in the source
completion_date < start_date OR (total_units >= 0 AND affordable_units > total_units)
