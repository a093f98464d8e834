-- name: states_apart
-- Share by which a figure of a past year changed uniformly in some states, while it stayed in others.
-- rule: totals limit=0.01
-- finding: figures changed by the same share in some states and stayed in others
-- cause: some states may be from another quarter or version of the export
SELECT state, figure, abs(share) AS measured, large AS count, format('{:+.1f}% in nearly every ZIP code', 100 * share) AS detail
FROM (SELECT *, avg((abs(share) < 0.002)::INTEGER) OVER (PARTITION BY figure) AS staying FROM state_figures WHERE NOT open AND large >= 20)
WHERE width < 0.5 * abs(ln(1 + share)) AND measured < 0.1 AND staying > 0.2

-- name: figures_multiplied
-- Share of a state's ZIP codes whose figure became a whole multiple of what it was.
-- Figures of 50 or more, up to twenty times; if nearly all are, or all by the same number, they are scaled.
-- rule: totals limit=0.2
-- finding: figures became multiples of what they were
-- cause: a join may have multiplied rows before they were added up
SELECT state, figure, count(*) FILTER (new > old AND new % old = 0 AND new <= 20 * old) AS count, count / count(*) AS measured,
       format('{} of {} ZIP codes', count, count(*)) AS detail
FROM placed_figures WHERE old >= 50 AND new IS NOT NULL AND state IS NOT NULL GROUP BY state, figure HAVING count(*) >= 20 AND measured < 0.95
    AND count(DISTINCT new // old) FILTER (new > old AND new % old = 0 AND new <= 20 * old) > 1

-- name: demand_without_homes
-- Share of a state's larger ZIP codes whose demand is the former one minus their homes.
-- rule: totals limit=0.7
-- finding: demand is the former demand minus the homes
-- cause: it may be the number of homes to add; export the number of all homes needed
SELECT d.state, d.figure, avg((2 * d.new < h.old AND abs(d.new - greatest(0, d.old - h.old)) <= 0.05 * d.old)::INTEGER) AS measured,
       count(*) AS count, format('{} ZIP codes, such as {} with {:,} of {:,}', count, min(d.zip_code), min_by(d.new, d.zip_code), min_by(d.old, d.zip_code)) AS detail
FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
WHERE d.figure = 'est_total_home_demand_2030' AND d.old >= 500 AND d.new IS NOT NULL GROUP BY d.state, d.figure HAVING count(*) >= 20

-- name: demand_of_another_year
-- How much the growth from homes to demand was multiplied in the counties of the country or of a state, if they keep their order.
-- In real drops, by 0.89 to 1.09 where they do; where growth is small, new rates may multiply it by 1.6.
-- rule: totals limit=0.3 state_factor=2
-- finding: demand grows from homes by the same multiple of its growth before, in every county
-- cause: it may be that of another year, or the rate of growth may be applied too often
SELECT state, 'est_total_home_demand_2030' AS figure, abs(regr_slope(now, was) - 1) AS measured, sum(places)::BIGINT AS count,
       format('{:.2f} times the growth', regr_slope(now, was)) AS detail
FROM county_growth GROUP BY GROUPING SETS ((), (state)) HAVING count(*) >= CASE WHEN GROUPING(state) = 0 THEN 9 ELSE 20 END AND corr(now, was) BETWEEN 0.9 AND 1.1 -- not NaN
QUALIFY state IS NULL OR coalesce(max(measured) FILTER (state IS NULL) OVER (), 0) <= {limit}

-- name: figures_wrapped
-- ZIP codes whose figure lost a multiple of 65,536 or of 256, or its last one, two or three digits.
-- If most of those that fell by over half did: a few do by chance.
-- rule: cells limit=2
-- finding: figures are the rest of a division by 65,536 or 256, or lost their last digits
-- cause: they may have been written into a column of too few bits or digits, or cut at a comma
SELECT * EXCLUDE (is_wrapped)
FROM (SELECT *, old >= 65536 AND (old - new) % 65536 = 0 OR new BETWEEN 1 AND 255 AND (old - new) % 256 = 0
             OR old >= 10000 AND new IN (old // 10, old // 100) OR old >= 1000 AND new = old // 1000 AS is_wrapped
      FROM placed_figures WHERE new < old / 2)
QUALIFY is_wrapped AND avg(is_wrapped::INTEGER) OVER (PARTITION BY ordinal) > 0.8

-- name: uniform_scale
-- Share by which a figure changed uniformly in nearly every ZIP code of a state; over 15% in a county, while the state stays.
-- rule: totals limit=0.03 open_factor=5
-- finding: figures changed by the same share everywhere
-- cause: they may be in another unit, cut at a comma, scaled, added up twice, or those of one group
SELECT state, NULL::INTEGER AS county, figure, abs(share) AS measured, large AS count,
       format('{:+.1f}% in nearly every ZIP code', 100 * share) AS detail
FROM state_figures WHERE large >= 20 AND width < 0.25 * abs(ln(1 + share))
UNION ALL
SELECT any_value(c.state), c.county, any_value(c.figure), abs(any_value(c.share)), any_value(c.moved),
       format('{:+.1f}% in nearly every ZIP code', 100 * any_value(c.share))
FROM (SELECT county, ordinal, any_value(state) AS state, any_value(figure) AS figure, any_value(open) AS open, count(*) AS moved,
             quantile_cont(move, [0.1, 0.5, 0.9]) AS spread, exp(spread[2]) - 1 AS share
      FROM moved_figures WHERE least(old, new) > 0 GROUP BY county, ordinal
      HAVING count(*) >= 4 AND spread[3] - spread[1] < least(0.1, 0.25 * abs(spread[2]))) c
JOIN placed_figures p ON p.county = c.county AND p.ordinal = c.ordinal
JOIN state_figures s ON s.state = c.state AND s.figure = c.figure AND s.moved < 0.5 * s.large
WHERE abs(c.share) > 0.15 * (1 + c.open::INTEGER) AND greatest(p.old, p.new) >= 200 AND least(p.old, p.new) > 0
GROUP BY c.county, c.ordinal HAVING any_value(c.moved) >= 0.8 * count(*)

-- name: figures_rounded
-- Share of a state's larger figures that are multiples of 5; in a county, all of ten or more.
-- Of 200 or more, and 30 different ones in a state, most of them such multiples: one value may fill many ZIP codes. In real drops, 21% are.
-- rule: totals limit=0.6 applies=drop
-- finding: figures are rounded
-- cause: they may be rounded, or from a summary
SELECT a.state, a.county, any_value(a.figure) AS figure, any_value(a.fives / a.larger) AS measured, any_value(a.fives)::BIGINT AS count,
       format('{:.0f}% are multiples of {}', 100 * measured, CASE WHEN avg((p.new % 1000 = 0)::INTEGER) > 0.6 THEN 1000 WHEN avg((p.new % 100 = 0)::INTEGER) > 0.6 THEN 100
                                                                 WHEN avg((p.new % 10 = 0)::INTEGER) > 0.6 THEN 10 ELSE 5 END) AS detail
FROM area_figures a JOIN placed_figures p ON p.ordinal = a.ordinal AND p.state = a.state AND p.new >= 200
WHERE (a.county IS NULL OR p.county = a.county)
    AND CASE a.level WHEN 'state' THEN a.fives > {limit} * a.larger WHEN 'county' THEN a.larger >= 10 AND a.fives = a.larger END
GROUP BY a.state, a.county, a.ordinal HAVING count(DISTINCT p.new) >= CASE WHEN a.county IS NULL THEN 30 ELSE 8 END
    AND count(DISTINCT p.new) FILTER (p.new % 5 = 0) > {limit} * count(DISTINCT p.new)

-- name: zeros_gained
-- Share of a state's ZIP codes whose figure became 0, from any value, unless half as many went the other way: those are shuffled.
-- In real drops, at most 5 do, 1.4% of a state.
-- rule: totals limit=0.03 open_factor=2
-- finding: figures became 0 in many ZIP codes
-- cause: 0 may stand for an unknown figure, which must be empty, as where a join found nothing
SELECT state, figure, zeroed / pairs AS measured, zeroed AS count, format('{} of {} ZIP codes', zeroed, pairs) AS detail
FROM area_figures WHERE level = 'state' AND zeroed >= 20 AND zeroed > 2 * unzeroed

-- name: forecast_against_trend
-- How far a state's or county's forecasts grow where its counts shrink: minus the correlation of both growths; in a county, from 0.6 on.
-- Growth to the last forecast, and over the last five or six counted years. In real drops, the correlation is 0.62 or more. It is NaN where all grow alike.
-- rule: totals limit=0.3 applies=drop derived=true
-- finding: forecasts grow where counts shrink, and shrink where they grow
-- cause: the rate of growth may have the wrong sign, or belong to other ZIP codes
SELECT l.state, l.county, any_value(a.figure) AS figure, -corr(ln(l.new / f.new), ln(a.new / l.new)) AS measured, count(*) AS count,
       format('correlation {:.2f} with the growth from {} to {}', -measured, any_value(f.ordinal), any_value(l.ordinal)) AS detail
FROM placed_figures l JOIN placed_figures f ON f.zip = l.zip JOIN placed_figures a ON a.zip = l.zip AND a.ordinal > l.ordinal
WHERE l.ordinal = latest_count() AND f.ordinal = (SELECT min(ordinal) FROM known_figures WHERE ordinal >= latest_count() - 6)
    AND a.ordinal = last_year() AND least(l.new, f.new, a.new) >= 500
GROUP BY GROUPING SETS ((l.state), (l.state, l.county)) HAVING count(*) >= 20 AND measured BETWEEN CASE WHEN l.county IS NULL THEN -1.1 ELSE 0.6 END AND 1.1

-- name: zeros_filled
-- ZIP codes whose figure was unknown and is 0, or that of the ZIP code before.
-- Of ZIP codes and figures that the old release has.
-- rule: cells limit=20
-- explains: coverage
-- finding: figures that were unknown are 0 now, or those of the ZIP code before
-- cause: a join or a program may have filled them in; leave unknown figures empty
SELECT p.* FROM placed_figures p SEMI JOIN old_places o ON o.zip_code = p.zip_code
LEFT JOIN (SELECT zip_code, lag(zip_code::INTEGER) OVER (ORDER BY zip_code) AS before FROM new_places) b ON b.zip_code = p.zip_code
LEFT JOIN placed_figures c ON c.zip = b.before AND c.ordinal = p.ordinal
WHERE p.old IS NULL AND (p.new = 0 OR p.new = c.new AND c.old = c.new)
    AND p.figure IN (SELECT figure FROM area_figures WHERE level = 'country' AND old_count > 0)

-- name: repeated_value
-- ZIP codes of a county that share one new figure of 100 or more; in the country, six times as many that share one of 1,000 or more, or 100 that shared no smaller one.
-- In real drops, three do, 16 and 43. Figure, number and county are one key: counting by several takes twice as long.
-- rule: cells limit=4 applies=drop
-- finding: many ZIP codes have the same figure
-- cause: they may be a default, an upper bound, one value for a range of small figures, one total copied to all or spread evenly, or the first match of a join by name
WITH keys AS (
    SELECT *, ordinal::BIGINT * 10000000 + new AS key, (county::BIGINT * 16384 + ordinal) * 10000000 + new AS ours
    FROM placed_figures WHERE new >= 1 AND new IS DISTINCT FROM old
)
SELECT * EXCLUDE (key, ours) FROM keys
WHERE key IN (SELECT key FROM keys GROUP BY key
              HAVING any_value(new) >= 1000 AND count(*) > 6 * {limit} OR count(old) > 100 AND max(old) - min(old) > 10)
    OR ours IN (SELECT ours FROM keys WHERE new >= 100 GROUP BY ours HAVING count(ours) > {limit})

-- name: forecast_apart
-- Share of the larger ZIP codes of a state or county whose forecast is over 10% from the year before, which is near the year before it.
-- Up to about 60%: more is another unit. In real drops, none is.
-- rule: totals limit=0.25 applies=drop derived=true
-- finding: forecasts do not continue the counts
-- cause: they may start from another year, be in another order, come from two runs, or grow by a rate that was applied again each year
SELECT f.state, f.county, any_value(f.figure) AS figure, avg((abs(ln(f.new / l.new)) BETWEEN 0.1 AND 0.5 AND abs(ln(l.new / b.new)) < 0.1)::INTEGER) AS measured, count(*) AS count,
       format('{:.0f}% of ZIP codes, from {}', 100 * measured, any_value(l.figure)) AS detail
FROM placed_figures f JOIN placed_figures l ON l.zip = f.zip AND l.ordinal = f.ordinal - 1 JOIN placed_figures b ON b.zip = f.zip AND b.ordinal = f.ordinal - 2
WHERE f.ordinal BETWEEN (SELECT min(ordinal) + 1 FROM known_figures WHERE open) AND 9999 AND least(f.new, l.new, b.new) >= 500
GROUP BY GROUPING SETS ((f.state, f.ordinal), (f.state, f.county, f.ordinal)) HAVING count(*) >= 20

-- name: figures_exchanged
-- How much closer a figure is to the old values of another figure than to its own; 100%: it equals them.
-- Demand is always close to homes, so it must be closer still. With slower growth, 2031 may look exactly like the former 2030;
-- so figures that may still be revised must look like each other, or three of them be shifted by as many years.
-- rule: totals limit=0.7
-- finding: figures have the old values of other figures
-- cause: two columns or years may be exchanged, one exported twice, or one filled in where a join found nothing
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
SELECT one.state, one.figure, one.measured, one.number AS count, format('looks like the former {}', one.other) AS detail
FROM nearest one LEFT JOIN nearest back
    ON back.state = one.state AND back.figure = one.other AND back.other = one.figure
WHERE (starts_with(one.figure, 'est_') = starts_with(one.other, 'est_') OR one.measured > (1 + {limit}) / 2)
    AND (NOT one.both_open OR back.figure IS NOT NULL OR (one.state, one.shift) IN (SELECT (state, shift) FROM shifts))

-- name: years_exchanged
-- ZIP codes of a state in which two past years have each other's old value.
-- In real drops, none do.
-- rule: totals limit=4
-- unit: ZIP codes
-- finding: two years have each other's old values
-- cause: two columns may be exchanged for a part of the rows
WITH changed AS (SELECT *, ordinal >= 10000 AS of_homes FROM placed_figures WHERE old <> new AND NOT open)
SELECT one.state, one.figure, count(*) AS measured, count(*) AS count,
       format('with {}: {} ZIP codes, such as {}', other.figure, count(*), min(one.zip_code)) AS detail
FROM changed one JOIN changed other ON other.zip = one.zip AND other.of_homes = one.of_homes AND other.ordinal > one.ordinal
    AND one.new = other.old AND other.new = one.old
GROUP BY one.state, one.figure, other.figure

-- name: homes_are_people
-- ZIP codes of a state whose number of homes moved far and is that of their people now.
-- rule: totals limit=4
-- unit: ZIP codes
-- finding: homes are the people of the same year
-- cause: the column of people may have been exported for homes
SELECT h.state, h.figure, count(*) AS measured, count(*) AS count,
       format('{} ZIP codes, such as {} with {:,}', count(*), min(h.zip_code), min_by(h.new, h.zip_code)) AS detail
FROM moved_figures h JOIN known_figures homes ON homes.ordinal = h.ordinal AND homes.kind = '1 homes'
JOIN known_figures people ON people.kind = '0 people' AND people.year = homes.year
JOIN placed_figures p ON p.ordinal = people.ordinal AND p.zip = h.zip AND p.new = h.new GROUP BY h.state, h.figure

-- name: figures_stayed
-- Share of a state's ZIP codes whose demand or forecast stayed, although it changed in nearly all of the country, or homes and forecasts there did.
-- In real drops, at most 3% stay.
-- rule: totals limit=0.99
-- finding: figures stayed in every ZIP code, although others changed
-- cause: they may be those of last month
SELECT d.state, d.figure, 1 - d.changed / d.pairs AS measured, d.pairs AS count, format('the same in {:,} ZIP codes', d.pairs) AS detail
FROM area_figures d JOIN known_figures k ON k.figure = d.figure AND k.open AND k.year > (SELECT min(year) FROM known_figures WHERE open AND kind = '0 people')
JOIN area_figures c ON c.level = 'country' AND c.figure = d.figure
WHERE d.level = 'state' AND d.pairs >= 20 AND (c.changed > 0.8 * c.pairs OR k.kind = '2 demand' AND (
    SELECT min(a.changed / a.pairs) > 0.5 FROM area_figures a JOIN known_figures o ON o.figure = a.figure
    WHERE a.level = 'state' AND a.state = d.state AND a.pairs > 0 AND (o.kind = '1 homes' OR o.kind = '0 people' AND o.year > k.year - 5)))

-- name: stale_figure
-- Share of a state's changed figures that are those of the oldest release kept.
-- rule: totals limit=0.9 since=baseline
-- finding: figures are those of an older release
-- cause: a column may have been joined from an old export
SELECT state, figure, returned / moved AS measured, returned AS count, format('{:,} of {:,} that changed', returned, moved) AS detail
FROM baseline_figures WHERE level = 'state' AND returned >= 20

-- name: sentinel_figure
-- ZIP codes with a new figure of 9999, 99999 or 999999.
-- Four ZIP codes may have 9999 by chance.
-- rule: cells limit=1 applies=drop
-- finding: figures look like placeholders
-- cause: a number may stand for an unknown figure, which must be empty
SELECT * FROM placed_figures WHERE new IN (9999, 99999, 999999) AND new IS DISTINCT FROM old
QUALIFY new > 9999 OR count(*) OVER (PARTITION BY ordinal, new) > 4

-- name: forecasts_flat
-- Share of a state's larger ZIP codes whose last forecast is the figure of two years ago.
-- rule: totals limit=0.7 applies=drop
-- finding: the last forecast is the latest count in most ZIP codes
-- cause: forecasts do not grow; a rate may not have been found
SELECT f.state, f.figure, avg((f.new = l.new)::INTEGER) AS measured, count(*) AS count,
       format('{:.0f}% of ZIP codes have that of {}', 100 * measured, any_value(l.figure)) AS detail
FROM figure_sample f JOIN figure_sample l ON l.zip = f.zip
WHERE f.ordinal = last_year() AND f.open AND f.new >= 1000
    AND l.ordinal = (SELECT min(ordinal) FROM known_figures WHERE kind = '0 people' AND open) AND l.ordinal < f.ordinal
GROUP BY f.state, f.figure HAVING count(*) >= 8

-- name: growth_repeated
-- Share of a state's larger ZIP codes whose forecasts grow, or shrink, by one rate.
-- Of 1,000 people or more, to a tenth of a per cent. In real drops, at most 38% do.
-- rule: totals limit=0.7 applies=drop
-- finding: forecasts grow or shrink by the same rate in most ZIP codes
-- cause: the rate may have been cut off at a bound, be a default, or be in another unit
SELECT state, figure, max(number) / sum(number) AS measured, sum(number)::BIGINT AS count,
       format('{:.1f}% in {:.0f}% of ZIP codes', 100 * arg_max(rate, number), 100 * measured) AS detail
FROM (SELECT l.state, l.figure, round(abs(pow(l.new / f.new, 1 / (l.ordinal - f.ordinal)) - 1), 3) AS rate, count(*) AS number
      FROM placed_figures l JOIN placed_figures f ON f.zip = l.zip AND f.new >= 1000
      WHERE f.ordinal = (SELECT min(ordinal) + 1 FROM known_figures WHERE open AND kind = '0 people')
          AND l.ordinal = last_year() AND l.new > 0 AND l.ordinal > f.ordinal
      GROUP BY ALL)
WHERE state IS NOT NULL GROUP BY state, figure HAVING sum(number) >= 20

-- name: repeated_figure
-- Share of a state's larger ZIP codes in which two years or housing figures are equal, up to 0.2%; of a county's, in which a changed figure is exactly that of another year up to five years away.
-- Of 1,000 or more. In real drops, at most 20% are.
-- rule: totals limit=0.7 applies=drop derived=true
-- finding: figures are equal to others in most ZIP codes
-- cause: one column may have been exported twice, or carried forward, columns may be late by a year, or a rate of growth be 100 times too small
SELECT x.state, NULL::INTEGER AS county, y.figure, avg((abs(x.new - y.new) <= 0.002 * x.new)::INTEGER) AS measured, count(*) AS count,
       format('is {} in {:.0f}% of ZIP codes', x.figure, 100 * measured) AS detail
FROM figure_sample x JOIN figure_sample y ON x.zip = y.zip AND x.ordinal < y.ordinal
WHERE x.new >= 1000 AND y.new >= 1000 GROUP BY x.state, x.figure, y.figure HAVING count(*) >= 8
UNION ALL
SELECT y.state, y.county, any_value(y.figure), count(*) / any_value(c.number), count(*), format('is {} in {} of {} ZIP codes', any_value(x.figure), count(*), any_value(c.number))
FROM placed_figures y JOIN placed_figures x ON x.zip = y.zip AND x.new = y.new AND abs(x.ordinal - y.ordinal) < 6
    AND (x.ordinal < y.ordinal OR x.ordinal > y.ordinal AND x.old = x.new)
JOIN (SELECT county, ordinal, count(*) AS number FROM placed_figures WHERE new >= 1000 AND new IS DISTINCT FROM old GROUP BY ALL HAVING count(*) >= 20) c
    ON c.county = y.county AND c.ordinal = y.ordinal
WHERE y.new >= 1000 AND y.new IS DISTINCT FROM y.old GROUP BY y.state, y.county, y.ordinal, x.ordinal

-- name: interpolated_year
-- Share of the larger ZIP codes in which a counted year is the mean of the years before and after, beyond the average of all years.
-- Of 1,000 people or more, in years that the old release has: new years may be interpolated. In real drops, 0.6% are.
-- rule: totals limit=0.5 by_state=false
-- finding: years are the mean of the years before and after in most ZIP codes
-- cause: they may be interpolated instead of counted
WITH means AS (
    SELECT p.figure, avg((abs(2 * p.new - b.new - a.new) <= 1)::INTEGER) AS share, count(*) AS count
    FROM figure_sample p JOIN figure_sample b ON b.zip = p.zip AND b.ordinal = p.ordinal - 1
    JOIN figure_sample a ON a.zip = p.zip AND a.ordinal = p.ordinal + 1
    WHERE p.new >= 1000 AND NOT p.open AND p.old IS NOT NULL AND p.ordinal < 10000 AND b.new IS NOT NULL AND a.new IS NOT NULL
    GROUP BY p.figure HAVING count(*) >= 100
)
SELECT figure, share - avg(share) OVER () AS measured, count, format('{:.0f}% of ZIP codes', 100 * share) AS detail FROM means

-- name: people_left_out
-- Share of the changed figures that fell, if a twentieth of all changed, and 20 or more of them fell by over half; of most figures, not a tenth did.
-- A disaster or a closed base changes few ZIP codes; a revision raises some.
-- rule: totals limit=0.98 by_state=false
-- finding: figures fell in many ZIP codes, some by over half, and rose in none
-- cause: a part may be left out, such as people in dormitories, prisons and barracks, vacant homes, or one county's share of a ZIP code
SELECT figure, fell / changed AS measured, fell AS count, format('{:,} of {:,} ZIP codes, {:,} by over half', fell, pairs, halved) AS detail
FROM (SELECT figure, count(*) AS pairs, count(*) FILTER (new <> old) AS changed, count(*) FILTER (new < old) AS fell,
             count(*) FILTER (2 * new < old AND old >= 500) AS halved
      FROM placed_figures WHERE old IS NOT NULL AND new IS NOT NULL GROUP BY figure)
WHERE 20 * changed > pairs AND halved >= 20 AND (10 * halved < fell OR 2 * changed < pairs)

-- name: figures_misplaced
-- ZIP codes of a state whose figure changed by over a third and is the former one of another ZIP code there, if most such figures are.
-- rule: totals limit=5
-- unit: ZIP codes
-- finding: figures have the old values of other ZIP codes
-- cause: they may be shifted or shuffled among ZIP codes, or two counties may be exchanged
SELECT state, figure, count(*) FILTER (is_misplaced) AS measured, measured AS count,
       format('{} ZIP codes, such as {} from {:,} to {:,}', count, max_by(zip_code, new) FILTER (is_misplaced),
              max_by(old, new) FILTER (is_misplaced), max(new) FILTER (is_misplaced)) AS detail
FROM (SELECT m.*, EXISTS (FROM placed_figures o WHERE o.state = m.state AND o.ordinal = m.ordinal AND o.old = m.new AND o.zip <> m.zip)
                  AS is_misplaced
      FROM moved_figures m WHERE m.new >= 500 AND abs(m.move) > 0.3)
GROUP BY state, figure HAVING measured > 0.6 * count(*)

-- name: figures_shuffled
-- 1 minus the correlation of a figure with its old values in a state, both as logarithms.
-- Real revisions: 0.995 or more.
-- rule: totals limit=0.04 open_factor=2
-- finding: figures no longer correlate with their old values
-- cause: they may be shuffled or shifted among ZIP codes, joined by another key, such as a name, or in a part count something else, such as buildings
SELECT state, figure, 1 - likeness AS measured, pairs AS count, format('likeness {:.2f} over {} ZIP codes', likeness, pairs) AS detail
FROM state_figures WHERE pairs >= 20 AND (greatest(shrunk, grown) < 0.85 * large OR likeness < 0.5)

-- name: figures_of_a_part
-- Share of the larger ZIP codes of a state whose figure shrank by over 10%; of a county, by over 20% in a past year.
-- rule: totals limit=0.85
-- finding: figures shrank by over 10% in nearly every ZIP code
-- cause: they may be those of one group, such as an age or occupied homes, margins of error, or count something else, such as buildings
SELECT state, county, figure, shrunk / large AS measured, shrunk AS count, format('{} of {} ZIP codes', shrunk, large) AS detail FROM one_way_figures

-- name: figures_added_up
-- Share of the larger ZIP codes of a state whose figure grew by over 10%; of a county, by over 20% in a past year.
-- rule: totals limit=0.85
-- finding: figures grew by over 10% in nearly every ZIP code
-- cause: they may be added up twice or over several rows, those of all instead of one group, or grow by a rate that was applied too often
SELECT state, county, figure, grown / large AS measured, grown AS count, format('{} of {} ZIP codes', grown, large) AS detail FROM one_way_figures

-- name: figures_rewritten
-- Share of the states in which a figure of a past year changed unevenly, if as many figures did, a later year of people stayed, or it changed by 6% on average.
-- A revision changes a few figures a little, or the people of the latest years.
-- rule: totals limit=0.75 by_state=false
-- finding: figures of past years changed nearly everywhere
-- cause: noise may have been added, or they are from another source; a revision changes some of them
WITH uneven AS (
    SELECT figure, avg((width > 0.03)::INTEGER) AS measured, avg((width > 0.12)::INTEGER) AS wide, max(width) AS widest, sum(large)::BIGINT AS count
    FROM state_figures WHERE NOT open AND large >= 20 GROUP BY figure
)
SELECT figure, measured, count, format('in {:.0f}% of states', 100 * measured) AS detail FROM uneven u
WHERE wide > {limit} OR (SELECT avg((measured > {limit})::INTEGER) FROM uneven) > {limit} OR EXISTS (
    FROM uneven l WHERE l.widest < 0.001 AND starts_with(u.figure, 'population') AND starts_with(l.figure, 'population') AND l.figure > u.figure)

-- name: zeroed_figure
-- ZIP codes whose figure was 200 or more and became 0, unless others went the other way: those are shuffled.
-- rule: cells limit=2
-- finding: figures became 0
-- cause: 0 may stand for an unknown figure, which must be empty
SELECT * FROM placed_figures WHERE new = 0 AND old >= 200
    AND ordinal NOT IN (SELECT ordinal FROM placed_figures WHERE old = 0 AND new >= 200 GROUP BY ordinal HAVING count(*) > 2)

-- name: figures_moved
-- Share of the larger ZIP codes of a state whose figure changed by over a third.
-- Of 500 or more.
-- rule: totals limit=0.1 open_factor=2
-- finding: figures changed by over a third in many ZIP codes
-- cause: they may be shuffled, joined to the wrong ZIP codes, or from another source; where all grew, added up twice; where all shrank, only a part
SELECT state, figure, moved / large AS measured, moved AS count, format('{} of {} ZIP codes, {} of all grew and {} shrank by over 10%', moved, large, grown, shrunk) AS detail
FROM state_figures WHERE large >= 20

-- name: absurd_figure
-- ZIP codes whose figure became more than twenty times as large, and 5,000 or more.
-- rule: cells limit=0
-- finding: figures became absurdly large
-- cause: they may be in another unit, those of another place, or measure something else
SELECT * FROM placed_figures WHERE new >= 5000 AND new > 20 * old

-- name: demand_growth
-- Share of a state's larger counties whose growth from homes to demand changed by over three points, if it hardly agrees with the growth before.
-- Coefficient of concordance (Lin 1989). In real drops, at most 21%. A new model changes most counties of the country, but not their order.
-- rule: totals limit=0.35 derived=true
-- finding: demand grows from homes as it did not before
-- cause: it may lack its growth, or have that of another county, such as a namesake, or another formula
SELECT state, 'est_total_home_demand_2030' AS figure, avg((abs(now - was) > 0.03)::INTEGER) AS measured, sum(places)::BIGINT AS count,
       format('{:+.1f}% from homes, was {:+.1f}%', 100 * (exp(median(now)) - 1), 100 * (exp(median(was)) - 1)) AS detail
FROM (SELECT *, median(abs(now - was)) OVER () > 0.015 AND corr(now, was) OVER () > 0.3 AS is_new_model FROM county_growth) WHERE NOT is_new_model
GROUP BY state HAVING count(*) >= 9
    AND 2 * covar_pop(was, now) < 0.5 * (var_pop(was) + var_pop(now) + pow(avg(was) - avg(now), 2))

-- name: leaping_figure
-- Larger ZIP codes whose figure grew or shrank more than fivefold.
-- Of 500 or more.
-- rule: cells limit=5
-- finding: figures jumped in many ZIP codes
-- cause: they may be shuffled, misplaced, in another unit, or only a part, such as detached homes
SELECT * FROM placed_figures WHERE greatest(old, new) >= 500 AND abs(ln((new + 1) / (old + 1))) > ln(5)

-- name: people_lost
-- Share of the people in the current release whose ZIP code is gone.
-- In the last counted year of the old release.
-- rule: totals limit=0.002 state_factor=10
-- of: coverage
-- explains: total
-- finding: people lived in ZIP codes that are gone
-- cause: large ZIP codes may be missing
SELECT p.state, any_value(p.figure) AS figure, sum(p.old) FILTER (z.fate = 'lost') / sum(p.old) AS measured,
       count(*) FILTER (z.fate = 'lost' AND p.old > 0) AS count,
       format('{:,} people in {:,} ZIP codes', sum(p.old) FILTER (z.fate = 'lost')::BIGINT, count) AS detail
FROM placed_figures p JOIN paired_places z ON z.zip = p.zip
WHERE p.figure = (SELECT max_by(figure, year) FROM known_figures WHERE kind = '0 people' AND NOT open)
GROUP BY GROUPING SETS ((), (p.state))

-- name: zeros_lost
-- Share of the figures of 0 that are missing, if at most half as many of those from 1 to 9 are.
-- Figures under 10 may be hidden for privacy, with 0 or without.
-- rule: totals limit=0.5 by_state=false few=true
-- of: coverage
-- explains: total
-- finding: figures of 0 are missing
-- cause: a filter may have left out rows with 0, or 0 was exported as unknown
SELECT figure, avg((new IS NULL)::INTEGER) FILTER (old = 0) AS measured, count(*) FILTER (old = 0 AND new IS NULL) AS count,
       format('{:,} of {:,} ZIP codes', count, count(*) FILTER (old = 0)) AS detail
FROM placed_figures WHERE old < 10 GROUP BY figure
HAVING count >= 5 AND measured > 2 * coalesce(avg((new IS NULL)::INTEGER) FILTER (old > 0), 0)

-- name: coverage_lost
-- Share of the ZIP codes with a figure that lost it, while others keep it; four times as many in a state, half of a county.
-- Figures under 10 do not count: they may be hidden for privacy.
-- rule: totals limit=0.02 state_factor=4 open_factor=2 few=true
-- of: coverage
-- explains: total
-- finding: figures are missing
-- cause: a part of the export may be missing, a filter or a join may have lost rows, or ZIP codes may be changed
FROM losses_of('area_figures')

-- name: coverage_gained
-- ZIP codes that have a figure now, as a share of those that had it.
-- rule: totals limit=0.1 by_state=false few=true
-- of: coverage
-- explains: total
-- finding: figures are new in many ZIP codes
-- cause: a join may have added rows
SELECT figure, (new_count - pairs) / old_count AS measured, new_count - pairs AS count,
       format('{:,} ZIP codes have it now; {:,} had it', new_count, old_count) AS detail
FROM area_figures WHERE level = 'country' AND old_count > 0

-- name: slow_loss
-- Share of the ZIP codes with a figure in the oldest release kept that lack it now; five times as many in a state, half of a county.
-- rule: totals limit=0.02 state_factor=5 open_factor=2 since=baseline
-- of: coverage
-- finding: figures were lost
-- cause: small monthly losses may add up
FROM losses_of('baseline_figures')

-- name: forecasts_missing
-- Share of a state's or county's larger ZIP codes that have the latest count and lack a forecast, in years that are new.
-- Of 500 people or more. In real drops, none do.
-- rule: totals limit=0.02 applies=drop
-- of: coverage
-- finding: forecasts are missing in ZIP codes that have a count
-- cause: a part, such as a county, may have failed, or a filter, such as one on growth, or a join may have left them out
SELECT l.state, l.county, f.figure, avg((a.new IS NULL)::INTEGER) AS measured, count(*) FILTER (a.new IS NULL) AS count, format('{:,} of {:,} ZIP codes', count, count(*)) AS detail
FROM placed_figures l JOIN (SELECT k.ordinal, k.figure FROM known_figures k JOIN area_figures c ON c.level = 'country' AND c.figure = k.figure AND c.old_count = 0 AND c.new_count > 0
                            WHERE k.kind = '0 people' AND k.open) f ON f.ordinal > l.ordinal
LEFT JOIN placed_figures a ON a.zip = l.zip AND a.ordinal = f.ordinal
WHERE l.ordinal = latest_count() AND l.new >= 500
GROUP BY GROUPING SETS ((f.figure), (l.state, f.figure), (l.state, l.county, f.figure)) HAVING count(*) >= 20 AND count >= 10 AND (l.county IS NULL OR measured > 0.9)
QUALIFY l.county IS NOT NULL OR count > 1.1 * coalesce(max(count) FILTER (l.county IS NOT NULL) OVER (PARTITION BY f.figure), 0)

-- name: sparse_figure
-- Share of the ZIP codes that lack a year or a housing figure which others there have: in the country, or in a state or county that did not lack it before.
-- At least 99% of the country, 20 ZIP codes of a state, 10 of a county. In real drops, at most 13% of the country lack one.
-- rule: totals limit=0.9 applies=drop
-- of: coverage
-- finding: hardly any ZIP code has the figure
-- cause: a year may have been added for a few rows only, a part of it be missing, or lost in a join, such as one on ZIP codes without their leading zeros
WITH peers AS (
    SELECT level, state, county, kind = '0 people' AS of_people, max(new_count) AS most FROM area_figures JOIN known_figures USING (figure)
    LEFT JOIN known_states s ON s.code = state WHERE coalesce(s.fips, '00') < '60' GROUP BY ALL
)
SELECT p.state, p.county, c.figure, coalesce(a.new_count, 0) AS count, 1 - count / p.most AS measured, format('{:,} of {:,} ZIP codes', count, p.most) AS detail
FROM peers p JOIN known_figures f ON (f.kind = '0 people') = p.of_people
JOIN area_figures c ON c.level = 'country' AND c.figure = f.figure AND c.new_count > 0
LEFT JOIN area_figures a ON a.figure = f.figure AND a.level = p.level AND a.state IS NOT DISTINCT FROM p.state AND a.county IS NOT DISTINCT FROM p.county
WHERE CASE p.level WHEN 'country' THEN 1 - c.new_count / p.most > 0.99
                   ELSE p.most >= CASE p.level WHEN 'state' THEN 20 ELSE 10 END AND (c.old_count = 0 OR a.old_count > 0) END

-- name: total_drift
-- Change of a total, up or down, as a share of the old total, over the ZIP codes that have it in both releases; twice as much in a state.
-- rule: totals limit=0.03 state_factor=2 open_factor=2 few=true
-- of: figures total
-- finding: totals changed a lot
-- cause: some of the figures may be in another unit, stale, added up twice, incomplete, grown by another rate, or from another source
FROM drift_of('area_figures')

-- name: slow_drift
-- Change of a total since the oldest release kept; twice as much in a state.
-- rule: totals limit=0.06 state_factor=2 open_factor=2 since=baseline
-- of: figures total
-- finding: totals changed a lot
-- cause: small monthly changes may add up
FROM drift_of('baseline_figures')

-- name: figures_altered
-- Share of the larger ZIP codes whose figure of a past year changed by over 8%.
-- Of 500 or more. A revision of past years changes few figures so far; a disaster does in few places.
-- rule: totals limit=0.1 state_factor=3
-- finding: figures of past years changed by over 8% in many ZIP codes
-- cause: a part of them may be from another source, of another year, or multiplied, or noise may have been added
SELECT state, figure, sum(altered) / sum(large) AS measured, sum(altered)::BIGINT AS count, format('{:,} of {:,} ZIP codes', count, sum(large)::BIGINT) AS detail
FROM state_figures WHERE NOT open GROUP BY GROUPING SETS ((figure), (state, figure)) HAVING sum(large) >= 20

-- name: growth_apart
-- How much faster a state's forecasts grow or shrink than those of most states, each as a multiple of the last six counted years.
-- Medians of ZIP codes of 500 people or more. Only if this multiple is the same in most states: another model may know other rates.
-- rule: totals limit=0.8 applies=drop derived=true
-- finding: forecasts grow by a larger multiple of the trend than in other states
-- cause: a rate of growth may have been applied twice, or again in each year, or be that of other years or places
WITH multiples AS (
    SELECT l.state, any_value(a.figure) AS figure, count(*) AS count,
           median(abs(ln(a.new / b.new)) / (a.ordinal - b.ordinal)) / nullif(median(abs(ln(l.new / f.new)) / 6), 0) AS multiple
    FROM placed_figures l JOIN placed_figures f ON f.zip = l.zip AND f.ordinal = l.ordinal - 6 JOIN placed_figures b ON b.zip = l.zip AND b.ordinal = l.ordinal + 1
    JOIN placed_figures a ON a.zip = l.zip AND a.ordinal > b.ordinal
    WHERE l.ordinal = latest_count()
        AND a.ordinal = last_year() AND least(l.new, f.new, b.new, a.new) >= 500
    GROUP BY l.state HAVING count(*) >= 20
)
SELECT state, figure, multiple / usual[2] - 1 AS measured, count, format('{:.2f} times the trend, {:.2f} elsewhere', multiple, usual[2]) AS detail
FROM (SELECT *, quantile_cont(multiple, [0.2, 0.5, 0.8]) OVER () AS usual, count(*) OVER () AS states FROM multiples)
WHERE states >= 8 AND usual[3] - usual[1] < 0.3 * usual[2]

-- name: growth_unbounded
-- ZIP codes of a state whose forecasts grow or shrink by 10% a year, or half as fast again as any in most states, if all have the same bound.
-- Of 500 people or more.
-- rule: totals limit=5 applies=drop derived=true
-- unit: ZIP codes
-- finding: forecasts grow or shrink too fast
-- cause: a bound on the rate of growth may be missing
WITH rates AS (
    SELECT a.state, a.figure, a.zip_code, l.new AS counted, a.new, abs(ln(a.new / l.new)) / (a.ordinal - l.ordinal) AS rate
    FROM placed_figures l JOIN placed_figures a ON a.zip = l.zip AND a.new > 0
    WHERE l.ordinal = latest_count() + 1
        AND a.ordinal = last_year() AND a.ordinal > l.ordinal AND l.new >= 500
), bounds AS (
    SELECT quantile_cont(fastest, [0.25, 0.5, 0.75]) AS usual FROM (SELECT max(rate) AS fastest FROM rates GROUP BY state HAVING count(*) >= 20) HAVING count(*) >= 8
)
SELECT state, any_value(figure) AS figure, count(*) AS measured, measured AS count,
       format('{} ZIP codes, such as {} from {:,} to {:,}', count, max_by(zip_code, rate), max_by(counted, rate), max_by(new, rate)) AS detail
FROM rates LEFT JOIN bounds ON usual[3] - usual[1] < 0.05 * usual[2] WHERE rate > coalesce(least(0.1, 1.5 * usual[2]), 0.1) GROUP BY state

-- name: zeros_in_series
-- ZIP codes whose figure is 0 in one year, and 500 or more in the year before or after.
-- In states whose total stays, less those that go the other way. In real drops, at most 6 are.
-- rule: totals limit=20 by_state=false applies=drop
-- unit: ZIP codes
-- finding: figures are 0 beside years with many people or homes
-- cause: 0 may stand for an unknown figure, which must be empty, or people in dormitories, prisons and barracks may be left out
SELECT CASE WHEN zeros > zeros_before THEN figure ELSE before END AS figure, max(abs(zeros - zeros_before)) AS measured, measured AS count,
       format('{} ZIP codes', measured) AS detail
FROM (SELECT figure, before, coalesce(sum(zeros) FILTER (2 * new_total > old_total), 0)::BIGINT AS zeros,
             coalesce(sum(zeros_before) FILTER (2 * old_total > new_total), 0)::BIGINT AS zeros_before
      FROM state_series GROUP BY figure, before)
GROUP BY 1

-- name: series_shuffled
-- 1 minus the correlation of a year with the year before in a state, both as logarithms.
-- In a county, only from 0.4 on, and only of figures that the old release lacks: others are compared with their old values.
-- In real drops, likeness is 0.97 or more in states, 0.8 or more in counties.
-- rule: totals limit=0.1 applies=drop derived=true
-- finding: years do not correlate with the year before
-- cause: a year may be shuffled among ZIP codes, or be another column
SELECT state, NULL::INTEGER AS county, figure, 1 - likeness AS measured, pairs AS count, format('likeness {:.2f} to {}', likeness, before) AS detail
FROM state_series WHERE pairs >= 20
UNION ALL
SELECT n.state, n.county, any_value(n.figure), 1 - corr(ln(b.new), ln(n.new)), count(*), format('likeness {:.2f} to {}', corr(ln(b.new), ln(n.new)), any_value(b.figure))
FROM placed_figures n JOIN placed_figures b ON b.zip = n.zip AND b.ordinal = n.ordinal - 1 AND least(b.new, n.new) >= 500 AND n.old IS NULL
GROUP BY n.state, n.county, n.ordinal HAVING count(*) >= 20 AND corr(ln(b.new), ln(n.new)) < 0.6

-- name: series_leap
-- Larger ZIP codes whose figure grows or shrinks more than fivefold from one year to the next.
-- Of 500 or more, in states whose total stays. In real drops, at most 53 do, from 2018 to 2020.
-- rule: totals limit=80 by_state=false applies=drop derived=true
-- unit: ZIP codes
-- finding: figures jump between years in many ZIP codes
-- cause: a year may be shuffled, or partly in another unit
SELECT figure, sum(leaps) AS measured, sum(leaps) AS count,
       format('{} ZIP codes, after {}', sum(leaps)::BIGINT, any_value(before)) AS detail
FROM state_series WHERE 2 * new_total > old_total AND 2 * old_total > new_total GROUP BY figure

-- name: series_scale
-- Change of nearly every state's total by the same share from one year to the next; a step back is none.
-- rule: totals limit=0.1 by_state=false applies=drop derived=true
-- finding: figures change by the same share from one year to the next in every state
-- cause: a year may be in another unit, a sum instead of a mean, interpolated from a 0, 0 instead of unknown, or that of one group, such as men or adults
SELECT figure, abs(steps[2]) AS measured, count, format('{:+.1f}% after {}', 100 * steps[2], before) AS detail
FROM (SELECT figure, any_value(before) AS before, sum(pairs)::BIGINT AS count, quantile_cont(new_total / old_total - 1, [0.1, 0.5, 0.9]) AS steps
      FROM state_series WHERE old_total >= 20000 GROUP BY figure HAVING count(*) >= 5)
WHERE steps[3] - steps[1] < 0.25 * abs(steps[2]) QUALIFY NOT coalesce(steps[2] * lag(steps[2]) OVER (ORDER BY figure) < -0.01, false)

-- name: series_drift
-- Change of a state's total from one year to the next in the data, as a share for each calendar year.
-- In real drops, at most 2.4%. If only the first step is far, or the step before went back half as far, the year before is the odd one; a step back is none.
-- After a year that is new, between years that are not, none either: the step to the new year counts.
-- rule: totals limit=0.06 applies=drop derived=true
-- finding: state totals jump from one year to the next
-- cause: a year may be incomplete, added up twice, count something else, such as occupied homes or margins of error, be interpolated from a 0, grow by a rate that was applied again each year, or be in another unit or from another source or run
WITH added AS (SELECT figure FROM area_figures WHERE level = 'country' AND old_count = 0)
SELECT state, CASE WHEN prior IS NULL AND NOT coalesce(abs(next) > {limit}, false) OR prior * sign(step) < -abs(step) / 2
                   THEN before ELSE figure END AS figure, abs(step) AS measured,
       pairs AS count, format('{:,} in {}, after {:,} in {} ({:+.1f}%)', new_total::BIGINT, right(s.figure, 4), old_total::BIGINT, right(before, 4), 100 * step * gap) AS detail
FROM (SELECT *, (new_total / old_total - 1) / gap AS step, lag(step) OVER series AS prior, lead(step) OVER series AS next
      FROM state_series WHERE old_total >= 20000 WINDOW series AS (PARTITION BY state, kind ORDER BY figure)) s
WHERE NOT coalesce(abs(prior) > {limit} AND prior * step < 0, false)
    AND NOT (prior IS NOT NULL AND before IN (FROM added) AND figure NOT IN (FROM added))

-- name: homes_unlike_people
-- 1 minus the correlation of homes with population, or of demand with homes, both as logarithms.
-- In real drops, likeness is 0.83 or more.
-- rule: totals limit=0.35 applies=drop derived=true
-- finding: homes do not correlate with population, or demand with homes
-- cause: one of them may be shuffled among ZIP codes
SELECT h.state, h.figure, 1 - coalesce(nullif(corr(ln(o.new), ln(h.new)), 'NaN'), 0) AS measured, count(*) AS count,
       format('likeness {:.2f} to {}', 1 - measured, any_value(o.figure)) AS detail
FROM known_figures one JOIN known_figures other
    ON one.kind = '1 homes' AND other.kind = '0 people' AND other.year = one.year
       OR one.kind = '2 demand' AND other.figure = 'tot_home_available_2023'
JOIN placed_figures h ON h.ordinal = one.ordinal JOIN placed_figures o ON o.ordinal = other.ordinal AND o.zip = h.zip
WHERE h.new >= 200 AND o.new >= 200 GROUP BY h.state, h.figure HAVING count(*) >= 20

-- name: people_per_home
-- How far a state is from 2.25 people per home, as a share of 2.25.
-- In real drops, 1.85 to 2.80.
-- rule: totals limit=0.4 applies=drop derived=true
-- finding: population and homes do not match
-- cause: population and housing may be exchanged, or in another unit
SELECT h.state, h.figure, abs(sum(p.new) / sum(h.new) / 2.25 - 1) AS measured, count(*) AS count,
       format('{:.2f} people for each home', sum(p.new) / sum(h.new)) AS detail
FROM known_figures homes JOIN known_figures people ON people.year = homes.year AND people.kind = '0 people'
JOIN placed_figures h ON h.ordinal = homes.ordinal JOIN placed_figures p ON p.ordinal = people.ordinal AND p.zip = h.zip
WHERE homes.kind = '1 homes' AND h.new IS NOT NULL AND p.new IS NOT NULL GROUP BY h.state, h.figure HAVING sum(h.new) >= 20000

-- name: demand_beside_homes
-- How far a larger county's demand for homes is from its homes, as a share of its homes.
-- Of 5,000 homes or more. In real drops, at most 24% more.
-- rule: totals limit=0.5 applies=drop derived=true
-- finding: demand and homes do not match
-- cause: demand may be another column, in another unit, or grow too often, such as a yearly rate each month
SELECT d.state, d.county, d.figure, abs(sum(d.new) / sum(h.new) - 1) AS measured, count(*) AS count,
       format('{:,}, with {:,} in {}', sum(d.new)::BIGINT, sum(h.new)::BIGINT, any_value(h.figure)) AS detail
FROM placed_figures d JOIN placed_figures h ON h.zip = d.zip AND h.figure = 'tot_home_available_2023'
WHERE d.figure = 'est_total_home_demand_2030' AND d.new IS NOT NULL AND h.new IS NOT NULL
GROUP BY d.state, d.county, d.figure HAVING sum(h.new) >= 5000
