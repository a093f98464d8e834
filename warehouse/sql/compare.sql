-- name: figures_view
-- Every figure of a release in long form: ZIP code, name of the figure, value.
CREATE OR REPLACE TEMP VIEW {view} AS
SELECT zip_code, 'population ' || year AS figure, tot_population AS value FROM {population}
UNION ALL
SELECT zip_code, name AS figure, value FROM (SELECT zip_code, {figures} FROM {housing})
UNPIVOT (value FOR name IN ({figures}))

-- name: no_figures_view
-- The figures of a release that does not exist.
CREATE OR REPLACE TEMP VIEW {view} AS
SELECT NULL::VARCHAR AS zip_code, NULL::VARCHAR AS figure, NULL::BIGINT AS value WHERE false

-- name: paired_figures
-- The figures of two releases side by side. NULL means that a release lacks the figure.
CREATE OR REPLACE TEMP TABLE paired_figures AS
SELECT zip_code, figure, o.value AS old, n.value AS new
FROM old_figures o FULL JOIN new_figures n USING (zip_code, figure)

-- name: figure_totals
-- For each figure, population first: both national totals, and how many ZIP codes have it, changed, gained and lost it.
SELECT figure, sum(old)::BIGINT, sum(new)::BIGINT, count(old), count(new),
       count(*) FILTER (old <> new), count(*) FILTER (old IS NULL), count(*) FILTER (new IS NULL)
FROM paired_figures GROUP BY figure ORDER BY NOT starts_with(figure, 'population '), figure

-- name: largest_movers
-- The figures that changed most, in people or homes.
SELECT zip_code, figure, old, new FROM paired_figures
WHERE old <> new ORDER BY abs(new - old) DESC, zip_code, figure LIMIT ?

-- name: write_changed_figures
-- Writes every figure that differs to a file: ZIP code, figure, both values.
COPY (SELECT zip_code, figure, old, new FROM paired_figures
      WHERE old IS DISTINCT FROM new ORDER BY zip_code, figure) TO '{path}' (FORMAT {form})

-- name: changed_zip_codes
-- The number of ZIP codes with a figure that differs.
SELECT count(DISTINCT zip_code) FROM paired_figures WHERE old IS DISTINCT FROM new

-- name: locations_gained_and_lost
-- For each state, the numbers of ZIP codes gained and lost.
SELECT coalesce(o.state_code, n.state_code) AS state,
       count(*) FILTER (o.zip_code IS NULL), count(*) FILTER (n.zip_code IS NULL)
FROM {old} o FULL JOIN {new} n ON o.zip_code = n.zip_code
WHERE o.zip_code IS NULL OR n.zip_code IS NULL GROUP BY 1 ORDER BY 1

-- name: location_samples
-- ZIP codes that the first release has and the second lacks.
SELECT zip_code FROM {one} AS one ANTI JOIN {other} AS other USING (zip_code) ORDER BY zip_code LIMIT ?

-- name: locations_changed
-- The number of ZIP codes whose city, state, county or coordinates changed.
SELECT count(*) FROM {old} o JOIN {new} n USING (zip_code)
WHERE (o.city_name, o.state_code, o.county_name, o.county_fips_code, o.latitude, o.longitude)
      IS DISTINCT FROM (n.city_name, n.state_code, n.county_name, n.county_fips_code, n.latitude, n.longitude)

-- name: count_rows
-- The number of rows of a table.
SELECT count(*) FROM {rows}

-- name: records_changed
-- Records by id: how many there were, and how many were added, removed and changed; some ids that were removed.
SELECT count(o.id), count(*) FILTER (o.id IS NULL), count(*) FILTER (n.id IS NULL), count(*) FILTER (o.content <> n.content),
       coalesce(min(o.id, 5) FILTER (n.id IS NULL), [])
FROM (SELECT {id} AS id, hash({columns}) AS content FROM {old}) o
FULL JOIN (SELECT {id} AS id, hash({columns}) AS content FROM {new}) n ON o.id = n.id
