-- name: known_states
-- The states: their county codes, and their bounds.
CREATE OR REPLACE TEMP TABLE known_states AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS fips, unnest(?::DOUBLE[][]) AS box

-- name: known_prefixes
-- The first three digits of ZIP codes, each with a state that has them.
CREATE OR REPLACE TEMP TABLE known_prefixes AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS prefix

-- name: retired_counties
-- The codes of retired counties, each with those of its successors.
CREATE OR REPLACE TEMP TABLE retired_counties AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS successor

-- name: places
-- The locations of one release, with names in a form that ignores case, accents, and punctuation. One for each ZIP code:
-- a duplicate is an error already, and would count twice in every join.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT DISTINCT ON (zip_code) zip_code, state_code AS state, city_name, county_name, county_fips_code AS county, latitude, longitude,
       regexp_replace(lower(strip_accents(city_name)), '[^a-z0-9]', '', 'g') AS city
FROM {locations}

-- name: no_rows
-- FROM expression for a release that does not exist, with the columns of one that does.
(FROM {rows} LIMIT 0)

-- name: fewest_places
-- The number of locations of the smaller of the releases that have any.
SELECT coalesce(min(number), 0) FROM (SELECT count(*) AS number FROM old_places UNION ALL SELECT count(*) FROM new_places)
WHERE number > 0

-- name: aliases_of
-- The city names of one release besides those of its locations.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT zip_code, state_code AS state, city_name, regexp_replace(lower(strip_accents(city_name)), '[^a-z0-9]', '', 'g') AS city,
       usps_status AS status
FROM {aliases}

-- name: no_aliases
-- The city names of a release without aliases.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT NULL::VARCHAR AS zip_code, NULL::VARCHAR AS state, NULL::VARCHAR AS city_name, NULL::VARCHAR AS city, NULL::VARCHAR AS status WHERE false

-- name: figures_view
-- Every figure of a release in long form: ZIP code and figure as numbers, value. Populations are numbered by their year,
-- housing figures from 10,000 on: joins on numbers are several times as fast as on names. Impossible years are errors
-- already, and are left out.
CREATE OR REPLACE TEMP VIEW {view} AS
SELECT zip_code::INTEGER AS zip, year::SMALLINT AS ordinal, tot_population AS value FROM {population}
WHERE year BETWEEN {first} AND {last}
UNION ALL
SELECT * FROM (SELECT zip_code::INTEGER AS zip, unnest([{ordinals}]::SMALLINT[]) AS ordinal, unnest([{figures}]) AS value
               FROM {housing})
WHERE value IS NOT NULL

-- name: figure_ordinals
-- The numbers of the figures that either release has.
SELECT ordinal FROM old_figures UNION SELECT ordinal FROM new_figures ORDER BY ordinal

-- name: known_figures
-- The figures of both releases: populations by year, then homes by year, then demand. A figure is open while it may still
-- be revised: forecasts, and the latest years.
CREATE OR REPLACE TEMP TABLE known_figures AS
SELECT ordinal, figure, kind, year, kind = '2 demand' OR year >= ? AS open
FROM (SELECT unnest(?::SMALLINT[]) AS ordinal, unnest(?::ENUM({names})[]) AS figure, right(figure, 4)::INTEGER AS year,
             CASE WHEN starts_with(figure, 'population ') THEN '0 people'
                  WHEN starts_with(figure, 'est_') THEN '2 demand' ELSE '1 homes' END AS kind)

-- name: latest_count
-- The ordinal of the latest count of people, which may still be revised; forecasts follow it.
CREATE OR REPLACE TEMP MACRO latest_count() AS (SELECT max(ordinal) FROM known_figures WHERE ordinal <= (SELECT min(ordinal) FROM known_figures WHERE open))

-- name: last_year
-- The ordinal of the last year of people: the last forecast, if there are any.
CREATE OR REPLACE TEMP MACRO last_year() AS (SELECT max(ordinal) FROM known_figures WHERE kind = '0 people')

-- name: paired_places
-- The locations of two releases side by side: the current or former place of each ZIP code, and its fate.
CREATE OR REPLACE TEMP TABLE paired_places AS
SELECT coalesce(n.zip_code, o.zip_code) AS zip_code, coalesce(n.zip_code, o.zip_code)::INTEGER AS zip, coalesce(n.state, o.state) AS state,
       coalesce(n.city_name, o.city_name) AS city_name, TRY_CAST(coalesce(n.county, o.county) AS INTEGER) AS county,
       CASE WHEN o.zip_code IS NULL THEN 'gained' WHEN n.zip_code IS NULL THEN 'lost'
            WHEN (o.city_name, o.state, o.county_name, o.county, o.latitude, o.longitude)
                 IS DISTINCT FROM (n.city_name, n.state, n.county_name, n.county, n.latitude, n.longitude) THEN 'changed'
            ELSE 'same' END AS fate
FROM old_places o FULL JOIN new_places n ON o.zip_code = n.zip_code

-- name: changed_places
-- The locations that both releases have and that differ, as they are now and as they were.
CREATE OR REPLACE TEMP TABLE changed_places AS
SELECT n.*, o.state AS was_state, o.city_name AS was_city_name, o.county_name AS was_county_name, o.county AS was_county,
       o.latitude AS was_latitude, o.longitude AS was_longitude, o.city AS was_city
FROM paired_places p JOIN old_places o ON o.zip_code = p.zip_code JOIN new_places n ON n.zip_code = p.zip_code
WHERE p.fate = 'changed'

-- name: placed_figures
-- The figures of two releases side by side, with the state and the number of the county of each ZIP code. NULL means that a release lacks the figure,
-- or that it is negative or absurd, which is an error already and would overflow.
CREATE OR REPLACE TEMP TABLE placed_figures AS
SELECT coalesce(p.zip_code, lpad(zip::VARCHAR, 5, '0')) AS zip_code, zip, f.figure, ordinal, f.open, o.value AS old,
       CASE WHEN n.value BETWEEN 0 AND 1000000000 THEN n.value END AS new, p.state, p.county
FROM old_figures o FULL JOIN new_figures n USING (zip, ordinal) JOIN known_figures f USING (ordinal)
LEFT JOIN paired_places p USING (zip)

-- name: area_figures
-- For each figure in the country, in each state and in each county: the ZIP codes that had it, have it, or lost it, and the
-- totals over those that have it in both releases. Figures under 10 may be hidden for privacy: that is no loss.
-- `larger` figures are 200 or more, `fives` are those of them that are multiples of 5. `returned` are figures that are those of `old` again, and not those of the current release, which `moved` counts.
CREATE OR REPLACE TEMP TABLE {table} AS
WITH counties AS (
    SELECT state, county, ordinal, any_value(figure) AS figure, count(old) AS old_count, count(new) AS new_count,
           count(*) FILTER (old >= 10 AND new IS NULL) AS lost,
           coalesce(sum(old) FILTER (old >= 10 AND new IS NULL), 0) AS lost_total, count(*) FILTER (old IS NOT NULL AND new IS NOT NULL) AS pairs,
           sum(old) FILTER (new IS NOT NULL) AS old_total, sum(new) FILTER (old IS NOT NULL) AS new_total,
           count(*) FILTER (old <> new) AS changed, count(*) FILTER (old > 0 AND new = 0) AS zeroed, count(*) FILTER (old = 0 AND new > 0) AS unzeroed,
           count(*) FILTER (new <> current) AS moved, count(*) FILTER (new <> current AND new = old) AS returned,
           count(*) FILTER (new >= 200) AS larger, count(*) FILTER (new >= 200 AND new % 5 = 0) AS fives
    FROM {figures} WHERE state IS NOT NULL GROUP BY state, county, ordinal
)
SELECT 'county' AS level, * FROM counties WHERE county IS NOT NULL UNION ALL
SELECT CASE WHEN GROUPING(state) = 0 THEN 'state' ELSE 'country' END, state, NULL, ordinal, any_value(figure),
       sum(COLUMNS(* EXCLUDE (state, county, ordinal, figure)))
FROM counties GROUP BY GROUPING SETS ((ordinal), (ordinal, state))

-- name: drift_of
-- How far the totals of a table of `area_figures` moved, in the country and in states.
CREATE OR REPLACE TEMP MACRO drift_of(areas) AS TABLE
SELECT state, figure, abs(new_total / old_total - 1) AS measured, pairs AS count,
       format('{:,} to {:,} ({:+.1f}%)', old_total::BIGINT, new_total::BIGINT, 100 * (new_total / old_total - 1)) AS detail
FROM query_table(areas) WHERE level = 'country' AND old_total > 0 OR level = 'state' AND old_total >= 20000

-- name: losses_of
-- The ZIP codes of a table of `area_figures` that lost a figure which others keep: in the country, in states, and most of a
-- county. If a county has nearly all losses of its state, the state itself is left out.
CREATE OR REPLACE TEMP MACRO losses_of(areas) AS TABLE
SELECT state, county, figure, lost / old_count AS measured, lost AS count,
       format('{:,} of {:,} ZIP codes, which had {:,} on average', lost, old_count, (lost_total / lost)::BIGINT) AS detail
FROM (SELECT *, max(CASE WHEN level = 'county' AND old_count >= 10 AND 2 * lost > old_count THEN lost END) OVER (PARTITION BY state, figure) AS in_county
      FROM query_table(areas) WHERE figure IN (SELECT figure FROM query_table(areas) WHERE level = 'country' AND new_count > 0))
WHERE CASE level WHEN 'country' THEN lost > 0
                 WHEN 'state' THEN (lost >= 20 OR new_count = 0 AND lost >= 3) AND NOT coalesce(in_county > 0.9 * lost, false)
                 ELSE old_count >= 10 AND 2 * lost > old_count END

-- name: figures_by_state
-- For each state and figure, over ZIP codes that have it in both releases: likeness (correlation of logarithms, where there
-- are 200 or more; 0 if all are the same), how many of those of 500 or more moved, by over a third or by over 8%, shrank and grew, and by what share most
-- moved. Figures that moved by more than 20 times do not count toward likeness: a few of them are absurd, many are in another
-- unit.
CREATE OR REPLACE TEMP TABLE state_figures AS
SELECT * EXCLUDE (spread), exp(spread[2]) - 1 AS share, spread[3] - spread[1] AS width
FROM (SELECT state, any_value(figure) AS figure, any_value(open) AS open, count(*) FILTER (is_pair) AS pairs,
             coalesce(nullif(corr(ln(old), ln(new)) FILTER (is_pair), 'NaN'), 0) AS likeness,
             count(*) FILTER (is_large) AS large, count(*) FILTER (is_large AND abs(ln((new + 1) / (old + 1))) > 0.3) AS moved,
             count(*) FILTER (is_large AND abs(ln((new + 1) / (old + 1))) > 0.08) AS altered,
             count(*) FILTER (is_large AND new < 0.9 * old) AS shrunk, count(*) FILTER (is_large AND old < 0.9 * new) AS grown,
             quantile_cont(ln(new / old), [0.1, 0.5, 0.9]) FILTER (is_large AND least(old, new) > 0) AS spread
      FROM (SELECT *, greatest(old, new) >= 500 AS is_large, least(old, new) >= 200 AND old <= 20 * new AND new <= 20 * old AS is_pair
            FROM placed_figures WHERE old IS NOT NULL AND new IS NOT NULL AND state IS NOT NULL)
      GROUP BY state, ordinal)

-- name: series_by_state
-- For each state, and each year of the new release with the year before it: totals and likeness over ZIP codes that have
-- both, how many of those of 500 or more changed by more than five times, and how many are 0 in one of both years.
CREATE OR REPLACE TEMP TABLE state_series AS
SELECT s.state, f.figure, b.figure AS before, f.kind, f.year - b.year AS gap, s.* EXCLUDE (state, ordinal, ordinal_before)
FROM (SELECT state, ordinal, ordinal_before, sum(before) AS old_total, sum(new) AS new_total,
             count(*) FILTER (is_pair) AS pairs,
             coalesce(nullif(corr(ln(before), ln(new)) FILTER (is_pair), 'NaN'), 0) AS likeness,
             count(*) FILTER (greatest(before, new) >= 500 AND abs(ln((new + 1) / (before + 1))) > ln(5)) AS leaps,
             count(*) FILTER (new = 0 AND before >= 500) AS zeros, count(*) FILTER (before = 0 AND new >= 500) AS zeros_before
      FROM (SELECT state, ordinal, new, lag(ordinal) OVER series AS ordinal_before, lag(new) OVER series AS before,
                   before >= 200 AND new >= 200 AND before <= 20 * new AND new <= 20 * before AS is_pair
            FROM placed_figures WHERE new IS NOT NULL AND state IS NOT NULL
            WINDOW series AS (PARTITION BY zip ORDER BY ordinal))
      WHERE before IS NOT NULL GROUP BY state, ordinal, ordinal_before) s
JOIN known_figures f ON f.ordinal = s.ordinal JOIN known_figures b ON b.ordinal = s.ordinal_before
WHERE f.kind = b.kind AND f.ordinal > b.ordinal

-- name: moved_figures
-- The figures of 200 or more that changed by over 14%, and how far they moved as a logarithm.
CREATE OR REPLACE TEMP TABLE moved_figures AS
SELECT *, ln((new + 1) / (old + 1)) AS move FROM placed_figures
WHERE greatest(old, new) >= 200 AND old + new IS NOT NULL AND abs(ln((new + 1) / (old + 1))) > 0.13

-- name: one_way_figures
-- For each state and figure, and each county and figure of a past year, how many of the larger ZIP codes there are, shrank and grew.
CREATE OR REPLACE TEMP TABLE one_way_figures AS
SELECT state, NULL::INTEGER AS county, figure, large, shrunk, grown FROM state_figures WHERE large >= 20
UNION ALL
SELECT state, county, any_value(figure), count(*), count(*) FILTER (new < 0.8 * old), count(*) FILTER (old < 0.8 * new)
FROM placed_figures WHERE NOT open AND greatest(old, new) >= 500 AND old + new IS NOT NULL GROUP BY state, county, ordinal HAVING count(*) >= 20

-- name: figure_sample
-- The figures of up to 60 ZIP codes of each state, small ones too, to compare each figure with all others.
CREATE OR REPLACE TEMP TABLE figure_sample AS
SELECT p.* FROM placed_figures p
SEMI JOIN (SELECT zip FROM (SELECT DISTINCT state, zip FROM placed_figures WHERE greatest(old, new) >= 500)
           QUALIFY row_number() OVER (PARTITION BY state ORDER BY hash(zip)) <= 60) s ON s.zip = p.zip
WHERE greatest(p.old, p.new) >= 500

-- name: county_growth
-- The growth from homes to demand of counties with 2,000 homes or more, now and before, as a logarithm of up to 0.4.
-- Without territories, where rates are uncertain.
CREATE OR REPLACE TEMP VIEW county_growth AS
SELECT d.state, count(*) AS places, greatest(-0.4, least(0.4, ln(sum(d.old) / sum(h.old)))) AS was,
       greatest(-0.4, least(0.4, ln(sum(d.new) / sum(h.new)))) AS now
FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
JOIN known_states s ON s.code = d.state AND s.fips < '60'
WHERE d.figure = 'est_total_home_demand_2030' AND least(d.old, d.new, h.old, h.new) > 0 AND d.new + h.new + d.old + h.old IS NOT NULL
GROUP BY d.state, d.county HAVING sum(h.new) >= 2000

-- name: since_baseline
-- FROM expression for the figures of the baseline release in its places, beside those of the two other releases.
(SELECT b.ordinal, f.figure, b.value AS old, p.old AS current, p.new, b.state, b.county
 FROM (SELECT zip, ordinal, value, state, county FROM old_baseline
       JOIN (SELECT zip_code::INTEGER AS zip, any_value(state_code) AS state, TRY_CAST(any_value(county_fips_code) AS INTEGER) AS county
             FROM {locations} GROUP BY zip_code) USING (zip)) b
 JOIN known_figures f ON f.ordinal = b.ordinal LEFT JOIN placed_figures p ON p.zip = b.zip AND p.ordinal = b.ordinal)
