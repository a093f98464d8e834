-- name: known_states
-- The states: their county codes, and where they are.
CREATE OR REPLACE TEMP TABLE known_states AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS fips, unnest(?::DOUBLE[][]) AS box

-- name: known_prefixes
-- The first three digits of ZIP codes, each with a state that has them.
CREATE OR REPLACE TEMP TABLE known_prefixes AS
SELECT unnest(?::VARCHAR[]) AS code, unnest(?::VARCHAR[]) AS prefix

-- name: places
-- The locations of one release, with names in a form that ignores case, accents, and punctuation.
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT zip_code, state_code AS state, city_name, county_name, county_fips_code AS county, latitude, longitude,
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
SELECT figure, row_number() OVER (ORDER BY kind, year)::USMALLINT AS ordinal, kind, year, kind = '2 demand' OR year >= ? AS open
FROM (SELECT DISTINCT figure, right(figure, 4)::INTEGER AS year,
             CASE WHEN starts_with(figure, 'population ') THEN '0 people'
                  WHEN starts_with(figure, 'est_') THEN '2 demand' ELSE '1 homes' END AS kind FROM paired_figures)

-- name: figures_with_states
-- The figures of both releases, side by side, with the state of each ZIP code.
CREATE OR REPLACE TEMP TABLE placed_figures AS
SELECT p.zip_code, p.zip_code::INTEGER AS zip, p.figure, f.ordinal, f.open, p.old, p.new, coalesce(n.state, o.state) AS state
FROM paired_figures p JOIN known_figures f ON f.figure = p.figure
LEFT JOIN new_places n ON n.zip_code = p.zip_code LEFT JOIN old_places o ON o.zip_code = p.zip_code

-- name: figures_by_state
-- For each state and figure, over ZIP codes that have it in both releases: totals, likeness (correlation of logarithms,
-- where there are 200 or more), how many of those of 500 or more moved by over a third, and by how much most moved.
-- `lost` counts ZIP codes that only the old release has a figure for.
CREATE OR REPLACE TEMP TABLE state_figures AS
SELECT state, any_value(figure) AS figure, any_value(open) AS open, count(old) AS old_count, count(new) AS new_count,
       count(*) FILTER (old IS NOT NULL AND new IS NULL) AS lost,
       sum(old) FILTER (new IS NOT NULL) AS old_total, sum(new) FILTER (old IS NOT NULL) AS new_total,
       count(*) FILTER (old <> new) AS changed,
       count(*) FILTER (least(old, new) >= 200) AS pairs,
       corr(ln(old), ln(new)) FILTER (least(old, new) >= 200) AS likeness,
       count(*) FILTER (greatest(old, new) >= 500 AND old + new IS NOT NULL) AS large,
       count(*) FILTER (greatest(old, new) >= 500 AND abs(ln((new + 1) / (old + 1))) > 0.3) AS moved,
       quantile_cont(ln(new / old), [0.1, 0.5, 0.9]) FILTER (least(old, new) >= 200) AS spread
FROM placed_figures WHERE state IS NOT NULL GROUP BY state, ordinal

-- name: series_by_state
-- For each state, and each year of the new release with the year before it: totals and likeness over ZIP codes that have
-- both, and how many of those of 500 or more changed by more than five times.
CREATE OR REPLACE TEMP TABLE state_series AS
SELECT s.state, f.figure, b.figure AS before, f.year - b.year AS gap, s.* EXCLUDE (state, ordinal, ordinal_before)
FROM (SELECT state, ordinal, ordinal_before, sum(before) AS old_total, sum(new) AS new_total,
             count(*) FILTER (least(before, new) >= 200) AS pairs,
             corr(ln(before), ln(new)) FILTER (least(before, new) >= 200) AS likeness,
             count(*) FILTER (greatest(before, new) >= 500 AND abs(ln((new + 1) / (before + 1))) > ln(5)) AS leaps
      FROM (SELECT state, ordinal, new, lag(ordinal) OVER series AS ordinal_before, lag(new) OVER series AS before
            FROM placed_figures WHERE new IS NOT NULL AND state IS NOT NULL
            WINDOW series AS (PARTITION BY zip ORDER BY ordinal))
      WHERE before IS NOT NULL GROUP BY state, ordinal, ordinal_before) s
JOIN known_figures f ON f.ordinal = s.ordinal JOIN known_figures b ON b.ordinal = s.ordinal_before
WHERE f.kind = b.kind

-- name: figure_sample
-- The figures of every eighth ZIP code, for comparisons of each figure with each other.
CREATE OR REPLACE TEMP TABLE figure_sample AS
SELECT * FROM placed_figures WHERE hash(zip) % 8 = 0 AND greatest(old, new) >= 500

-- name: figures_shuffled
-- States where a figure hardly resembles its former values. Real revisions: likeness of 0.995 or more.
SELECT state, figure, 1 - likeness AS measured, pairs AS count,
       format('{} in {}: likeness {:.2f} over {} ZIP codes', figure, state, likeness, pairs) AS detail
FROM state_figures WHERE pairs >= 20 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC

-- name: figures_moved
-- States where many ZIP codes of 500 or more moved by over a third.
SELECT state, figure, moved / large AS measured, moved AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, moved, large) AS detail
FROM state_figures WHERE large >= 20 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC

-- name: state_drift
-- States where the total of a figure moved far, over the ZIP codes that have it in both releases.
SELECT state, figure, abs(new_total / old_total - 1) AS measured, changed AS count,
       format('{} in {}: {:,} to {:,} ({:+.1f}%)', figure, state, old_total::BIGINT, new_total::BIGINT,
              100 * (new_total / old_total - 1)) AS detail
FROM state_figures WHERE old_total >= 20000 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC

-- name: uniform_scale
-- Counted figures that moved by the same share almost everywhere: in a state, or in the whole country.
SELECT state, figure, abs(share) AS measured, pairs AS count,
       format('{} in {}: {:+.1f}% in nearly every ZIP code', figure, state, 100 * share) AS detail
FROM (SELECT *, exp(spread[2]) - 1 AS share, spread[3] - spread[1] AS width FROM state_figures WHERE pairs >= 20)
WHERE NOT open AND measured > {limit} AND width < 0.25 * abs(spread[2])
ORDER BY measured DESC

-- name: leaping_figure
-- Figures that became more than five times as large or as small in many ZIP codes of 500 or more.
SELECT any_value(state) AS state, figure, count(*) AS measured, count(*) AS count,
       format('{}: {} ZIP codes, such as {} from {:,} to {:,}', figure, count(*), max_by(zip_code, abs(new - old)),
              max_by(old, abs(new - old)), max_by(new, abs(new - old))) AS detail
FROM placed_figures WHERE greatest(old, new) >= 500 AND abs(ln((new + 1) / (old + 1))) > ln(5)
GROUP BY figure HAVING measured > {limit} * (1 + any_value(open)::INTEGER) ORDER BY measured DESC

-- name: absurd_figure
-- Figures that became more than twenty times as large, and 5,000 or more.
SELECT any_value(state) AS state, figure, count(*) AS measured, count(*) AS count,
       format('{}: {} ZIP codes, such as {} from {:,} to {:,}', figure, count(*), max_by(zip_code, new),
              max_by(old, new), max(new)) AS detail
FROM placed_figures WHERE new >= 5000 AND new > 20 * old AND old IS NOT NULL
GROUP BY figure HAVING measured > {limit} ORDER BY measured DESC

-- name: zeroed_figure
-- Figures of 200 or more that became 0.
SELECT any_value(state) AS state, figure, count(*) AS measured, count(*) AS count,
       format('{}: {} ZIP codes, such as {} from {:,} to 0', figure, count(*), max_by(zip_code, old), max(old)) AS detail
FROM placed_figures WHERE new = 0 AND old >= 200
GROUP BY figure HAVING measured > {limit} * (1 + any_value(open)::INTEGER) ORDER BY measured DESC

-- name: sentinel_figure
-- Numbers that systems write for "unknown", where the release before has another number. 9999 may occur by chance.
SELECT any_value(state) AS state, figure, count(*) - CASE WHEN new = 9999 THEN 3 ELSE 0 END AS measured, count(*) AS count,
       format('{}: {} in {} ZIP codes, such as {}', figure, new, count(*), min(zip_code)) AS detail
FROM placed_figures WHERE new IN (9999, 99999, 999999) AND new IS DISTINCT FROM old
GROUP BY figure, new HAVING measured > {limit} ORDER BY measured DESC

-- name: repeated_value
-- Numbers of 1,000 or more that too many ZIP codes share. In real drops, at most 16 do.
SELECT any_value(state) AS state, figure, count(*) AS measured, count(*) AS count,
       format('{}: {:,} in {} ZIP codes, such as {}', figure, new, count(*), min(zip_code)) AS detail
FROM placed_figures WHERE new >= 1000
GROUP BY figure, new HAVING measured > {limit} ORDER BY measured DESC

-- name: repeated_figure
-- Pairs of figures that are equal in many ZIP codes of 1,000 or more. In real drops, at most 2% are.
SELECT NULL AS state, y.figure, count(*) FILTER (x.new = y.new) / count(*) AS measured, count(*) AS count,
       format('{} is {} in {:.0f}% of ZIP codes', y.figure, x.figure, 100 * measured) AS detail
FROM figure_sample x JOIN figure_sample y ON x.zip = y.zip AND x.ordinal < y.ordinal
WHERE least(x.new, y.new) >= 1000
GROUP BY x.figure, y.figure HAVING count(*) >= 20 AND measured > {limit} ORDER BY measured DESC

-- name: figures_exchanged
-- Changed figures that resemble the former values of another figure better than their own, by states. What is measured is
-- how much better: 1 if they are the other's exactly. Demand is always close to homes, so it must be closer still.
WITH own AS (
    SELECT state, figure, avg(abs(ln((new + 1) / (old + 1)))) AS distance FROM figure_sample
    WHERE old IS NOT NULL AND new IS NOT NULL GROUP BY state, figure HAVING count(*) >= 8 AND distance > 0.004
), others AS (
    SELECT n.state, n.figure, o.figure AS other, any_value(own.distance) AS distance,
           avg(abs(ln((n.new + 1) / (o.old + 1)))) AS to_other, count(*) AS number
    FROM own JOIN figure_sample n ON n.state = own.state AND n.figure = own.figure
    JOIN figure_sample o ON o.zip = n.zip AND o.ordinal <> n.ordinal
    WHERE n.new IS NOT NULL AND o.old IS NOT NULL GROUP BY n.state, n.figure, o.figure HAVING count(*) >= 8
)
SELECT state, figure, 1 - to_other / distance AS measured, number AS count,
       format('{} in {} looks like the former {}', figure, state, other) AS detail
FROM others QUALIFY row_number() OVER (PARTITION BY state, figure ORDER BY to_other) = 1
    AND measured > CASE WHEN starts_with(figure, 'est_') <> starts_with(other, 'est_') THEN (1 + {limit}) / 2 ELSE {limit} END
ORDER BY measured DESC

-- name: coverage_lost_in_state
-- States where many ZIP codes lost a figure that others keep.
SELECT state, figure, lost / old_count AS measured, lost AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, lost, old_count) AS detail
FROM state_figures
WHERE (lost >= 20 OR new_count = 0 AND lost >= 3) AND measured > {limit} * (1 + open::INTEGER)
      AND figure IN (SELECT figure FROM state_figures WHERE new_count > 0)
      AND state IN (SELECT state FROM new_places)
ORDER BY measured DESC

-- name: series_drift
-- States whose total moves far from one year to the next, as a share per year. In real drops, at most 2.4%.
SELECT state, figure, abs(new_total / old_total - 1) / gap AS measured, pairs AS count,
       format('{} in {}: {:,}, after {:,} in {}', figure, state, new_total::BIGINT, old_total::BIGINT, right(before, 4)) AS detail
FROM state_series WHERE old_total >= 20000 AND measured > {limit}
ORDER BY measured DESC

-- name: series_shuffled
-- States where a year hardly resembles the year before it. In real drops, likeness is 0.97 or more.
SELECT state, figure, 1 - likeness AS measured, pairs AS count,
       format('{} in {}: likeness {:.2f} to {}', figure, state, likeness, before) AS detail
FROM state_series WHERE pairs >= 20 AND measured > {limit}
ORDER BY measured DESC

-- name: series_leap
-- Years in which many ZIP codes of 500 or more change by more than five times. In real drops, at most 24 do.
SELECT NULL AS state, figure, sum(leaps) AS measured, sum(leaps) AS count,
       format('{} after {}: {} ZIP codes', figure, any_value(before), sum(leaps)::BIGINT) AS detail
FROM state_series GROUP BY figure HAVING measured > {limit} ORDER BY measured DESC

-- name: people_per_home
-- States with far more or fewer people for each home than 2.25, year by year. In real drops, 1.85 to 2.80.
SELECT h.state, h.figure, abs(sum(p.new) / sum(h.new) / 2.25 - 1) AS measured, count(*) AS count,
       format('{} in {}: {:.2f} people for each home', h.figure, h.state, sum(p.new) / sum(h.new)) AS detail
FROM known_figures homes JOIN known_figures people ON people.year = homes.year AND people.kind = '0 people'
JOIN placed_figures h ON h.ordinal = homes.ordinal JOIN placed_figures p ON p.ordinal = people.ordinal AND p.zip = h.zip
WHERE homes.kind = '1 homes' AND h.new IS NOT NULL AND p.new IS NOT NULL
GROUP BY h.state, h.figure HAVING sum(h.new) >= 20000 AND measured > {limit} ORDER BY measured DESC

-- name: demand_beside_homes
-- States whose demand for homes is far from the homes they have. In real drops, 2% less to 10% more.
SELECT d.state, d.figure, abs(sum(d.new) / sum(h.new) - 1) AS measured, count(*) AS count,
       format('{} in {}: {:,}, with {:,} in {}', d.figure, d.state, sum(d.new)::BIGINT, sum(h.new)::BIGINT, any_value(h.figure)) AS detail
FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
WHERE d.figure = 'est_total_home_demand_2030' AND d.new IS NOT NULL AND h.new IS NOT NULL
GROUP BY d.state, d.figure HAVING sum(h.new) >= 20000 AND measured > {limit} ORDER BY measured DESC

-- name: homes_unlike_people
-- States where homes hardly go with people, or demand with homes. In real drops, likeness is 0.83 or more.
SELECT h.state, h.figure, 1 - corr(ln(o.new), ln(h.new)) AS measured, count(*) AS count,
       format('{} in {}: likeness {:.2f} to {}', h.figure, h.state, 1 - measured, any_value(o.figure)) AS detail
FROM known_figures one JOIN known_figures other
    ON one.kind = '1 homes' AND other.kind = '0 people' AND other.year = one.year
       OR one.kind = '2 demand' AND other.figure = 'tot_home_available_2023'
JOIN placed_figures h ON h.ordinal = one.ordinal JOIN placed_figures o ON o.ordinal = other.ordinal AND o.zip = h.zip
WHERE least(h.new, o.new) >= 200
GROUP BY h.state, h.figure HAVING count(*) >= 20 AND measured > {limit} ORDER BY measured DESC

-- name: zip_codes_lost
-- ZIP codes that the release before has and the new one lacks.
SELECT o.state, count(*) FILTER (n.zip_code IS NULL), count(*),
       min_by(o.zip_code || ' ' || o.city_name, o.zip_code, 3) FILTER (n.zip_code IS NULL)
FROM old_places o LEFT JOIN new_places n ON n.zip_code = o.zip_code GROUP BY o.state

-- name: place_value_lost
-- ZIP codes that lost a county or coordinates.
SELECT o.state, count(*) FILTER (o.county IS NOT NULL AND n.county IS NULL
                                 OR o.county_name IS NOT NULL AND n.county_name IS NULL
                                 OR o.latitude IS NOT NULL AND n.latitude IS NULL
                                 OR o.longitude IS NOT NULL AND n.longitude IS NULL) AS lost, count(*),
       min_by(n.zip_code || ' ' || n.city_name, n.zip_code, 3) FILTER (o.county IS NOT NULL AND n.county IS NULL
                                 OR o.county_name IS NOT NULL AND n.county_name IS NULL
                                 OR o.latitude IS NOT NULL AND n.latitude IS NULL
                                 OR o.longitude IS NOT NULL AND n.longitude IS NULL)
FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code GROUP BY o.state

-- name: moved_place
-- ZIP codes whose coordinates are more than 25 km from the former ones.
WITH moved AS (
    SELECT n.state, n.zip_code, n.city_name, 111.2 * sqrt(pow(n.latitude - o.latitude, 2)
               + pow((n.longitude - o.longitude) * cos(radians(o.latitude)), 2)) AS km
    FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code WHERE n.latitude + o.latitude IS NOT NULL
)
SELECT state, count(*) FILTER (km > 25), count(*),
       max_by(format('{} {} by {:,.0f} km', zip_code, city_name, km), km, 3) FILTER (km > 25)
FROM moved GROUP BY state

-- name: other_city
-- ZIP codes whose city is now one that other ZIP codes of the state had before. New names are renamed cities.
WITH known AS (SELECT DISTINCT state, city FROM old_places)
SELECT o.state, count(*) FILTER (n.city <> o.city AND known.city IS NOT NULL), count(*),
       min_by(format('{} {}, was {}', n.zip_code, n.city_name, o.city_name), n.zip_code, 3)
           FILTER (n.city <> o.city AND known.city IS NOT NULL)
FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code
LEFT JOIN known ON known.state = n.state AND known.city = n.city GROUP BY o.state

-- name: renamed_city
-- ZIP codes whose city has another name, beyond case, accents, and punctuation.
SELECT o.state, count(*) FILTER (n.city <> o.city), count(*),
       min_by(format('{} {}, was {}', n.zip_code, n.city_name, o.city_name), n.zip_code, 3) FILTER (n.city <> o.city)
FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code GROUP BY o.state

-- name: name_cut
-- ZIP codes whose city or county is only the beginning of its former name.
WITH cut AS (
    SELECT o.state, n.zip_code, n.city_name, o.city_name AS former, o.county_name, n.county_name AS county,
           length(n.city_name) < length(o.city_name) AND starts_with(o.city_name, n.city_name)
           OR length(n.county_name) < length(o.county_name) AND starts_with(o.county_name, n.county_name) AS is_cut
    FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code
)
SELECT state, count(*) FILTER (is_cut), count(*),
       min_by(format('{} {}, was {}', zip_code, concat_ws(', ', city_name, county), concat_ws(', ', former, county_name)),
              zip_code, 3) FILTER (is_cut)
FROM cut GROUP BY state

-- name: other_county
-- ZIP codes whose county is now one that other ZIP codes had before. New codes are new counties, as Connecticut's.
WITH known AS (SELECT DISTINCT county FROM old_places)
SELECT o.state, count(*) FILTER (n.county <> o.county AND known.county IS NOT NULL), count(*),
       min_by(format('{} in {}, was in {}', n.zip_code, n.county, o.county), n.zip_code, 3)
           FILTER (n.county <> o.county AND known.county IS NOT NULL)
FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code LEFT JOIN known ON known.county = n.county GROUP BY o.state

-- name: county_name_differs
-- ZIP codes that stay in their county, which has another name for them alone: others of the county keep the old one.
WITH names AS (
    SELECT county, mode(county_name) AS usual FROM new_places WHERE county IS NOT NULL GROUP BY county
)
SELECT n.state, count(*) FILTER (n.county_name <> names.usual), count(*),
       min_by(format('{} in {}, others of {} in {}', n.zip_code, n.county_name, n.county, names.usual), n.zip_code, 3)
           FILTER (n.county_name <> names.usual)
FROM new_places n LEFT JOIN names ON names.county = n.county GROUP BY n.state

-- name: state_changed
-- ZIP codes that are in another state than before.
SELECT o.state, count(*) FILTER (n.state <> o.state), count(*),
       min_by(format('{} {} in {}, was in {}', n.zip_code, n.city_name, n.state, o.state), n.zip_code, 3)
           FILTER (n.state <> o.state)
FROM old_places o JOIN new_places n ON n.zip_code = o.zip_code GROUP BY o.state

-- name: zip_of_other_state
-- ZIP codes whose first three digits belong to another state.
SELECT n.state, count(*) FILTER (p.code IS NULL), count(*),
       min_by(format('{} {} in {}', n.zip_code, n.city_name, n.state), n.zip_code, 3) FILTER (p.code IS NULL)
FROM new_places n LEFT JOIN known_prefixes p ON p.code = n.state AND p.prefix = left(n.zip_code, 3) GROUP BY n.state

-- name: county_of_other_state
-- ZIP codes whose county code begins with another state's number.
SELECT n.state, count(*) FILTER (left(n.county, 2) <> s.fips OR n.county IS NOT NULL AND s.fips IS NULL), count(*),
       min_by(format('{} {} in {} with county {}', n.zip_code, n.city_name, n.state, n.county), n.zip_code, 3)
           FILTER (left(n.county, 2) <> s.fips OR n.county IS NOT NULL AND s.fips IS NULL)
FROM new_places n LEFT JOIN known_states s ON s.code = n.state GROUP BY n.state

-- name: place_outside_state
-- ZIP codes whose coordinates are outside their state.
WITH places AS (
    SELECT n.state, n.zip_code, n.city_name, n.latitude, n.longitude,
           NOT coalesce(n.latitude BETWEEN s.box[1] AND s.box[3] AND n.longitude BETWEEN s.box[2] AND s.box[4], false)
               AND n.latitude IS NOT NULL AND n.longitude IS NOT NULL AS is_outside
    FROM new_places n LEFT JOIN known_states s ON s.code = n.state
)
SELECT state, count(*) FILTER (is_outside), count(*),
       min_by(format('{} {}, {} at {:.2f}, {:.2f}', zip_code, city_name, state, latitude, longitude), zip_code, 3)
           FILTER (is_outside)
FROM places GROUP BY state

-- name: scattered_place
-- ZIP codes that are more than 100 km from the middle of their county.
WITH middles AS (
    SELECT county, median(latitude) AS latitude, median(longitude) AS longitude FROM new_places
    WHERE county IS NOT NULL AND latitude IS NOT NULL GROUP BY county
), places AS (
    SELECT n.state, n.zip_code, n.city_name, 111.2 * sqrt(pow(n.latitude - m.latitude, 2)
               + pow((n.longitude - m.longitude) * cos(radians(m.latitude)), 2)) AS km
    FROM new_places n LEFT JOIN middles m ON m.county = n.county
)
SELECT state, count(*) FILTER (km > 100), count(*),
       max_by(format('{} {}: {:,.0f} km', zip_code, city_name, km), km, 3) FILTER (km > 100)
FROM places GROUP BY state

-- name: place_value_missing
-- ZIP codes without a county or coordinates. Military ones, and others of no state with counties, have none.
SELECT n.state, count(*) FILTER (n.county IS NULL OR n.county_name IS NULL OR n.latitude IS NULL OR n.longitude IS NULL),
       count(*), min_by(n.zip_code || ' ' || n.city_name, n.zip_code, 3)
           FILTER (n.county IS NULL OR n.county_name IS NULL OR n.latitude IS NULL OR n.longitude IS NULL)
FROM new_places n JOIN known_states s ON s.code = n.state WHERE s.fips IS NOT NULL GROUP BY n.state

-- name: city_like_county
-- ZIP codes whose city is called a county.
SELECT state, count(*) FILTER (regexp_matches(city_name, '(?i) (County|Parish|Municipio)$')), count(*),
       min_by(zip_code || ' ' || city_name, zip_code, 3) FILTER (regexp_matches(city_name, '(?i) (County|Parish|Municipio)$'))
FROM new_places GROUP BY state

-- name: same_place
-- ZIP codes that share their county or coordinates with too many others: more than 1,500 of the country.
WITH counties AS (SELECT county FROM new_places WHERE county IS NOT NULL GROUP BY county HAVING count(*) > 1500),
points AS (SELECT latitude, longitude FROM new_places WHERE latitude IS NOT NULL GROUP BY ALL HAVING count(*) > 500)
SELECT n.state, count(*) FILTER (c.county IS NOT NULL OR p.latitude IS NOT NULL), count(*),
       min_by(format('{} in {} at {:.2f}, {:.2f}', n.zip_code, n.county, n.latitude, n.longitude), n.zip_code, 3)
           FILTER (c.county IS NOT NULL OR p.latitude IS NOT NULL)
FROM new_places n LEFT JOIN counties c ON c.county = n.county
LEFT JOIN points p ON p.latitude = n.latitude AND p.longitude = n.longitude GROUP BY n.state

-- name: cut_to_length
-- ZIP codes whose city has exactly the length of the longest one, if that is the length of many.
WITH longest AS (SELECT max(length(city_name)) AS longest FROM new_places)
SELECT state, count(*) FILTER (length(city_name) = longest), count(*),
       min_by(zip_code || ' ' || city_name, zip_code, 3) FILTER (length(city_name) = longest)
FROM new_places, longest GROUP BY state

-- name: alias_of_other_state
-- Aliases in another state than their ZIP code.
SELECT n.state, count(*) FILTER (a.state <> n.state), count(*),
       min_by(format('{} {} in {}, the ZIP code is in {}', a.zip_code, a.city, a.state, n.state), a.zip_code, 3)
           FILTER (a.state <> n.state)
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code GROUP BY n.state

-- name: primary_alias_differs
-- Primary aliases that are not the city of their ZIP code.
SELECT n.state, count(*) FILTER (a.city <> n.city), count(*),
       min_by(format('{} {}, its primary alias is {}', n.zip_code, n.city_name, a.city), n.zip_code, 3)
           FILTER (a.city <> n.city)
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code WHERE a.status = 'primary' GROUP BY n.state

-- name: aliases_lost
-- Aliases that the release before has and the new one lacks.
SELECT p.state, count(*) FILTER (a.zip_code IS NULL), count(*),
       min_by(o.zip_code || ' ' || o.city, o.zip_code, 3) FILTER (a.zip_code IS NULL)
FROM old_aliases o JOIN new_places p ON p.zip_code = o.zip_code
LEFT JOIN (SELECT DISTINCT zip_code, city FROM new_aliases) a ON a.zip_code = o.zip_code AND a.city = o.city GROUP BY p.state

-- name: slow_drift
-- Figures whose total moved far from that of the baseline release, in the country or, twice as far, in a state.
SELECT p.state, p.figure, abs(sum(p.new) / sum(b.value) - 1) AS measured,
       count(*) AS count, format('{} in {}: {:,} to {:,} ({:+.1f}%)', p.figure, coalesce(p.state, 'the country'),
           sum(b.value)::BIGINT, sum(p.new)::BIGINT, 100 * (sum(p.new) / sum(b.value) - 1)) AS detail
FROM placed_figures p JOIN baseline_figures b ON b.zip_code = p.zip_code AND b.figure = p.figure
WHERE p.new IS NOT NULL
GROUP BY GROUPING SETS ((p.figure), (p.figure, p.state))
HAVING sum(b.value) >= 20000 AND measured > {limit} * (1 + any_value(p.open)::INTEGER) * (1 + (p.state IS NOT NULL)::INTEGER)
ORDER BY measured DESC
