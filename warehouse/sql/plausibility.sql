-- name: figures_shuffled
-- States where a figure hardly resembles its former values. Real revisions: likeness of 0.995 or more.
SELECT state, figure, 1 - likeness AS measured, pairs AS count,
       format('{} in {}: likeness {:.2f} over {} ZIP codes', figure, state, likeness, pairs) AS detail
FROM state_figures WHERE pairs >= 20 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC, state, figure

-- name: figures_misplaced
-- States where most figures that changed by over a third are the former ones of other ZIP codes of the state.
SELECT state, figure, count(*) FILTER (is_misplaced) AS measured, count(*) FILTER (is_misplaced) AS count,
       format('{} in {}: {} ZIP codes, such as {} from {:,} to {:,}', figure, state, count, max_by(zip_code, new) FILTER (is_misplaced),
              max_by(old, new) FILTER (is_misplaced), max(new) FILTER (is_misplaced)) AS detail
FROM (SELECT m.*, EXISTS (FROM placed_figures o WHERE o.state = m.state AND o.ordinal = m.ordinal AND o.old = m.new AND o.zip <> m.zip)
                  AS is_misplaced
      FROM moved_figures m WHERE m.new >= 500 AND abs(m.move) > 0.3)
GROUP BY state, figure HAVING measured > {limit} AND measured > 0.6 * count(*) ORDER BY measured DESC, state, figure

-- name: figures_moved
-- States where many ZIP codes of 500 or more moved by over a third.
SELECT state, figure, moved / large AS measured, moved AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, moved, large) AS detail
FROM state_figures WHERE large >= 20 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC, state, figure

-- name: figures_multiplied
-- States where many figures of 50 or more became a whole multiple of what they were, up to twenty times.
SELECT state, figure, count(*) FILTER (new > old AND new % old = 0 AND new <= 20 * old) / count(*) AS measured,
       count(*) FILTER (new > old AND new % old = 0 AND new <= 20 * old) AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, count, count(*)) AS detail
FROM placed_figures WHERE old >= 50 AND new IS NOT NULL AND state IS NOT NULL
GROUP BY state, figure HAVING count(*) >= 20 AND measured > {limit} ORDER BY measured DESC, state, figure

-- name: figures_of_a_part
-- States where nearly every figure of 500 or more shrank by over 10%, or nearly every one grew from under 90%.
SELECT state, figure, greatest(shrunk, grown) / large AS measured, greatest(shrunk, grown) AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, greatest(shrunk, grown), large) AS detail
FROM state_figures WHERE large >= 20 AND measured > {limit} ORDER BY measured DESC, state, figure

-- name: state_drift
-- States where the total of a figure moved far, over the ZIP codes that have it in both releases.
SELECT state, figure, abs(new_total / old_total - 1) AS measured, changed AS count,
       format('{} in {}: {:,} to {:,} ({:+.1f}%)', figure, state, old_total::BIGINT, new_total::BIGINT,
              100 * (new_total / old_total - 1)) AS detail
FROM state_figures WHERE old_total >= 20000 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC, state, figure

-- name: uniform_scale
-- Figures that moved by the same share almost everywhere in a state; those that may still be revised, five times as far.
SELECT state, figure, abs(share) AS measured, large AS count,
       format('{} in {}: {:+.1f}% in nearly every ZIP code', figure, state, 100 * share) AS detail
FROM (SELECT *, exp(spread[2]) - 1 AS share, spread[3] - spread[1] AS width FROM state_figures WHERE large >= 20)
WHERE measured > {limit} * CASE WHEN open THEN 5 ELSE 1 END AND width < 0.25 * abs(spread[2])
ORDER BY measured DESC, state, figure

-- name: repeated_figure
-- Pairs of figures that are equal in many ZIP codes of 1,000 or more of a state. In real drops, at most 13% are.
SELECT x.state, y.figure, avg((x.new = y.new)::INTEGER) AS measured, count(*) AS count,
       format('{} is {} in {:.0f}% of ZIP codes of {}', y.figure, x.figure, 100 * measured, x.state) AS detail
FROM figure_sample x JOIN figure_sample y ON x.zip = y.zip AND x.ordinal < y.ordinal
WHERE x.new >= 1000 AND y.new >= 1000
GROUP BY x.state, x.figure, y.figure HAVING count(*) >= 8 AND measured > {limit} ORDER BY measured DESC, x.state, y.figure

-- name: figures_exchanged
-- Changed figures that resemble the former values of another figure better than their own, by states. Measured is how
-- much better: 1 if they are exactly the other's. Demand is always close to homes, so it must be closer still. With slower
-- growth, 2031 may look exactly like the former 2030; so figures that may still be revised must look like each other, or
-- three of them be shifted by as many years.
WITH own AS (
    SELECT state, figure, avg(abs(ln((new + 1) / (old + 1)))) AS distance FROM figure_sample
    WHERE old IS NOT NULL AND new IS NOT NULL GROUP BY state, figure HAVING count(*) >= 8 AND distance > 0.004
), others AS (
    SELECT n.state, n.figure, o.figure AS other, any_value(n.open AND o.open) AS both_open,
           any_value(o.ordinal - n.ordinal) AS shift,
           any_value(own.distance) AS distance, avg(abs(ln((n.new + 1) / (o.old + 1)))) AS to_other, count(*) AS number
    FROM own JOIN figure_sample n ON n.state = own.state AND n.figure = own.figure
    JOIN figure_sample o ON o.zip = n.zip AND o.ordinal <> n.ordinal
    WHERE n.new IS NOT NULL AND o.old IS NOT NULL GROUP BY n.state, n.figure, o.figure HAVING count(*) >= 8
), nearest AS (
    SELECT *, 1 - to_other / distance AS measured FROM others
    QUALIFY row_number() OVER (PARTITION BY state, figure ORDER BY to_other) = 1
), shifts AS (
    SELECT state, shift FROM nearest WHERE both_open AND measured > 0.98 GROUP BY state, shift HAVING count(*) >= 3
)
SELECT one.state, one.figure, one.measured, one.number AS count,
       format('{} in {} looks like the former {}', one.figure, one.state, one.other) AS detail
FROM nearest one LEFT JOIN nearest back
    ON back.state = one.state AND back.figure = one.other AND back.other = one.figure
WHERE one.measured > CASE WHEN starts_with(one.figure, 'est_') <> starts_with(one.other, 'est_')
                          THEN (1 + {limit}) / 2 ELSE {limit} END
    AND (NOT one.both_open OR back.figure IS NOT NULL OR (one.state, one.shift) IN (SELECT (state, shift) FROM shifts))
ORDER BY one.measured DESC, one.state, one.figure

-- name: coverage_lost_in_state
-- States where many ZIP codes lost a figure that others keep.
SELECT state, figure, lost / old_count AS measured, lost AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, lost, old_count) AS detail
FROM state_figures
WHERE (lost >= 20 OR new_count = 0 AND lost >= 3) AND measured > {limit} * (1 + open::INTEGER)
      AND figure IN (SELECT figure FROM state_figures WHERE new_count > 0)
      AND state IN (SELECT state FROM new_places)
ORDER BY measured DESC, state, figure

-- name: zeros_gained
-- States where a figure of many ZIP codes, small ones as well, became 0. In real drops, at most 5 do, 1.4% of a state.
SELECT state, figure, zeroed / (old_count - lost) AS measured, zeroed AS count,
       format('{} in {}: {} of {} ZIP codes', figure, state, zeroed, old_count - lost) AS detail
FROM state_figures WHERE zeroed >= 20 AND measured > {limit} * (1 + open::INTEGER)
ORDER BY measured DESC, state, figure

-- name: coverage_lost_in_county
-- Counties of ten or more ZIP codes with a figure, most of which lost it.
SELECT any_value(p.state) AS state, p.figure, count(*) FILTER (p.new IS NULL) / count(*) AS measured,
       count(*) FILTER (p.new IS NULL) AS count,
       format('{} in {}, {}: {} of {} ZIP codes', p.figure, any_value(o.county_name), any_value(p.state),
              count(*) FILTER (p.new IS NULL), count(*)) AS detail
FROM placed_figures p JOIN old_places o ON o.zip_code = p.zip_code
WHERE p.old IS NOT NULL AND o.county IS NOT NULL
    AND p.figure IN (SELECT figure FROM state_figures GROUP BY figure HAVING sum(new_count) > 0 AND sum(lost) >= 10)
GROUP BY o.county, p.figure HAVING count(*) >= 10 AND measured > {limit} ORDER BY measured DESC, count DESC, detail

-- name: series_drift
-- States whose total moves far from one year to the next, as a share per year. In real drops, at most 2.4%. If only the
-- first step is far, the first year is the odd one.
SELECT state, CASE WHEN prior IS NULL AND NOT coalesce(next > {limit}, false) THEN before ELSE figure END AS figure,
       measured, pairs AS count,
       format('{} in {}: {:,}, after {:,} in {}', figure, state, new_total::BIGINT, old_total::BIGINT, right(before, 4)) AS detail
FROM (SELECT *, abs(new_total / old_total - 1) / gap AS measured, lag(measured) OVER series AS prior,
             lead(measured) OVER series AS next
      FROM state_series WHERE old_total >= 20000 WINDOW series AS (PARTITION BY state, kind ORDER BY figure))
WHERE measured > {limit} ORDER BY measured DESC, state, figure

-- name: series_shuffled
-- States where a year hardly resembles the year before it. In real drops, likeness is 0.97 or more.
SELECT state, figure, 1 - likeness AS measured, pairs AS count,
       format('{} in {}: likeness {:.2f} to {}', figure, state, likeness, before) AS detail
FROM state_series WHERE pairs >= 20 AND measured > {limit}
ORDER BY measured DESC, state, figure

-- name: series_leap
-- Years in which many ZIP codes of 500 or more change by more than five times. In real drops, at most 24 do.
SELECT NULL AS state, figure, sum(leaps) AS measured, sum(leaps) AS count,
       format('{} after {}: {} ZIP codes', figure, any_value(before), sum(leaps)::BIGINT) AS detail
FROM state_series GROUP BY figure HAVING measured > {limit} ORDER BY measured DESC, state, figure

-- name: zeros_in_series
-- Years that are 0 in many ZIP codes that have 500 or more in the year before or after. In real drops, at most 6 are.
SELECT NULL AS state, figure, max(zeros) AS measured, max(zeros) AS count, format('{}: {} ZIP codes', figure, max(zeros)) AS detail
FROM (SELECT figure, sum(zeros)::BIGINT AS zeros FROM state_series GROUP BY figure
      UNION ALL SELECT before, sum(zeros_before)::BIGINT FROM state_series GROUP BY before)
GROUP BY figure HAVING measured > {limit} ORDER BY measured DESC, figure

-- name: demand_growth
-- States where demand grows from homes otherwise than before in many counties of 2,000 homes or more, and where both growths
-- hardly agree (coefficient of concordance, Lin 1989). In real drops, it does in at most 21% of them. In territories, rates
-- are uncertain.
SELECT state, 'est_total_home_demand_2030' AS figure, avg((abs(now - was) > 0.03)::INTEGER) AS measured, sum(places)::BIGINT AS count,
       format('demand in {}: {:+.1f}% from homes, was {:+.1f}%', state, 100 * (exp(median(now)) - 1), 100 * (exp(median(was)) - 1)) AS detail
FROM (SELECT n.state, count(*) AS places, sum(h.new) AS homes, greatest(-0.2, least(0.2, ln(sum(d.old) / sum(h.old)))) AS was,
             greatest(-0.2, least(0.2, ln(sum(d.new) / sum(h.new)))) AS now
      FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
      JOIN new_places n ON n.zip_code = d.zip_code JOIN known_states s ON s.code = n.state AND s.fips < '60'
      WHERE d.figure = 'est_total_home_demand_2030' AND least(d.old, d.new, h.old, h.new) > 0 AND d.new + h.new + d.old + h.old IS NOT NULL
      GROUP BY n.state, n.county HAVING homes >= 2000)
GROUP BY state HAVING count(*) >= 9 AND measured > {limit}
    AND 2 * covar_pop(was, now) < 0.5 * (var_pop(was) + var_pop(now) + pow(avg(was) - avg(now), 2))
ORDER BY measured DESC, state

-- name: people_lost
-- The share of the people, in the last counted year of the old release, whose ZIP code is gone.
SELECT p.state, any_value(p.figure) AS figure, sum(p.old) FILTER (z.fate = 'lost') / sum(p.old) AS measured,
       count(*) FILTER (z.fate = 'lost' AND p.old > 0) AS count,
       format('{:,} people in {:,} ZIP codes of {}', sum(p.old) FILTER (z.fate = 'lost')::BIGINT, count, coalesce(p.state, 'the country')) AS detail
FROM placed_figures p JOIN paired_places z ON z.zip = p.zip
WHERE p.figure = (SELECT max_by(figure, year) FROM known_figures WHERE kind = '0 people' AND NOT open)
GROUP BY GROUPING SETS ((), (p.state)) HAVING measured > {limit} * CASE WHEN p.state IS NULL THEN 1 ELSE 10 END
ORDER BY measured DESC, p.state

-- name: people_per_home
-- States with far more or fewer people for each home than 2.25, year by year. In real drops, 1.85 to 2.80.
SELECT h.state, h.figure, abs(sum(p.new) / sum(h.new) / 2.25 - 1) AS measured, count(*) AS count,
       format('{} in {}: {:.2f} people for each home', h.figure, h.state, sum(p.new) / sum(h.new)) AS detail
FROM known_figures homes JOIN known_figures people ON people.year = homes.year AND people.kind = '0 people'
JOIN placed_figures h ON h.ordinal = homes.ordinal JOIN placed_figures p ON p.ordinal = people.ordinal AND p.zip = h.zip
WHERE homes.kind = '1 homes' AND h.new IS NOT NULL AND p.new IS NOT NULL
GROUP BY h.state, h.figure HAVING sum(h.new) >= 20000 AND measured > {limit} ORDER BY measured DESC, state, figure

-- name: demand_beside_homes
-- Counties of 5,000 homes or more whose demand for homes is far from the homes they have. In real drops, at most 24% more.
SELECT n.state, d.figure, abs(sum(d.new) / sum(h.new) - 1) AS measured, count(*) AS count,
       format('{} in {}, {}: {:,}, with {:,} in {}', d.figure, any_value(n.county_name), n.state, sum(d.new)::BIGINT,
              sum(h.new)::BIGINT, any_value(h.figure)) AS detail
FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
JOIN new_places n ON n.zip_code = d.zip_code
WHERE d.figure = 'est_total_home_demand_2030' AND d.new IS NOT NULL AND h.new IS NOT NULL
GROUP BY n.state, n.county, d.figure HAVING sum(h.new) >= 5000 AND measured > {limit} ORDER BY measured DESC, n.state, d.figure

-- name: homes_unlike_people
-- States where homes hardly correlate with people, or demand with homes. In real drops, likeness is 0.83 or more.
SELECT h.state, h.figure, 1 - coalesce(nullif(corr(ln(o.new), ln(h.new)), 'NaN'), 0) AS measured, count(*) AS count,
       format('{} in {}: likeness {:.2f} to {}', h.figure, h.state, 1 - measured, any_value(o.figure)) AS detail
FROM known_figures one JOIN known_figures other
    ON one.kind = '1 homes' AND other.kind = '0 people' AND other.year = one.year
       OR one.kind = '2 demand' AND other.figure = 'tot_home_available_2023'
JOIN placed_figures h ON h.ordinal = one.ordinal JOIN placed_figures o ON o.ordinal = other.ordinal AND o.zip = h.zip
WHERE h.new >= 200 AND o.new >= 200
GROUP BY h.state, h.figure HAVING count(*) >= 20 AND measured > {limit} ORDER BY measured DESC, state, figure

-- name: slow_drift
-- Figures whose total moved far from that of the baseline release, in the country or, twice as far, in a state.
SELECT state, figure, abs(new_total / old_total - 1) AS measured, pairs AS count,
       format('{} in {}: {:,} to {:,} ({:+.1f}%)', figure, coalesce(state, 'the country'),
              old_total::BIGINT, new_total::BIGINT, 100 * (new_total / old_total - 1)) AS detail
FROM since_baseline
WHERE old_total >= 20000 AND measured > {limit} * (1 + open::INTEGER) * CASE WHEN state IS NULL THEN 1 ELSE 2 END
ORDER BY measured DESC, state, figure

-- name: slow_loss
-- Figures that many ZIP codes of the baseline release lack now, in the country or, five times as many, in a state.
SELECT state, figure, lost / total AS measured, lost AS count,
       format('{} in {}: {:,} of {:,} ZIP codes', figure, coalesce(state, 'the country'), lost, total) AS detail
FROM since_baseline
WHERE lost >= 20 AND pairs > 0 AND measured > {limit} * (1 + open::INTEGER) * CASE WHEN state IS NULL THEN 1 ELSE 5 END
ORDER BY measured DESC, state, figure

-- name: sparse_figure
-- Figures that hardly any ZIP code has, of those with another year or housing figure. In real drops, at most 13% lack one.
SELECT NULL AS state, figure, 1 - number / max(number) OVER (PARTITION BY kind = '0 people') AS measured, number AS count,
       format('{} in {:,} ZIP codes', figure, number) AS detail
FROM (SELECT figure, any_value(kind) AS kind, sum(new_count)::BIGINT AS number
      FROM state_figures JOIN known_figures USING (figure) GROUP BY figure HAVING number > 0)
QUALIFY measured > {limit} ORDER BY measured DESC, figure

-- name: years_exchanged
-- ZIP codes in which two past years have each other's old value. In real drops, none do.
WITH changed AS (SELECT *, ordinal >= 10000 AS of_homes FROM placed_figures WHERE old <> new AND NOT open)
SELECT one.state, one.figure, count(*) AS measured, count(*) AS count,
       format('{} and {} in {}: {} ZIP codes, such as {}', one.figure, other.figure, one.state, count(*), min(one.zip_code)) AS detail
FROM changed one JOIN changed other ON other.zip = one.zip AND other.of_homes = one.of_homes AND other.ordinal > one.ordinal
    AND one.new = other.old AND other.new = one.old
GROUP BY one.state, one.figure, other.figure HAVING measured > {limit} ORDER BY measured DESC, one.state, one.figure

-- name: homes_are_people
-- ZIP codes whose homes moved far and equal their people of the same year.
SELECT h.state, h.figure, count(*) AS measured, count(*) AS count,
       format('{} in {}: {} ZIP codes, such as {} with {:,}', h.figure, h.state, count(*), min(h.zip_code), min_by(h.new, h.zip_code)) AS detail
FROM moved_figures h JOIN known_figures homes ON homes.ordinal = h.ordinal AND homes.kind = '1 homes'
JOIN known_figures people ON people.kind = '0 people' AND people.year = homes.year
JOIN placed_figures p ON p.ordinal = people.ordinal AND p.zip = h.zip AND p.new = h.new
GROUP BY h.state, h.figure HAVING measured > {limit} ORDER BY measured DESC, h.state, h.figure

-- name: forecast_against_trend
-- States where the growth to the last forecast does not follow that of the last five or six counted years. In real drops, the
-- correlation of both is 0.38 or more.
WITH counted AS (SELECT ordinal, max(ordinal) OVER () AS last FROM known_figures WHERE kind = '0 people' AND NOT open)
SELECT l.state, any_value(a.figure) AS figure, -corr(ln(l.new / f.new), ln(a.new / l.new)) AS measured, count(*) AS count,
       format('{} in {}: correlation {:.2f} with the growth from {} to {}', any_value(a.figure), l.state, -measured,
              any_value(f.ordinal), any_value(l.ordinal)) AS detail
FROM figure_sample l JOIN figure_sample f ON f.zip = l.zip JOIN figure_sample a ON a.zip = l.zip
WHERE l.ordinal = (SELECT max(last) FROM counted) AND f.ordinal = (SELECT min(ordinal) FROM counted WHERE ordinal >= last - 6)
    AND a.ordinal = (SELECT max(ordinal) FROM known_figures WHERE kind = '0 people' AND open) AND least(l.new, f.new, a.new) >= 500
GROUP BY l.state HAVING count(*) >= 20 AND measured > {limit} ORDER BY measured DESC, l.state

-- name: county_scale
-- Counties in which nearly every figure of 200 or more changed by the same share.
SELECT c.state, c.figure, abs(exp(c.spread[2]) - 1) AS measured, c.moved AS count,
       format('{} in {}, {}: {:+.1f}% in nearly every ZIP code', c.figure, n.county_name, c.state, 100 * (exp(c.spread[2]) - 1)) AS detail
FROM (SELECT county, ordinal, any_value(state) AS state, any_value(figure) AS figure, any_value(open) AS open, count(*) AS moved,
             quantile_cont(move, [0.1, 0.5, 0.9]) AS spread
      FROM moved_figures WHERE least(old, new) > 0 GROUP BY county, ordinal
      HAVING count(*) >= 4 AND spread[3] - spread[1] < 0.25 * abs(spread[2])) c
JOIN (SELECT county, any_value(county_name) AS county_name, list(zip_code::INTEGER) AS zips FROM new_places GROUP BY county) n
    ON n.county = c.county
WHERE measured > {limit} * (1 + c.open::INTEGER) AND c.moved >= 0.8 * (
    SELECT count(*) FROM placed_figures p
    WHERE p.ordinal = c.ordinal AND list_contains(n.zips, p.zip) AND greatest(p.old, p.new) >= 200 AND least(p.old, p.new) > 0)
ORDER BY measured DESC, c.state, c.figure

-- name: figures_rounded
-- States where figures of 200 or more are multiples of 5, of 30 different ones or more. In real drops, 21% are.
SELECT state, figure, count(*) FILTER (new % 5 = 0) / count(*) AS measured, count(*) FILTER (new % 5 = 0) AS count,
       format('{} in {}: {:.0f}% are multiples of {}', figure, state, 100 * measured,
              CASE WHEN count(*) FILTER (new % 100 = 0) > {limit} * count(*) THEN 100
                   WHEN count(*) FILTER (new % 10 = 0) > {limit} * count(*) THEN 10 ELSE 5 END) AS detail
FROM placed_figures WHERE new >= 200 AND state IS NOT NULL GROUP BY state, figure HAVING count(DISTINCT new) >= 30 AND measured > {limit}
ORDER BY measured DESC, state, figure

-- name: interpolated_year
-- Counted years of 1,000 people or more that are the mean of the years before and after, more often than years are on
-- average. In real drops, 0.6% are.
WITH means AS (
    SELECT p.figure, avg((abs(2 * p.new - b.new - a.new) <= 1)::INTEGER) AS share, count(*) AS count
    FROM figure_sample p JOIN figure_sample b ON b.zip = p.zip AND b.ordinal = p.ordinal - 1
    JOIN figure_sample a ON a.zip = p.zip AND a.ordinal = p.ordinal + 1
    WHERE p.new >= 1000 AND NOT p.open AND p.ordinal < 10000 AND b.new IS NOT NULL AND a.new IS NOT NULL
    GROUP BY p.figure HAVING count(*) >= 100
)
SELECT NULL AS state, figure, share - avg(share) OVER () AS measured, count,
       format('{}: {:.0f}% of ZIP codes', figure, 100 * share) AS detail
FROM means QUALIFY measured > {limit} ORDER BY measured DESC, figure

-- name: figures_rewritten
-- Figures of past years that moved unevenly in many states, if most figures did. A revision changes a few of them.
WITH uneven AS (
    SELECT figure, avg((spread[3] - spread[1] > 0.03)::INTEGER) AS measured, sum(changed)::BIGINT AS count
    FROM state_figures WHERE NOT open AND large >= 20 GROUP BY figure
)
SELECT NULL AS state, figure, measured, count, format('{} in {:.0f}% of states', figure, 100 * measured) AS detail
FROM uneven WHERE measured > {limit} AND (SELECT avg((measured > {limit})::INTEGER) FROM uneven) > {limit}
ORDER BY measured DESC, figure

-- name: states_apart
-- States in which a figure of a past year moved by the same share nearly everywhere, up to 10%, while it stayed in others.
WITH moves AS (
    SELECT state, figure, large, exp(spread[2]) - 1 AS share, spread[3] - spread[1] < 0.5 * abs(spread[2]) AS even,
           avg((abs(spread[2]) < 0.002)::INTEGER) OVER (PARTITION BY figure) AS staying
    FROM state_figures WHERE NOT open AND large >= 20
)
SELECT state, figure, abs(share) AS measured, large AS count,
       format('{} in {}: {:+.1f}% in nearly every ZIP code', figure, state, 100 * share) AS detail
FROM moves WHERE even AND measured > {limit} AND measured < 0.1 AND staying > 0.2 ORDER BY measured DESC, state, figure

-- name: sum_up_cells
-- Failing figures: how many ZIP codes, whether they may still be revised, and the largest of them.
SELECT figure, bool_or(open), count(*), max_by(zip_code, greatest(old, new)),
       max_by(old, greatest(old, new)), max_by(new, greatest(old, new))
FROM ({faults}) GROUP BY figure ORDER BY count(*) DESC, figure

-- name: leaping_figure
-- Figures that became more than five times as large or as small, where one of both is 500 or more.
SELECT * FROM placed_figures WHERE greatest(old, new) >= 500 AND abs(ln((new + 1) / (old + 1))) > ln(5)

-- name: absurd_figure
-- Figures that became more than twenty times as large, and 5,000 or more.
SELECT * FROM placed_figures WHERE new >= 5000 AND new > 20 * old

-- name: figures_wrapped
-- Figures that lost a multiple of 65,536 or 256, or their last digits, if most of those that fell by over half did: a few
-- do by chance.
SELECT * EXCLUDE (is_wrapped)
FROM (SELECT *, old >= 65536 AND (old - new) % 65536 = 0 OR new BETWEEN 1 AND 255 AND (old - new) % 256 = 0
             OR old >= 10000 AND new IN (old // 10, old // 100) AS is_wrapped
      FROM placed_figures WHERE new < old / 2)
QUALIFY is_wrapped AND avg(is_wrapped::INTEGER) OVER (PARTITION BY ordinal) > 0.8

-- name: zeroed_figure
-- Figures of 200 or more that became 0.
SELECT * FROM placed_figures WHERE new = 0 AND old >= 200

-- name: zeros_filled
-- Figures that were unknown and are 0, or that of the ZIP code before, of ZIP codes and figures that the old release has.
SELECT p.* FROM placed_figures p SEMI JOIN old_places o ON o.zip_code = p.zip_code
LEFT JOIN (SELECT zip_code, lag(zip_code::INTEGER) OVER (ORDER BY zip_code) AS before FROM new_places) b ON b.zip_code = p.zip_code
LEFT JOIN placed_figures c ON c.zip = b.before AND c.ordinal = p.ordinal
WHERE p.old IS NULL AND (p.new = 0 OR p.new = c.new)
    AND p.figure IN (SELECT figure FROM state_figures GROUP BY figure HAVING sum(old_count) > 0)

-- name: figures_levelled
-- Numbers that too many ZIP codes with different figures have now. In real drops, at most 43 do.
SELECT p.* FROM placed_figures p
SEMI JOIN (SELECT ordinal::BIGINT * 10000000 + new AS key FROM placed_figures WHERE old <> new AND new > 0
           GROUP BY key HAVING count(*) > {limit} AND count(DISTINCT old) > 10) r
    ON r.key = p.ordinal::BIGINT * 10000000 + p.new
WHERE p.old <> p.new

-- name: sentinel_figure
-- Numbers that systems write for "unknown", where the old release has another. Four ZIP codes may have 9999 by chance.
SELECT * FROM placed_figures WHERE new IN (9999, 99999, 999999) AND new IS DISTINCT FROM old
QUALIFY new > 9999 OR count(*) OVER (PARTITION BY ordinal, new) > 4

-- name: repeated_value
-- Numbers of 1,000 or more that too many ZIP codes share, or a third as many of one county. In real drops, at most 16 do, and two.
-- Figure and number are one key: counting by two takes twice as long.
SELECT p.*
FROM placed_figures p
JOIN (SELECT ordinal::BIGINT * 10000000 + new AS key, count(*) AS copies FROM placed_figures WHERE new >= 1000
      GROUP BY key HAVING copies > {limit}) r ON r.key = p.ordinal::BIGINT * 10000000 + p.new
LEFT JOIN new_places n ON n.zip_code = p.zip_code
QUALIFY copies > 3 * {limit} OR count(n.county) OVER (PARTITION BY r.key, n.county) > {limit}

-- name: sum_up_places
-- Failing ZIP codes for each state, and some of them.
SELECT state, count(*), min_by(concat_ws(' ', zip_code, value), zip_code, 3) FROM ({faults}) GROUP BY state

-- name: places_by_state
-- The number of ZIP codes in each state.
SELECT state, count(*) FROM {among} GROUP BY state ORDER BY state

-- name: zip_codes_lost
-- ZIP codes that the old release has and the new one lacks.
SELECT state, zip_code, 'zip_code' AS "column", city_name AS value FROM old_places ANTI JOIN new_places USING (zip_code)

-- name: place_value_lost
-- ZIP codes that lost a county or coordinates.
SELECT was_state AS state, zip_code, city_name AS value FROM changed_places
WHERE was_county IS NOT NULL AND county IS NULL OR was_county_name IS NOT NULL AND county_name IS NULL
    OR was_latitude IS NOT NULL AND latitude IS NULL OR was_longitude IS NOT NULL AND longitude IS NULL

-- name: moved_place
-- ZIP codes whose coordinates are more than 25 km from the former ones.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{}, by {:,.0f} km', city_name, km) AS value
FROM (SELECT *, 111.2 * sqrt(pow(latitude - was_latitude, 2)
                           + pow((longitude - was_longitude) * cos(radians(was_latitude)), 2)) AS km FROM changed_places)
WHERE km > 25

-- name: other_city
-- ZIP codes whose city is now one that other ZIP codes of the state had before. New names are renamed cities.
SELECT was_state AS state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM changed_places c SEMI JOIN old_places known ON known.state = c.state AND known.city = c.city WHERE city <> was_city

-- name: renamed_city
-- ZIP codes whose city has another name, beyond case, accents, and punctuation.
SELECT was_state AS state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM changed_places WHERE city <> was_city

-- name: renamed_county
-- ZIP codes whose county has the same code and another name.
SELECT was_state AS state, zip_code, 'county_name' AS "column", format('{}, was {}', county_name, was_county_name) AS value
FROM changed_places WHERE county = was_county AND county_name <> was_county_name

-- name: respelled_city
-- ZIP codes whose city has another spelling: case, accents, spaces or punctuation.
SELECT was_state AS state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM changed_places WHERE city = was_city AND city_name <> was_city_name

-- name: name_cut
-- ZIP codes whose city or county is only the beginning of its former name, or the city the end.
SELECT was_state AS state, zip_code, 'city_name, county_name' AS "column",
       format('{}, was {}', concat_ws(', ', city_name, county_name), concat_ws(', ', was_city_name, was_county_name)) AS value
FROM changed_places
WHERE length(city_name) < length(was_city_name) AND starts_with(was_city_name, city_name)
    OR length(city_name) < length(was_city_name) AND ends_with(was_city_name, ' ' || city_name)
    OR length(county_name) < length(was_county_name) AND starts_with(was_county_name, county_name)

-- name: word_replaced
-- ZIP codes in whose city one word was replaced by another, where it was in five or more cities. Words of up to three letters
-- are abbreviations, which queries match in any case.
SELECT state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM (SELECT *, list_filter(list_zip(string_split(lower(was_city_name), ' '), string_split(lower(city_name), ' ')),
                            lambda pair: pair[1] IS DISTINCT FROM pair[2]) AS pairs
      FROM changed_places WHERE city <> was_city)
WHERE len(pairs) = 1 AND length(pairs[1][1]) > 3 AND length(pairs[1][2]) > 3
QUALIFY len(list_distinct(list(city) OVER (PARTITION BY pairs[1]))) >= 5

-- name: counties_exchanged
-- ZIP codes in two counties that have four fifths of each other's ZIP codes now.
WITH moves AS (
    SELECT was_county, county, count(*) AS moved FROM changed_places JOIN (SELECT county AS was_county, count(*) AS places FROM old_places GROUP BY county) USING (was_county)
    WHERE county <> was_county GROUP BY was_county, county HAVING count(*) >= 0.8 * any_value(places)
)
SELECT c.was_state AS state, c.zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', c.county_name, c.county, c.was_county_name, c.was_county) AS value
FROM changed_places c JOIN moves m ON m.was_county = c.was_county AND m.county = c.county
SEMI JOIN moves back ON back.was_county = m.county AND back.county = m.was_county

-- name: other_county
-- ZIP codes whose county, by code or by name, is now one that other ZIP codes had before. New ones are new counties, as
-- Connecticut's.
SELECT was_state AS state, zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', county_name, county, was_county_name, was_county) AS value
FROM changed_places
WHERE county <> was_county AND county IN (SELECT county FROM old_places)
    OR county = was_county AND county_name <> was_county_name
        AND (state, county_name) IN (SELECT (state, county_name) FROM old_places)

-- name: county_name_differs
-- ZIP codes whose county has another name than in most ZIP codes with its code.
SELECT n.state, n.zip_code, 'county_name' AS "column",
       format('in {}, others of {} in {}', n.county_name, n.county, names.usual) AS value
FROM new_places n
JOIN (SELECT county, mode(county_name) AS usual FROM new_places GROUP BY county) names ON names.county = n.county
WHERE n.county_name <> names.usual

-- name: county_code_differs
-- ZIP codes whose county has another code in most ZIP codes of the state with its name. Independent cities, numbered from
-- 510 on, may have the name of a county.
WITH own AS (
    SELECT n.* FROM new_places n JOIN known_states s ON s.code = n.state
    WHERE left(n.county, 2) = s.fips AND right(n.county, 3) < '510'
)
SELECT own.state, own.zip_code, 'county_fips_code' AS "column",
       format('{} is {}, others in {}', own.county_name, own.county, names.usual) AS value
FROM own JOIN (SELECT state, county_name, mode(county) AS usual FROM own GROUP BY state, county_name) names
    ON names.state = own.state AND names.county_name = own.county_name
WHERE own.county <> names.usual

-- name: retired_county
-- ZIP codes in a county that was retired, if other ZIP codes are in a county that replaced it.
SELECT n.state, n.zip_code, 'county_fips_code' AS "column", format('{} {}, others in {}', n.county_name, n.county, s.successor) AS value
FROM new_places n
JOIN (SELECT r.code, min(r.successor) AS successor FROM retired_counties r
      SEMI JOIN new_places p ON p.county = r.successor GROUP BY r.code) s ON s.code = n.county

-- name: state_changed
-- ZIP codes that are in another state than before.
SELECT was_state AS state, zip_code, 'state_code' AS "column", format('{} in {}, was in {}', city_name, state, was_state) AS value
FROM changed_places WHERE state <> was_state

-- name: zip_of_other_state
-- ZIP codes whose first three digits belong to another state.
SELECT n.state, n.zip_code, 'state_code' AS "column", format('{} in {}', n.city_name, n.state) AS value
FROM new_places n ANTI JOIN known_prefixes p ON p.code = n.state AND p.prefix = left(n.zip_code, 3)

-- name: county_of_other_state
-- ZIP codes whose county code begins with another state's number.
SELECT n.state, n.zip_code, 'county_fips_code' AS "column", format('{} in {} with {}', n.city_name, n.state, n.county) AS value
FROM new_places n LEFT JOIN known_states s ON s.code = n.state
WHERE left(n.county, 2) <> s.fips OR n.county IS NOT NULL AND s.fips IS NULL

-- name: county_left_state
-- ZIP codes whose county code begins with another state's number, and did not before.
SELECT c.state, c.zip_code, 'county_fips_code' AS "column", format('{} in {} with {}', c.city_name, c.state, c.county) AS value
FROM changed_places c LEFT JOIN known_states s ON s.code = c.state
WHERE left(c.county, 2) <> s.fips AND left(c.was_county, 2) = s.fips

-- name: place_outside_state
-- ZIP codes whose coordinates are outside their state.
SELECT n.state, n.zip_code, 'latitude, longitude' AS "column",
       format('{}, {} at {:.2f}, {:.2f}', n.city_name, n.state, n.latitude, n.longitude) AS value
FROM new_places n LEFT JOIN known_states s ON s.code = n.state
WHERE n.latitude IS NOT NULL AND n.longitude IS NOT NULL
    AND NOT coalesce(n.latitude BETWEEN s.box[1] AND s.box[3] AND n.longitude BETWEEN s.box[2] AND s.box[4], false)

-- name: point_left_state
-- ZIP codes whose coordinates were in their state and are outside it now.
SELECT c.state, c.zip_code, 'latitude, longitude' AS "column",
       format('{}, {} at {:.2f}, {:.2f}', c.city_name, c.state, c.latitude, c.longitude) AS value
FROM changed_places c JOIN known_states s ON s.code = c.state
WHERE c.was_latitude BETWEEN s.box[1] AND s.box[3] AND c.was_longitude BETWEEN s.box[2] AND s.box[4]
    AND NOT (c.latitude BETWEEN s.box[1] AND s.box[3] AND c.longitude BETWEEN s.box[2] AND s.box[4])

-- name: point_filled
-- ZIP codes whose coordinates changed to those of 29 or more others that changed.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM changed_places WHERE (latitude, longitude) IS DISTINCT FROM (was_latitude, was_longitude)
    AND latitude IS NOT NULL AND longitude IS NOT NULL
QUALIFY count(*) OVER (PARTITION BY latitude, longitude) >= 30

-- name: minutes_as_decimals
-- ZIP codes of states in which no coordinate has a fraction above .6.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM new_places WHERE latitude IS NOT NULL AND longitude IS NOT NULL WINDOW by_state AS (PARTITION BY state)
QUALIFY count(*) OVER by_state >= 50 AND max(greatest(abs(latitude) % 1, abs(longitude) % 1)) OVER by_state <= 0.6

-- name: scattered_place
-- ZIP codes that are more than 100 km from the middle of their county.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{}, {:,.0f} km', city_name, km) AS value
FROM (SELECT n.state, n.zip_code, n.city_name, 111.2 * sqrt(pow(n.latitude - m.latitude, 2)
                 + pow((n.longitude - m.longitude) * cos(radians(m.latitude)), 2)) AS km
      FROM new_places n JOIN (SELECT county, median(latitude) AS latitude, median(longitude) AS longitude FROM new_places
                              WHERE latitude IS NOT NULL GROUP BY county) m ON m.county = n.county)
WHERE km > 100

-- name: place_value_missing
-- ZIP codes of states without a county or coordinates. In territories and military areas, many have none.
SELECT n.state, n.zip_code, n.city_name AS value FROM new_places n JOIN known_states s ON s.code = n.state
WHERE s.fips < '60'
    AND (n.county IS NULL OR n.county_name IS NULL OR n.latitude IS NULL OR n.longitude IS NULL)

-- name: city_like_county
-- ZIP codes whose city is called a county.
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_places
WHERE regexp_matches(city_name, '(?i) (County|Parish|Municipio)$')

-- name: same_place
-- ZIP codes in one county with more than 1,500, or at one point with more than 500. In real drops, at most 507 and 136.
SELECT n.state, n.zip_code, 'county_fips_code, latitude, longitude' AS "column",
       format('in {} at {:.2f}, {:.2f}', n.county, n.latitude, n.longitude) AS value
FROM new_places n
LEFT JOIN (SELECT county FROM new_places GROUP BY county HAVING count(*) > 1500) c ON c.county = n.county
LEFT JOIN (SELECT latitude, longitude FROM new_places GROUP BY latitude, longitude HAVING count(*) > 500) p
    ON p.latitude = n.latitude AND p.longitude = n.longitude
WHERE c.county IS NOT NULL OR p.latitude IS NOT NULL

-- name: shared_point
-- ZIP codes at the point of another one. In real drops, 9% are, and 62% in DC: post office boxes beside their town.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM new_places WHERE latitude IS NOT NULL AND longitude IS NOT NULL
QUALIFY count(*) OVER (PARTITION BY latitude, longitude) > 1

-- name: whole_degrees
-- ZIP codes whose coordinates are whole degrees.
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.0f}, {:.0f}', city_name, latitude, longitude) AS value
FROM new_places WHERE latitude = trunc(latitude) AND longitude = trunc(longitude)

-- name: cut_to_length
-- ZIP codes whose city is as long as the longest one. Two letters are a state instead of a city.
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_places
WHERE length(city_name) = (SELECT max(length(city_name)) FROM new_places) AND length(city_name) > 2

-- name: alias_of_other_state
-- Aliases in another state than their ZIP code.
SELECT a.state, a.zip_code, 'state_code' AS "column", format('{} in {}, the ZIP code is in {}', a.city, a.state, n.state) AS value
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code WHERE a.state <> n.state

-- name: primary_alias_differs
-- Primary aliases that are not the city of their ZIP code.
SELECT a.state, n.zip_code, 'city_name' AS "column", format('{}, its primary alias is {}', n.city_name, a.city) AS value
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code WHERE a.status = 'primary' AND a.city <> n.city

-- name: alias_status_changed
-- Aliases that are acceptable now and were not before, or the other way round.
SELECT n.state, n.zip_code, 'usps_status' AS "column", format('{} is {}, was {}', n.city, n.status, o.status) AS value
FROM old_aliases o JOIN new_aliases n ON n.zip_code = o.zip_code AND n.city = o.city WHERE n.status <> o.status

-- name: alias_moved
-- Names of cities that lead to other ZIP codes than before, and to none of the former ones that still exist.
SELECT state, was AS zip_code, 'city_name' AS "column", format('{}, now in {}', city, now) AS value
FROM (SELECT o.state, o.city, min(o.zip_code) AS was, min(n.zip_code) AS now, bool_or(o.zip_code = n.zip_code) AS stays
      FROM old_aliases o SEMI JOIN new_places p ON p.zip_code = o.zip_code
      JOIN new_aliases n ON n.state = o.state AND n.city = o.city GROUP BY o.state, o.city)
WHERE NOT stays

-- name: aliases_lost
-- Aliases that the old release has and the new one lacks, of ZIP codes that both have.
SELECT o.state, o.zip_code, 'city_name' AS "column", o.city AS value
FROM old_aliases o SEMI JOIN new_places n ON n.zip_code = o.zip_code
ANTI JOIN new_aliases a ON a.zip_code = o.zip_code AND a.city = o.city

-- name: aliases_gained
-- Aliases that the old release lacks, of ZIP codes that had aliases.
SELECT a.state, a.zip_code, 'city_name' AS "column", a.city AS value
FROM new_aliases a SEMI JOIN old_aliases k ON k.zip_code = a.zip_code
ANTI JOIN old_aliases o ON o.zip_code = a.zip_code AND o.city = a.city

-- name: failing_totals
-- The figures of ZIP codes in the states and figures that a rule of totals names.
SELECT CASE WHEN p.ordinal < 10000 THEN 'population' ELSE 'housing' END AS "table",
       p.zip_code AS key, p.figure AS "column", p.new::VARCHAR AS value, p.state, p.old, p.new
FROM placed_figures p SEMI JOIN (SELECT state, figure FROM ({lines})) l
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
