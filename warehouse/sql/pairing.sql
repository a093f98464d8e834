-- name: known_states
-- The states: their county codes, and where they are.
CREATE OR REPLACE TEMP TABLE known_states AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS fips, unnest(?::DOUBLE[][]) AS box

-- name: known_prefixes
-- The first three digits of ZIP codes, each with a state that has them.
CREATE OR REPLACE TEMP TABLE known_prefixes AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS prefix

-- name: places
-- The locations of one release, with names in a form that ignores case, accents, and punctuation. One for each ZIP code:
-- a repeated one is an error already, and would count twice in every join.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT DISTINCT ON (zip_code) zip_code, state_code AS state, city_name, county_name, county_fips_code AS county, latitude, longitude,
       regexp_replace(lower(strip_accents(city_name)), '[^a-z0-9]', '', 'g') AS city
FROM {locations}

-- name: no_places
-- The locations of a release that does not exist.
CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {like} WHERE false

-- name: fewest_places
-- The number of locations of the smaller of the releases that have any.
SELECT coalesce(min(number), 0) FROM (SELECT count(*) AS number FROM old_places UNION ALL SELECT count(*) FROM new_places)
WHERE number > 0

-- name: aliases_of
-- The city names of one release besides those of its locations.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT zip_code, state_code AS state, regexp_replace(lower(strip_accents(city_name)), '[^a-z0-9]', '', 'g') AS city,
       usps_status AS status
FROM {aliases}

-- name: no_aliases
-- The city names of a release without aliases.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT NULL::VARCHAR AS zip_code, NULL::VARCHAR AS state, NULL::VARCHAR AS city, NULL::VARCHAR AS status WHERE false

-- name: known_figures
-- The figures of both releases: populations by year, then homes by year, then demand. A figure is open while it may still
-- be revised: forecasts, and the latest years. Joins are on numbers, which are four times as fast as on names.
CREATE OR REPLACE TEMP TABLE known_figures AS
SELECT figure, row_number() OVER (ORDER BY kind, year)::SMALLINT AS ordinal, kind, year, kind = '2 demand' OR year >= ? AS open
FROM (SELECT DISTINCT figure, right(figure, 4)::INTEGER AS year,
             CASE WHEN starts_with(figure, 'population ') THEN '0 people'
                  WHEN starts_with(figure, 'est_') THEN '2 demand' ELSE '1 homes' END AS kind FROM paired_figures)

-- name: figures_with_states
-- The figures of both releases, side by side, with the state of each ZIP code. Negative ones are an error already.
CREATE OR REPLACE TEMP TABLE placed_figures AS
SELECT p.zip_code, p.zip_code::INTEGER AS zip, p.figure, f.ordinal, f.open, p.old,
       CASE WHEN p.new >= 0 THEN p.new END AS new, coalesce(n.state, o.state) AS state
FROM paired_figures p JOIN known_figures f ON f.figure = p.figure
LEFT JOIN new_places n ON n.zip_code = p.zip_code LEFT JOIN old_places o ON o.zip_code = p.zip_code

-- name: figures_by_state
-- For each state and figure, over ZIP codes that have it in both releases: totals, likeness (correlation of logarithms,
-- where there are 200 or more; 0 if all are the same), how many of those of 500 or more moved by over a third, and by how
-- much most moved. What moved by more than 20 times says nothing on likeness: a few such figures are absurd, many are in
-- another unit.
-- `lost` counts ZIP codes that only the old release has a figure for.
CREATE OR REPLACE TEMP TABLE state_figures AS
SELECT state, any_value(figure) AS figure, any_value(open) AS open, count(old) AS old_count, count(new) AS new_count,
       count(*) FILTER (old IS NOT NULL AND new IS NULL) AS lost,
       sum(old) FILTER (new IS NOT NULL) AS old_total, sum(new) FILTER (old IS NOT NULL) AS new_total,
       count(*) FILTER (old <> new) AS changed,
       count(*) FILTER (is_pair) AS pairs,
       coalesce(nullif(corr(ln(old), ln(new)) FILTER (is_pair), 'NaN'), 0) AS likeness,
       count(*) FILTER (greatest(old, new) >= 500 AND old + new IS NOT NULL) AS large,
       count(*) FILTER (greatest(old, new) >= 500 AND abs(ln((new + 1) / (old + 1))) > 0.3) AS moved,
       quantile_cont(ln(new / old), [0.1, 0.5, 0.9]) FILTER (greatest(old, new) >= 500 AND least(old, new) > 0) AS spread
FROM (SELECT *, old >= 200 AND new >= 200 AND old <= 20 * new AND new <= 20 * old AS is_pair FROM placed_figures)
WHERE state IS NOT NULL GROUP BY state, ordinal

-- name: series_by_state
-- For each state, and each year of the new release with the year before it: totals and likeness over ZIP codes that have
-- both, and how many of those of 500 or more changed by more than five times.
CREATE OR REPLACE TEMP TABLE state_series AS
SELECT s.state, f.figure, b.figure AS before, f.year - b.year AS gap, s.* EXCLUDE (state, ordinal, ordinal_before)
FROM (SELECT state, ordinal, ordinal_before, sum(before) AS old_total, sum(new) AS new_total,
             count(*) FILTER (is_pair) AS pairs,
             coalesce(nullif(corr(ln(before), ln(new)) FILTER (is_pair), 'NaN'), 0) AS likeness,
             count(*) FILTER (greatest(before, new) >= 500 AND abs(ln((new + 1) / (before + 1))) > ln(5)) AS leaps
      FROM (SELECT state, ordinal, new, lag(ordinal) OVER series AS ordinal_before, lag(new) OVER series AS before,
                   before >= 200 AND new >= 200 AND before <= 20 * new AND new <= 20 * before AS is_pair
            FROM placed_figures WHERE new IS NOT NULL AND state IS NOT NULL
            WINDOW series AS (PARTITION BY zip ORDER BY ordinal))
      WHERE before IS NOT NULL GROUP BY state, ordinal, ordinal_before) s
JOIN known_figures f ON f.ordinal = s.ordinal JOIN known_figures b ON b.ordinal = s.ordinal_before
WHERE f.kind = b.kind AND f.ordinal > b.ordinal

-- name: figure_sample
-- The figures of up to 60 ZIP codes of each state, small ones too, for comparisons of each figure with each other.
CREATE OR REPLACE TEMP TABLE figure_sample AS
SELECT p.* FROM placed_figures p
SEMI JOIN (SELECT zip FROM (SELECT DISTINCT state, zip FROM placed_figures WHERE greatest(old, new) >= 500)
           QUALIFY row_number() OVER (PARTITION BY state ORDER BY hash(zip)) <= 60) s ON s.zip = p.zip
WHERE greatest(p.old, p.new) >= 500
