-- name: beyond_limit
-- Whether anything may be beyond a limit, without the factors of states and open figures. Usually nothing is, and summing up
-- takes longer than this.
SELECT true FROM ({totals}) WHERE measured > {limit} LIMIT 1

-- name: sum_up_totals
-- The states and figures beyond the limit of a rule on totals, worst first. Statements may omit `state` and `county`.
SELECT t.state, t.figure, t.measured, t.count,
       concat(t.figure, ' in ' || nullif(concat_ws(', ', n.county_name, coalesce(t.state, {country})), ''), ': ', t.detail)
FROM (SELECT NULL::VARCHAR AS state, NULL::INTEGER AS county WHERE false UNION ALL BY NAME ({totals})) t
JOIN known_figures f ON f.figure = t.figure
LEFT JOIN (SELECT county::INTEGER AS county, any_value(county_name) AS county_name FROM new_places GROUP BY county) n ON n.county = t.county
WHERE t.measured > {limit} * CASE WHEN t.state IS NULL THEN 1 ELSE {statefactor} END * CASE WHEN f.open THEN {openfactor} ELSE 1 END
ORDER BY t.county IS NOT NULL, t.state IS NOT NULL, t.measured DESC, t.state, t.figure

-- name: sum_up_cells
-- Failing figures as totals: how many ZIP codes, the state that most of them are in, and the largest of them.
SELECT figure, count(*) AS measured, count(*) AS count,
       format('{:,} ZIP codes{}, such as {} {}', count(*),
              CASE WHEN list_max(map_values(histogram(state))) > 0.7 * count(*) THEN format(', most in {}', mode(state)) ELSE '' END,
              max_by(zip_code, greatest(old, new)),
              max_by(coalesce(format('from {:,} to {:,}', old, new), format('with {:,}', new)), greatest(old, new))) AS detail
FROM ({faults}) GROUP BY figure

-- name: sum_up_places
-- Failing ZIP codes for each state, and some of them.
SELECT state, count(*), min_by(concat_ws(' ', zip_code, value), zip_code, 3) FROM ({faults}) GROUP BY state

-- name: places_by_state
-- The number of ZIP codes in each state.
SELECT state, count(*) FROM {among} GROUP BY state ORDER BY state

-- name: failing_totals
-- The figures of ZIP codes in the states and figures that a rule of totals names.
SELECT CASE WHEN p.ordinal < 10000 THEN 'population' ELSE 'housing' END AS "table",
       p.zip_code AS key, p.figure AS "column", p.new::VARCHAR AS value, p.state, p.old, p.new
FROM placed_figures p SEMI JOIN (SELECT state, figure FROM ({lines}) lines (state, figure, measured, number, detail)) l
    ON l.figure = p.figure AND coalesce(l.state, p.state) = p.state
WHERE p.new IS DISTINCT FROM p.old

-- name: failing_cells
-- The failing figures, as rows of a file for the data engineer.
SELECT CASE WHEN ordinal < 10000 THEN 'population' ELSE 'housing' END AS "table",
       zip_code AS key, figure AS "column", new::VARCHAR AS value, state, old, new
FROM ({faults})

-- name: failing_places
-- The failing ZIP codes, as rows of a file for the data engineer.
SELECT '{table}' AS "table", zip_code AS key, * EXCLUDE (zip_code) FROM ({faults})
