-- name: figures_view
-- Every figure of a release in one shape: ZIP code, name of the figure, value.
CREATE OR REPLACE TEMP VIEW {view} AS
SELECT zip_code, 'population ' || year AS figure, tot_population AS value FROM {population}
UNION ALL
SELECT zip_code, name AS figure, value FROM (SELECT zip_code, {figures} FROM {housing})
UNPIVOT (value FOR name IN ({figures}))

-- name: paired_figures
-- The figures of two releases side by side; NULL where one has none.
CREATE OR REPLACE TEMP TABLE paired_figures AS
SELECT zip_code, figure, o.value AS old, n.value AS new
FROM old_figures o FULL JOIN new_figures n USING (zip_code, figure)

-- name: figure_totals
-- National totals by figure, people before homes, and how many ZIP codes have it, differ in it, gained it, lost it.
SELECT figure, sum(old)::BIGINT, sum(new)::BIGINT, count(old), count(new),
       count(*) FILTER (old <> new), count(*) FILTER (old IS NULL), count(*) FILTER (new IS NULL)
FROM paired_figures GROUP BY figure ORDER BY NOT starts_with(figure, 'population '), figure

-- name: largest_movers
-- The ZIP codes whose figures changed most, in people or homes.
SELECT zip_code, figure, old, new FROM paired_figures
WHERE old <> new ORDER BY abs(new - old) DESC, zip_code, figure LIMIT ?

-- name: write_changed_figures
-- Every figure that differs, into a file: ZIP code, figure, both values.
COPY (SELECT zip_code, figure, old, new FROM paired_figures
      WHERE old IS DISTINCT FROM new ORDER BY zip_code, figure) TO '{path}' (FORMAT {form})

-- name: changed_zip_codes
-- How many ZIP codes have any figure that differs.
SELECT count(DISTINCT zip_code) FROM paired_figures WHERE old IS DISTINCT FROM new

-- name: locations_gained_and_lost
-- ZIP codes that only one of the two has, by state: gained, lost.
SELECT coalesce(o.state_code, n.state_code) AS state,
       count(*) FILTER (o.zip_code IS NULL), count(*) FILTER (n.zip_code IS NULL)
FROM {old} o FULL JOIN {new} n ON o.zip_code = n.zip_code
WHERE o.zip_code IS NULL OR n.zip_code IS NULL GROUP BY 1 ORDER BY 1

-- name: location_samples
-- ZIP codes that only the first of the two has.
SELECT zip_code FROM {one} AS one ANTI JOIN {other} AS other USING (zip_code) ORDER BY zip_code LIMIT ?

-- name: locations_changed
-- ZIP codes whose place was renamed or moved: city, state, county or coordinates.
SELECT count(*) FROM {old} o JOIN {new} n USING (zip_code)
WHERE (o.city_name, o.state_code, o.county_name, o.county_fips_code, o.latitude, o.longitude)
      IS DISTINCT FROM (n.city_name, n.state_code, n.county_name, n.county_fips_code, n.latitude, n.longitude)

-- name: count_rows
-- Rows of a table.
SELECT count(*) FROM {rows}

-- name: records_changed
-- Records of a table by their id: how many there were, how many are new, gone, with other values; some that are gone.
SELECT count(o.id), count(*) FILTER (o.id IS NULL), count(*) FILTER (n.id IS NULL), count(*) FILTER (o.content <> n.content),
       coalesce(min(o.id, 5) FILTER (n.id IS NULL), [])
FROM (SELECT {id} AS id, hash({columns}) AS content FROM {old}) o
FULL JOIN (SELECT {id} AS id, hash({columns}) AS content FROM {new}) n ON o.id = n.id
