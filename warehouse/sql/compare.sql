-- name: zip_changes
-- For each ZIP code, the fate of its location, how many of its figures changed, were gained and lost, and which changed
-- most: `largest` is that change times 65,536, plus the number of the figure counted from the end.
CREATE OR REPLACE TEMP TABLE zip_changes AS
SELECT coalesce(p.zip, f.zip) AS zip, coalesce(p.zip_code, lpad(f.zip::VARCHAR, 5, '0')) AS zip_code, p.state, p.city_name,
       p.fate, old_people, new_people, old_homes, new_homes, coalesce(changed, 0) AS changed, coalesce(gained, 0) AS gained, coalesce(lost, 0) AS lost, largest,
       p.fate <> 'same' OR changed + gained + lost > 0 AS touched
FROM paired_places p FULL JOIN (
    SELECT zip, count(*) FILTER (old <> new) AS changed, count(*) FILTER (old IS NULL) AS gained,
           count(*) FILTER (new IS NULL) AS lost, count(old) FILTER (ordinal < 10000) AS old_people,
           count(new) FILTER (ordinal < 10000) AS new_people, count(old) FILTER (ordinal >= 10000) AS old_homes,
           count(new) FILTER (ordinal >= 10000) AS new_homes, max(abs(new - old) * 65536 + 65535 - ordinal) FILTER (old <> new) AS largest
    FROM placed_figures GROUP BY zip) f ON f.zip = p.zip

-- name: largest_movers
-- The ZIP codes with the figures that changed most, in people or homes; one figure each, and how many others changed.
SELECT m.zip_code, p.figure, p.old, p.new, m.changed - 1, m.city_name, m.state
FROM (SELECT * FROM zip_changes WHERE largest IS NOT NULL ORDER BY largest // 65536 DESC, zip LIMIT ?) m
JOIN placed_figures p ON p.zip = m.zip AND p.ordinal = 65535 - m.largest % 65536 ORDER BY m.largest // 65536 DESC, m.zip

-- name: state_totals
-- For each state and figure: totals, how many ZIP codes have it, changed, gained and lost it, and how far they moved.
CREATE OR REPLACE TEMP TABLE state_totals AS
SELECT state, ordinal, any_value(figure) AS figure, sum(old) AS old_total, sum(new) AS new_total,
       count(old) AS old_count, count(new) AS new_count, count(*) FILTER (old <> new) AS changed,
       count(*) FILTER (old IS NULL) AS gained, count(*) FILTER (new IS NULL) AS lost, sum(abs(coalesce(new, 0) - old)) AS moved,
       sum(new) FILTER (old IS NULL) AS gained_total
FROM placed_figures GROUP BY state, ordinal

-- name: figure_totals
-- The same for each figure, in the whole country.
SELECT any_value(figure), sum(old_total)::BIGINT, sum(new_total)::BIGINT, sum(old_count)::BIGINT, sum(new_count)::BIGINT,
       sum(changed)::BIGINT, sum(gained)::BIGINT, sum(lost)::BIGINT, coalesce(sum(moved), 0)::BIGINT,
       coalesce(sum(gained_total), 0)::BIGINT
FROM state_totals GROUP BY ordinal ORDER BY ordinal

-- name: figures_of_states
-- The same for each state, with the key figures and the one that moved most as a share of its total: of at least 1,000
-- people or homes, because smaller totals move by large shares every month.
SELECT coalesce(state, ''), figure::VARCHAR, old_total::BIGINT, new_total::BIGINT, old_count, new_count, changed, gained, lost,
       coalesce(moved, 0)::BIGINT, coalesce(gained_total, 0)::BIGINT
FROM state_totals
QUALIFY figure::VARCHAR IN (SELECT unnest(?::VARCHAR[])) OR old_total >= 1000 AND moved > 0 AND row_number() OVER (
    PARTITION BY state ORDER BY CASE WHEN old_total >= 1000 THEN moved / old_total ELSE 0 END DESC, ordinal) = 1
ORDER BY state, ordinal

-- name: answers_of_states
-- For each state, the ZIP codes whose answers are added, removed, changed, or lose a figure.
SELECT coalesce(state, ''), count(*) FILTER (fate = 'gained'), count(*) FILTER (fate = 'lost'),
       count(*) FILTER (touched AND fate IN ('same', 'changed')), count(*) FILTER (lost > 0 AND fate IN ('same', 'changed'))
FROM zip_changes WHERE fate IS NOT NULL GROUP BY state ORDER BY state

-- name: rows_of_states
-- For each state, the rows of a table that names states.
SELECT coalesce(state_code, ''), count(*) FROM {rows} GROUP BY state_code

-- name: figure_rows_of_states
-- For each state, the rows of population and of housing in both releases: of housing, the ZIP codes with any figure.
SELECT coalesce(state, ''), sum(old_people)::BIGINT, sum(new_people)::BIGINT, count(*) FILTER (old_homes > 0), count(*) FILTER (new_homes > 0)
FROM zip_changes GROUP BY state

-- name: city_answers
-- For each city of one release: which ZIP codes answer, and whether their answers change. An alias counts only if no city
-- has that name.
CREATE OR REPLACE TEMP TABLE {release}_cities AS
SELECT state, city, arg_max(zips, own) AS zips, arg_max(touched, own) AS touched
FROM (SELECT m.state, m.city, m.own, bit_xor(hash(z.zip)) AS zips, bool_or(z.touched) AS touched
      FROM (SELECT state, city, zip_code, 1 AS own FROM {release}_places
            UNION ALL SELECT state, city, zip_code, 0 FROM {release}_aliases WHERE status = 'acceptable') m
      JOIN zip_changes z ON z.zip_code = m.zip_code GROUP BY m.state, m.city, m.own)
GROUP BY state, city

-- name: city_changes
-- The number of cities that only the new release has, that only the old one has, and whose answers differ.
SELECT count(*) FILTER (o.city IS NULL), count(*) FILTER (n.city IS NULL),
       count(*) FILTER (o.city IS NOT NULL AND n.city IS NOT NULL AND (n.touched OR o.zips <> n.zips))
FROM old_cities o FULL JOIN new_cities n ON o.state = n.state AND o.city = n.city

-- name: example_zip_codes
-- A few ZIP codes whose answers change, each with the kind of change.
(SELECT zip, 'the largest change' FROM zip_changes WHERE changed > 0 ORDER BY largest // 65536 DESC, zip LIMIT 1)
UNION ALL
(SELECT zip, 'a typical change' FROM zip_changes WHERE changed > 0 ORDER BY largest // 65536, zip LIMIT 1
 OFFSET (SELECT count(*) // 2 FROM zip_changes WHERE changed > 0))
UNION ALL
(SELECT zip, 'most figures gone' FROM zip_changes WHERE lost > 0 AND fate <> 'lost' ORDER BY lost DESC, zip LIMIT 1)
UNION ALL
(SELECT zip, 'most figures new' FROM zip_changes WHERE gained > 0 AND fate <> 'gained' ORDER BY gained DESC, zip LIMIT 1)
UNION ALL
(SELECT zip, 'another location' FROM zip_changes WHERE fate = 'changed' ORDER BY zip LIMIT 1)

-- name: example_figures
-- The figures of some ZIP codes that differ: changed ones first, then removed ones, then new ones.
SELECT zip, figure, old, new FROM placed_figures
WHERE zip IN (SELECT unnest(?::INTEGER[])) AND old IS DISTINCT FROM new ORDER BY zip, old IS NULL, new IS NULL, ordinal

-- name: example_places
-- The locations of some ZIP codes, before and after.
SELECT zip_code::INTEGER AS zip, was_city_name, was_state, was_county_name, was_county, was_latitude, was_longitude,
       city_name, state, county_name, county, latitude, longitude
FROM changed_places WHERE zip IN (SELECT unnest(?::INTEGER[])) ORDER BY zip

-- name: figure_steps
-- Some figures by ZIP codes: how many are in each step of relative change, and in each step of size, old and new.
WITH chosen AS (SELECT figure, old, new FROM placed_figures WHERE figure::VARCHAR IN (SELECT unnest(?::VARCHAR[])))
SELECT figure, 'changes', (share >= -0.5)::TINYINT + (share >= -0.2)::TINYINT + (share >= -0.05)::TINYINT
       + (share >= -0.01)::TINYINT + (share >= 0)::TINYINT + (share > 0)::TINYINT + (share > 0.01)::TINYINT
       + (share > 0.05)::TINYINT + (share > 0.2)::TINYINT + (share > 0.5)::TINYINT AS step, count(*)
FROM (SELECT figure, new / old - 1 AS share FROM chosen WHERE old > 0 AND new IS NOT NULL) GROUP BY figure, step
UNION ALL
SELECT figure, 'old', CASE WHEN old = 0 THEN 0 ELSE least(6, length(old::VARCHAR)) END AS step, count(*) FROM chosen
WHERE old IS NOT NULL GROUP BY figure, step
UNION ALL
SELECT figure, 'new', CASE WHEN new = 0 THEN 0 ELSE least(6, length(new::VARCHAR)) END AS step, count(*) FROM chosen
WHERE new IS NOT NULL GROUP BY figure, step

-- name: write_changed_figures
-- Writes every figure that differs to a file: ZIP code, figure, both values.
COPY (SELECT zip_code, figure, old, new FROM placed_figures
      WHERE old IS DISTINCT FROM new ORDER BY zip_code, figure::VARCHAR) TO '{path}' (FORMAT {form})

-- name: changed_zip_codes
-- The number of ZIP codes with a figure that differs.
SELECT count(*) FROM zip_changes WHERE changed + gained + lost > 0

-- name: count_places
-- The numbers of ZIP codes in both releases, and of those whose city, state, county or coordinates changed.
SELECT count(*) FILTER (fate <> 'gained'), count(*) FILTER (fate <> 'lost'), count(*) FILTER (fate = 'changed') FROM paired_places

-- name: locations_gained_and_lost
-- For each state, the numbers of ZIP codes gained and lost.
SELECT state, count(*) FILTER (fate = 'gained'), count(*) FILTER (fate = 'lost') FROM paired_places
WHERE fate IN ('gained', 'lost') GROUP BY state ORDER BY state

-- name: place_samples
-- Some ZIP codes that only the new release has, or only the old one.
SELECT zip_code FROM paired_places WHERE fate = ? ORDER BY zip_code LIMIT ?

-- name: count_rows
-- The number of rows of a table.
SELECT count(*) FROM {rows}

-- name: records_changed
-- Records by id: how many there were, and how many were added, removed and changed, those of them that have the values of
-- another id, and some ids that were removed.
WITH old AS (SELECT {id} AS id, hash({columns}) AS content FROM {old}), new AS (SELECT {id} AS id, hash({columns}) AS content FROM {new})
SELECT count(o.id), count(*) FILTER (o.id IS NULL), count(*) FILTER (n.id IS NULL), count(*) FILTER (o.content <> n.content),
       count(*) FILTER (o.content <> n.content AND n.content IN (SELECT content FROM old GROUP BY content HAVING count(*) = 1)), coalesce(min(o.id, 5) FILTER (n.id IS NULL), [])
FROM old o FULL JOIN new n ON o.id = n.id

-- name: states_emptied
-- States with 50 or more records, all of which are gone.
SELECT o.state_code, count(*) FROM {old} o LEFT JOIN {new} n ON n.{id} = o.{id}
GROUP BY o.state_code HAVING count(*) >= 50 AND count(n.{id}) = 0 ORDER BY o.state_code

-- name: column_moves
-- How many records were changed in a column, how many numbers grew or shrank more than fivefold, the commonest changes, and what
-- nearly all of them suggest: day and month exchanged, dates off by some days, two values exchanged, values shuffled, a value or a few for many others,
-- or all records of a value turned into another. Last, the city of nearly all. Numbers repeat, so a new one that is an old one elsewhere shows no shuffle.
WITH moved AS (
    SELECT o.{column}::VARCHAR AS old, n.{column}::VARCHAR AS new, o.city_name FROM {old} o JOIN {new} n ON o.{id} = n.{id} WHERE o.{column} IS DISTINCT FROM n.{column}
), moves AS (
    SELECT old, new, count(*) AS number FROM moved GROUP BY ALL
)
SELECT coalesce(sum(number), 0)::BIGINT AS changed, coalesce(sum(number) FILTER ({isnumber} AND greatest(was, now) >= 20 AND greatest(was, now) > 5 * least(was, now)), 0)::BIGINT AS leaping,
       coalesce(list(format('{} to {} ({:,})', coalesce(old, 'null'), coalesce(new, 'null'), number) ORDER BY number DESC, old, new)[:5], []),
       CASE WHEN sum(number) FILTER (new = regexp_replace(old, '^(\d{4})-(\d\d)-(\d\d)$', '\1-\3-\2')) > 0.9 * changed THEN 'day and month may be exchanged'
            WHEN sum(number) FILTER (later = usual) > 0.9 * changed
            THEN format('days are {:+} off; times may have been converted to another zone, or days counted from another date', any_value(usual))
            WHEN sum(number) FILTER ((new, old) IN (SELECT (old, new) FROM moves)) > 0.9 * changed
            THEN CASE WHEN count(DISTINCT old) > 4 THEN 'values may be shuffled among records, or looked up wrongly' ELSE 'two values may be exchanged' END
            WHEN '{column}' NOT LIKE '%date' AND NOT {isnumber} AND count(DISTINCT old) >= 50 AND sum(number) FILTER (new IN (SELECT old FROM moves)) > 0.9 * changed
            THEN 'values may be shuffled among records, or looked up wrongly'
            WHEN '{column}' NOT LIKE '%date' AND (count(DISTINCT old) >= 5 OR count(old) = 0 AND (SELECT count(DISTINCT {column}) FROM {old}) >= 5) AND (max(number_of_new) > 0.9 * changed
                 OR count(new) > 0.9 * count(*) AND count(DISTINCT new) < 0.05 * count(DISTINCT old))
            THEN 'one value, or a few, may have been filled in'
            WHEN count(lost) > 0 AND 5 * leaping < changed THEN format('all that had {} have another value now; a default may have replaced it', min(lost)) END,
       (SELECT CASE WHEN list_max(map_values(histogram(city_name))) > 0.9 * count(*) THEN mode(city_name) END FROM moved)
FROM (SELECT *, TRY_CAST(old AS BIGINT) AS was, TRY_CAST(new AS BIGINT) AS now,
             sum(number) FILTER (new IS NOT NULL) OVER (PARTITION BY new) AS number_of_new, mode(later) OVER () AS usual
      FROM (SELECT *, TRY_CAST(new AS DATE) - TRY_CAST(old AS DATE) AS later FROM moves))
LEFT JOIN (SELECT m.old AS lost FROM moves m JOIN {old} o ON o.{column}::VARCHAR = m.old WHERE lower(m.old) <> lower(m.new)
           GROUP BY m.old, m.new HAVING any_value(m.number) > 0.95 * count(*) AND count(*) > 20 + 0.05 * (SELECT count(*) FROM {old})
               AND m.new IN (SELECT {column}::VARCHAR FROM {old})) ON lost = old
