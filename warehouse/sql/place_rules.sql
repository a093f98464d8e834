-- name: zip_of_other_state
-- Share of the ZIP codes whose first three digits belong to another state.
-- rule: places limit=0.001
-- of: state
-- explains: zip point county alias figures
-- finding: belong to another state by their first three digits
-- cause: states may be exchanged or shuffled, or looked up by a part of the ZIP code or of their name, or ZIP codes may be changed
SELECT n.state, n.zip_code, 'state_code' AS "column", format('{} in {}', n.city_name, n.state) AS value
FROM new_places n ANTI JOIN known_prefixes p ON p.code = n.state AND p.prefix = left(n.zip_code, 3)

-- name: boxes_lost
-- Share of the current release's ZIP codes that the drop lacks, if nearly all of them had no figures, in three or more states.
-- rule: places limit=0.005 applies=release
-- of: zip
-- explains: coverage column alias records
-- finding: are gone, and had no figures
-- cause: a join with the figures may have left out PO boxes and military addresses
WITH lost AS (SELECT *, zip_code::INTEGER IN (SELECT zip FROM placed_figures WHERE old IS NOT NULL) AS has_figures FROM old_places ANTI JOIN new_places USING (zip_code))
SELECT state, zip_code, 'zip_code' AS "column", city_name AS value FROM lost
WHERE NOT has_figures AND (SELECT avg(has_figures::INTEGER) < 0.05 AND count(DISTINCT state) > 2 FROM lost)

-- name: zip_codes_lost
-- Share of the current release's ZIP codes that the drop lacks.
-- rule: places limit=0.005 applies=release few=true
-- of: zip
-- explains: coverage column alias records
-- finding: are gone
-- cause: a state or a part of the export may be missing, or a filter or a join have left out those without figures
SELECT state, zip_code, 'zip_code' AS "column", city_name AS value FROM old_places ANTI JOIN new_places USING (zip_code)

-- name: zip_codes_gained
-- New ZIP codes, as a share of those in the current release; in a state, any number may be new.
-- rule: places limit=0.02 applies=release few=true state_factor=50
-- of: zip
-- explains: coverage alias
-- finding: are new
-- cause: they may be made up, or rows of tests
SELECT state, zip_code, 'zip_code' AS "column", city_name AS value FROM new_places ANTI JOIN old_places USING (zip_code)

-- name: state_changed
-- Share of the ZIP codes that are in another state than before.
-- rule: places limit=0.001 applies=release
-- of: state
-- explains: county point alias
-- finding: are in another state than before
-- cause: states may be exchanged or shuffled
SELECT was_state AS state, zip_code, 'state_code' AS "column", format('{} in {}, was in {}', city_name, state, was_state) AS value
FROM changed_places WHERE state <> was_state

-- name: place_filled
-- Share of the ZIP codes that had no county or coordinates and have those of the ZIP code before.
-- rule: places limit=0.0005 applies=release
-- among: new_places
-- of: point county
-- finding: had no county or coordinates, and have those of the ZIP code before
-- cause: empty values may have been filled with those of the row before
SELECT n.state, n.zip_code, 'county_fips_code, latitude, longitude' AS "column",
       concat_ws(' ', n.city_name, 'in', n.county, 'at', n.latitude, n.longitude) AS value
FROM (SELECT *, lag((county, latitude, longitude)) OVER (ORDER BY zip_code) AS before FROM new_places) n
JOIN old_places o ON o.zip_code = n.zip_code
WHERE o.county IS NULL AND n.county = before[1] OR o.latitude IS NULL AND n.latitude = before[2] AND n.longitude = before[3]

-- name: place_value_missing
-- Share of the ZIP codes without a county or coordinates; in territories and military areas, of those that had them.
-- rule: places limit=0.02
-- of: gap
-- finding: have no county or coordinates
-- cause: a join may have lost them
SELECT n.state, n.zip_code, n.city_name AS value
FROM new_places n JOIN known_states s ON s.code = n.state LEFT JOIN old_places o ON o.zip_code = n.zip_code
WHERE n.county IS NULL AND (o.county IS NOT NULL OR s.fips < '60') OR n.latitude IS NULL AND (o.latitude IS NOT NULL OR s.fips < '60')
    OR n.county_name IS NULL AND n.county IS NOT NULL OR n.longitude IS NULL AND n.latitude IS NOT NULL

-- name: county_of_other_state
-- Share of the ZIP codes whose county code begins with the number of another state.
-- rule: places limit=0.01
-- of: county
-- finding: have a county code of another state
-- cause: county codes may be shuffled, looked up by the name alone, or have lost a zero, or one may have been filled in everywhere
SELECT n.state, n.zip_code, 'county_fips_code' AS "column", format('{} in {} with {}', n.city_name, n.state, n.county) AS value
FROM new_places n LEFT JOIN known_states s ON s.code = n.state
WHERE left(n.county, 2) <> s.fips OR n.county IS NOT NULL AND s.fips IS NULL

-- name: county_left_state
-- Share of the ZIP codes whose county is in another state now.
-- rule: places limit=0.0002 applies=release
-- of: county
-- finding: have a county of another state now
-- cause: county codes may be shuffled
SELECT c.state, c.zip_code, 'county_fips_code' AS "column", format('{} in {} with {}', c.city_name, c.state, c.county) AS value
FROM changed_places c LEFT JOIN known_states s ON s.code = c.state
WHERE left(c.county, 2) <> s.fips AND left(c.was_county, 2) = s.fips

-- name: whole_degrees
-- Share of the ZIP codes whose coordinates are whole degrees.
-- rule: places limit=0.001
-- of: point
-- finding: have whole degrees as coordinates
-- cause: coordinates may be rounded, or cast to integers
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.0f}, {:.0f}', city_name, latitude, longitude) AS value
FROM new_places WHERE latitude = trunc(latitude) AND longitude = trunc(longitude)

-- name: minutes_as_decimals
-- Share of the ZIP codes in states where no coordinate has a fraction above .6.
-- rule: places limit=0
-- of: point
-- finding: are in states where no coordinate has a fraction above .6
-- cause: degrees and minutes may be written as decimals: 41.30 for 41° 30'
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM new_places WHERE latitude IS NOT NULL AND longitude IS NOT NULL WINDOW by_state AS (PARTITION BY state)
QUALIFY count(*) OVER by_state >= 50 AND min(latitude) OVER by_state < max(latitude) OVER by_state
    AND max(greatest(abs(latitude) % 1, abs(longitude) % 1)) OVER by_state <= 0.6

-- name: point_filled
-- Share of the ZIP codes that moved to one point together, ten or more from different points, or are at one point with over 500 others.
-- In real drops, 136 are. The boxes of a large city may all move to its post office.
-- rule: places limit=0.003
-- of: point
-- finding: are at one point together
-- cause: a default may have been filled in, such as the middle of a county or state, or a geocoder found another place of the name, or none
WITH points AS (
    SELECT latitude, longitude FROM new_places GROUP BY latitude, longitude HAVING count(latitude) > 500
    UNION SELECT latitude, longitude FROM changed_places
    WHERE greatest(abs(latitude - was_latitude), abs(longitude - was_longitude)) > 0.01
    GROUP BY latitude, longitude HAVING count(DISTINCT (was_latitude, was_longitude)) >= 10
)
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM new_places SEMI JOIN points USING (latitude, longitude)

-- name: point_exchanged
-- Share of the ZIP codes that have the former coordinates of another one, which has others now, and are over a kilometre from their own.
-- rule: places limit=0.0005 applies=release
-- among: new_places
-- of: point
-- finding: have the former coordinates of another one, which has others now
-- cause: coordinates may be shuffled or shifted among ZIP codes
SELECT DISTINCT ON (c.zip_code) c.state, c.zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}, as {} was', c.city_name, c.latitude, c.longitude, o.zip_code) AS value
FROM changed_places c JOIN changed_places o ON o.was_latitude = c.latitude AND o.was_longitude = c.longitude AND (o.latitude, o.longitude) <> (o.was_latitude, o.was_longitude)
WHERE greatest(abs(c.latitude - c.was_latitude), abs(c.longitude - c.was_longitude)) > 0.01

-- name: shared_point
-- Share of the ZIP codes at the same point as another one, and not there before.
-- In real drops, 9% are, and 62% in DC: post office boxes beside their town.
-- rule: places limit=0.3 state_factor=3
-- of: point
-- finding: are at the point of another one
-- cause: they may be the middles of counties or cities, rounded, or a default
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{} at {:.4f}, {:.4f}', city_name, latitude, longitude) AS value
FROM (FROM new_places WHERE latitude IS NOT NULL AND longitude IS NOT NULL QUALIFY count(*) OVER (PARTITION BY latitude, longitude) > 1)
ANTI JOIN old_places USING (zip_code, latitude, longitude)

-- name: place_outside_state
-- Share of the ZIP codes whose coordinates are outside their state.
-- In real drops, one is.
-- rule: places limit=0.0002
-- of: point
-- finding: have coordinates outside their state
-- cause: latitude and longitude may be exchanged, 0, without a sign, in another unit or those of a namesake, or states may be wrong
SELECT n.state, n.zip_code, 'latitude, longitude' AS "column",
       format('{}, {} at {:.2f}, {:.2f}', n.city_name, n.state, n.latitude, n.longitude) AS value
FROM new_places n LEFT JOIN known_states s ON s.code = n.state
WHERE n.latitude IS NOT NULL AND n.longitude IS NOT NULL
    AND NOT coalesce(n.latitude BETWEEN s.box[1] AND s.box[3] AND n.longitude BETWEEN s.box[2] AND s.box[4], false)

-- name: moved_place
-- Share of the ZIP codes whose coordinates moved by more than 25 km.
-- rule: places limit=0.01 applies=release
-- among: new_places
-- of: point
-- finding: moved by more than 25 km
-- cause: coordinates may be shuffled, rounded, have minutes for decimals, or belong to other places
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{}, by {:,.0f} km', city_name, km) AS value
FROM (SELECT *, 111.2 * sqrt(pow(latitude - was_latitude, 2)
                           + pow((longitude - was_longitude) * cos(radians(was_latitude)), 2)) AS km FROM changed_places)
WHERE km > 25

-- name: counties_exchanged
-- Share of the ZIP codes in two counties, each of which has nearly all ZIP codes of the other now.
-- rule: places limit=0 applies=release
-- of: county
-- finding: are in a county that was exchanged with theirs
-- cause: the codes or names of two counties may be exchanged
WITH moves AS (
    SELECT was_county, county, count(*) AS moved FROM changed_places JOIN (SELECT county AS was_county, count(*) AS places FROM old_places GROUP BY county) USING (was_county)
    WHERE county <> was_county GROUP BY was_county, county HAVING count(*) >= 0.8 * any_value(places)
)
SELECT c.was_state AS state, c.zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', c.county_name, c.county, c.was_county_name, c.was_county) AS value
FROM changed_places c JOIN moves m ON m.was_county = c.was_county AND m.county = c.county
SEMI JOIN moves back ON back.was_county = m.county AND back.county = m.was_county

-- name: city_like_county
-- Share of the ZIP codes whose city is named as a county.
-- rule: places limit=0.001
-- of: city county
-- finding: have a city that is named as a county
-- cause: cities and counties may be exchanged
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_places
WHERE regexp_matches(city_name, '(?i) (County|Parish|Municipio)$')

-- name: cut_to_length
-- Share of the ZIP codes whose city is as long as the longest one.
-- Two letters are a state instead of a city.
-- rule: places limit=0.005
-- of: city
-- finding: have a city name of exactly the greatest length
-- cause: names may have been cut off
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_places
WHERE length(city_name) = (SELECT max(length(city_name)) FROM new_places) AND length(city_name) > 2

-- name: name_cut
-- Share of the ZIP codes whose city or county is only the beginning or the end of its former name.
-- rule: places limit=0.002 applies=release
-- of: city county
-- finding: have a name that is only a part of the former one
-- cause: names may have been cut off, or lost a word or the letters with accents
SELECT was_state AS state, zip_code, 'city_name, county_name' AS "column",
       format('{}, was {}', concat_ws(', ', city_name, county_name), concat_ws(', ', was_city_name, was_county_name)) AS value
FROM changed_places
WHERE length(city_name) < length(was_city_name) AND starts_with(was_city_name, city_name)
    OR length(city_name) < length(was_city_name) AND ends_with(was_city_name, ' ' || city_name)
    OR length(county_name) < length(was_county_name) AND starts_with(was_county_name, county_name)
    OR city_name <> was_city_name AND city_name = regexp_replace(was_city_name, '[^\x00-\x7F]', '', 'g')
    OR county_name <> was_county_name AND county_name = regexp_replace(was_county_name, '[^\x00-\x7F]', '', 'g')

-- name: title_case
-- Share of the ZIP codes with a capital S after an apostrophe in their city or county, as in Prince George'S County.
-- rule: places limit=0
-- of: city county
-- finding: have a capital S after an apostrophe in a name
-- cause: a program may have put names into title case, and changed others too, such as McLean to Mclean
SELECT state, zip_code, 'city_name, county_name' AS "column", concat_ws(', ', city_name, county_name) AS value FROM new_places
WHERE regexp_matches(concat_ws(', ', city_name, county_name), '[a-z]''S\b')

-- name: county_half_moved
-- Share of the ZIP codes that have the code of another county of the current release and their former name, or its name and their former code.
-- rule: places limit=0.002 applies=release
-- of: county
-- finding: have the code or the name of another county, and not the other
-- cause: codes and names may be shifted against each other, or shuffled
SELECT was_state AS state, zip_code, 'county_fips_code, county_name' AS "column",
       format('{} {}, was {} {}', county_name, county, was_county_name, was_county) AS value
FROM changed_places
WHERE county <> was_county AND county_name = was_county_name AND county IN (SELECT county FROM old_places)
    OR county = was_county AND county_name <> was_county_name AND (state, county_name) IN (SELECT (state, county_name) FROM old_places)

-- name: county_differs
-- Share of the ZIP codes whose county has another name in most ZIP codes with its code, or another code in most of the state with its name.
-- Independent cities, numbered from 510 on, may have the name of a county.
-- rule: places limit=0
-- of: county
-- finding: have another county name than others with their county code, or another code than others with their name
-- cause: county names or codes may be shuffled, or only one of both be that of new counties
WITH own AS (SELECT n.* FROM new_places n JOIN known_states s ON s.code = n.state WHERE left(county, 2) = s.fips AND right(county, 3) < '510')
SELECT n.state, n.zip_code, 'county_fips_code, county_name' AS "column",
       concat(format('in {} {}, others of {} in {}', n.county_name, n.county, n.county, name), format(', of {} in {}', n.county_name, code)) AS value
FROM new_places n LEFT JOIN own USING (zip_code) JOIN (SELECT county, mode(county_name) AS name FROM new_places GROUP BY county) u ON u.county = n.county
LEFT JOIN (SELECT state, county_name, mode(county) AS code FROM own GROUP BY ALL) c ON c.state = own.state AND c.county_name = own.county_name
WHERE n.county_name <> name OR own.county <> code

-- name: retired_county
-- Share of the ZIP codes in a retired county, if others are in a county that replaced it.
-- rule: places limit=0
-- of: county
-- finding: are in a retired county, and others in its successor
-- cause: counties of different years may be mixed
SELECT n.state, n.zip_code, 'county_fips_code' AS "column", format('{} {}, others in {}', n.county_name, n.county, s.successor) AS value
FROM new_places n
JOIN (SELECT r.code, min(r.successor) AS successor FROM retired_counties r
      SEMI JOIN new_places p ON p.county = r.successor GROUP BY r.code) s ON s.code = n.county

-- name: independent_city
-- Share of the ZIP codes of independent cities that are all in the county of the same name now.
-- Independent cities are numbered from 510 on, as Baltimore, Saint Louis and those of Virginia.
-- rule: places limit=0 applies=release
-- of: county
-- finding: are in the county of the same name instead of their independent city
-- cause: counties may have been joined by name
SELECT c.was_state AS state, c.zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', c.county_name, c.county, c.was_county_name, c.was_county) AS value
FROM changed_places c ANTI JOIN new_places n ON n.county = c.was_county
WHERE right(c.was_county, 3) >= '510' AND right(c.county, 3) < '510' AND left(c.county, 2) = left(c.was_county, 2)
    AND regexp_replace(lower(c.county_name), 'city of | city$| county$', '', 'g') = regexp_replace(lower(c.was_county_name), 'city of | city$| county$', '', 'g')

-- name: renamed_county
-- Share of the ZIP codes whose county has the same code and another name, beyond case, accents, punctuation and its last word.
-- rule: places limit=0.05 applies=release state_factor=5
-- of: county
-- finding: have another name of their county, with the same code
-- cause: names may have lost letters, or be from another column or source
SELECT was_state AS state, zip_code, 'county_name' AS "column", format('{}, was {}', county_name, was_county_name) AS value
FROM changed_places WHERE county = was_county AND regexp_replace(lower(strip_accents(county_name)), '[^a-z]+(county|parish|borough|municipio)?', '', 'g')
    <> regexp_replace(lower(strip_accents(was_county_name)), '[^a-z]+(county|parish|borough|municipio)?', '', 'g')

-- name: counties_merged
-- Share of the ZIP codes of two or more counties, all of which moved to one other county of the current release.
-- A single county may really be merged with a neighbour.
-- rule: places limit=0 applies=release
-- of: county
-- finding: moved to one county together with all others of two or more counties
-- cause: one county may have been filled in for others, such as that of a large city
SELECT c.was_state AS state, c.zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', c.county_name, c.county, c.was_county_name, c.was_county) AS value
FROM changed_places c SEMI JOIN old_places o ON o.county = c.county ANTI JOIN new_places n ON n.county = c.was_county
QUALIFY len(list_distinct(list(c.was_county) OVER (PARTITION BY c.county))) > 1

-- name: other_county
-- Share of the ZIP codes that moved to a county that the current release already has.
-- New ones are new counties, as Connecticut's.
-- rule: places limit=0.02 applies=release state_factor=5
-- of: county
-- finding: moved to another county of the current release
-- cause: counties may be shuffled, exchanged, or merged with a neighbour
SELECT was_state AS state, zip_code, 'county_fips_code, county_name' AS "column",
       format('in {} {}, was in {} {}', county_name, county, was_county_name, was_county) AS value
FROM changed_places
WHERE county <> was_county AND county IN (SELECT county FROM old_places)

-- name: scattered_place
-- Share of the ZIP codes that are more than 100 km from the middle of their county.
-- rule: places limit=0.05
-- of: county point
-- finding: are more than 100 km from the middle of their county
-- cause: coordinates or counties may be shuffled
SELECT state, zip_code, 'latitude, longitude' AS "column", format('{}, {:,.0f} km', city_name, km) AS value
FROM (SELECT n.state, n.zip_code, n.city_name, 111.2 * sqrt(pow(n.latitude - m.latitude, 2)
                 + pow((n.longitude - m.longitude) * cos(radians(m.latitude)), 2)) AS km
      FROM new_places n JOIN (SELECT county, median(latitude) AS latitude, median(longitude) AS longitude FROM new_places
                              WHERE latitude IS NOT NULL GROUP BY county) m ON m.county = n.county)
WHERE km > 100

-- name: word_replaced
-- Share of the ZIP codes in whose city one word was replaced by another, as in five or more cities.
-- Words of up to three letters are abbreviations, which queries match in any case.
-- rule: places limit=0.0005 applies=release
-- of: city
-- finding: have a city in which a word was replaced, as in other cities
-- cause: an abbreviation may have been expanded wrongly
SELECT state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM (SELECT *, list_filter(list_zip(string_split(lower(was_city_name), ' '), string_split(lower(city_name), ' ')),
                            lambda pair: pair[1] IS DISTINCT FROM pair[2]) AS pairs
      FROM changed_places WHERE city <> was_city)
WHERE len(pairs) = 1 AND length(pairs[1][1]) > 3 AND length(pairs[1][2]) > 3
QUALIFY len(list_distinct(list(city) OVER (PARTITION BY pairs[1]))) >= 5

-- name: other_city
-- Share of the ZIP codes that moved to a city that the current release already has in the state.
-- New names are renamed cities.
-- rule: places limit=0.01 applies=release
-- of: city
-- finding: moved to another city of the current release
-- cause: cities may be shuffled or exchanged, or one, such as the largest of a county, filled in for others
SELECT was_state AS state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM changed_places c SEMI JOIN old_places known ON known.state = c.state AND known.city = c.city WHERE city <> was_city

-- name: renamed_city
-- Share of the ZIP codes whose city has a new name, beyond case, accents and punctuation.
-- rule: places limit=0.05 applies=release state_factor=5
-- of: city
-- finding: have another city name
-- cause: cities may come from another column or source, such as names that are not primary
SELECT was_state AS state, zip_code, 'city_name' AS "column", format('{}, was {}', city_name, was_city_name) AS value
FROM changed_places WHERE city <> was_city

-- name: respelled_name
-- Share of the ZIP codes whose city or county has another spelling or, with the same code, another name. Answers show the new one; queries match both spellings of a city.
-- rule: places limit=0 applies=release severity=warning
-- of: city county
-- finding: have another spelling of their city or county, which answers will show
-- cause: names may come from another system, or a county may be renamed
SELECT was_state AS state, zip_code, 'city_name, county_name' AS "column",
       format('{}, was {}', concat_ws(', ', city_name, county_name), concat_ws(', ', was_city_name, was_county_name)) AS value
FROM changed_places WHERE city = was_city AND city_name <> was_city_name OR county = was_county AND county_name <> was_county_name

-- name: alias_of_other_state
-- Share of the aliases that are in another state than their ZIP code.
-- rule: places limit=0.001
-- among: new_aliases
-- of: alias
-- finding: are in another state than their ZIP code
-- cause: aliases may be shifted among ZIP codes, or their state looked up by the name alone or by another place
SELECT a.state, a.zip_code, 'state_code' AS "column", format('{} in {}, the ZIP code is in {}', a.city_name, a.state, n.state) AS value
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code WHERE a.state <> n.state

-- name: alias_status_changed
-- Share of the aliases that have another status than before.
-- rule: places limit=0.05 applies=release state_factor=4
-- among: old_aliases
-- of: alias
-- finding: have another status
-- cause: two statuses may be exchanged, or one may have been filled in everywhere
SELECT n.state, n.zip_code, 'usps_status' AS "column", format('{} is {}, was {}', n.city_name, n.status, o.status) AS value
FROM old_aliases o JOIN new_aliases n ON n.zip_code = o.zip_code AND n.city = o.city WHERE n.status <> o.status

-- name: acceptable_aliases_rejected
-- Share of the aliases that are the city of other ZIP codes in their state and are unacceptable.
-- Of 100 or more. In real drops, 5% are: the Postal Service accepts the names of its post offices.
-- rule: places limit=0.5 state_factor=2
-- among: (SELECT a.* FROM new_aliases a SEMI JOIN new_places p ON p.state = a.state AND p.city = a.city WHERE a.status <> 'primary')
-- of: alias city
-- finding: are the city of other ZIP codes, and unacceptable
-- cause: the statuses acceptable and unacceptable may be exchanged
SELECT a.state, a.zip_code, 'usps_status' AS "column", format('{} is {}', a.city_name, a.status) AS value
FROM new_aliases a SEMI JOIN new_places p ON p.state = a.state AND p.city = a.city WHERE a.status = 'unacceptable'
QUALIFY count(*) OVER () >= 100

-- name: several_primary_aliases
-- Share of the aliases that are one of several primary ones of their ZIP code.
-- rule: places limit=0.005
-- among: new_aliases
-- of: alias
-- finding: are one of several primary aliases of their ZIP code
-- cause: one status may have been filled in everywhere, or two may be exchanged
SELECT state, zip_code, 'usps_status' AS "column", city_name AS value FROM new_aliases
WHERE status = 'primary' QUALIFY count(*) OVER (PARTITION BY zip_code) > 1

-- name: alias_cut
-- Share of the primary aliases that are only the beginning of the city of their ZIP code.
-- rule: places limit=0.005
-- among: new_aliases WHERE status = 'primary'
-- of: alias
-- finding: are only the beginning of the city of their ZIP code
-- cause: aliases may have been cut off
SELECT a.state, n.zip_code, 'city_name' AS "column", format('{}, was cut to {}', n.city_name, a.city_name) AS value
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code
WHERE a.status = 'primary' AND length(a.city) < length(n.city) AND starts_with(n.city, a.city)

-- name: alias_cut_to_length
-- Share of the aliases that are as long as the longest one, of primary ones or of others.
-- In real drops, 0.2% are.
-- rule: places limit=0.05 state_factor=3
-- among: new_aliases
-- of: alias
-- finding: have exactly the greatest length
-- cause: aliases may have been cut off
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_aliases
QUALIFY length(city_name) = max(length(city_name)) OVER (PARTITION BY status = 'primary')

-- name: primary_alias_differs
-- Share of the primary aliases that are not the city of their ZIP code.
-- rule: places limit=0.01
-- among: new_aliases WHERE status = 'primary'
-- of: alias city
-- finding: are primary but not the city of their ZIP code
-- cause: another alias may have been chosen, two statuses exchanged, or aliases or cities may be shuffled, or from another month
SELECT a.state, n.zip_code, 'city_name' AS "column", format('{}, its primary alias is {}', n.city_name, a.city_name) AS value
FROM new_aliases a JOIN new_places n ON n.zip_code = a.zip_code WHERE a.status = 'primary' AND a.city <> n.city

-- name: many_aliases
-- Share of the aliases whose ZIP code has more than 70.
-- In real drops, none. In Puerto Rico, a ZIP code has up to 65: its quarters are aliases.
-- rule: places limit=0.002
-- among: new_aliases
-- of: alias
-- finding: belong to ZIP codes with more than 70
-- cause: a join may have multiplied aliases, such as one on the county or the state
SELECT state, zip_code, 'city_name' AS "column", city_name AS value FROM new_aliases QUALIFY count(*) OVER (PARTITION BY zip_code) > 70

-- name: alias_moved
-- Share of the city names among the aliases that lead to other ZIP codes, and to none of the former ones that still exist.
-- rule: places limit=0.0005 applies=release
-- among: (SELECT DISTINCT state, city FROM old_aliases)
-- of: alias
-- finding: lead to other ZIP codes
-- cause: aliases may be shifted among ZIP codes
SELECT state, was AS zip_code, 'city_name' AS "column", format('{}, now in {}', city_name, now) AS value
FROM (SELECT o.state, o.city, min(o.city_name) AS city_name, min(o.zip_code) AS was, min(n.zip_code) AS now, bool_or(o.zip_code = n.zip_code) AS stays
      FROM old_aliases o SEMI JOIN new_places p ON p.zip_code = o.zip_code
      JOIN new_aliases n ON n.state = o.state AND n.city = o.city GROUP BY o.state, o.city)
WHERE NOT stays

-- name: aliases_gained
-- Share of aliases that the current release lacks, among the ZIP codes that have aliases in it.
-- rule: places limit=0.2 applies=release
-- among: new_aliases
-- of: alias
-- finding: are new
-- cause: a join may have multiplied aliases, or they may be shuffled
SELECT a.state, a.zip_code, 'city_name' AS "column", a.city_name AS value
FROM new_aliases a SEMI JOIN old_aliases k ON k.zip_code = a.zip_code
ANTI JOIN old_aliases o ON o.zip_code = a.zip_code AND o.city = a.city

-- name: aliases_lost
-- Share of the current release's aliases that the drop lacks.
-- rule: places limit=0.1 applies=release few=true state_factor=3
-- among: old_aliases
-- of: alias
-- finding: are gone
-- cause: aliases may be shuffled, or some may be missing
SELECT o.state, o.zip_code, 'city_name' AS "column", o.city_name AS value
FROM old_aliases o SEMI JOIN new_places n ON n.zip_code = o.zip_code
ANTI JOIN new_aliases a ON a.zip_code = o.zip_code AND a.city = o.city

-- name: alias_missing
-- Share of the ZIP codes without an alias, if the release before has no aliases.
-- Of a table that has primary aliases: each ZIP code has one. A table of further names may cover any part of the country.
-- In real drops, some military ones lack it, 17% of a state.
-- rule: places limit=0.01 state_factor=25
-- of: alias
-- finding: have no alias
-- cause: a part of the aliases may be missing, or only one ZIP code of each name be left
SELECT state, zip_code, 'zip_code' AS "column", city_name AS value FROM new_places ANTI JOIN new_aliases USING (zip_code)
WHERE NOT EXISTS (FROM old_aliases) AND EXISTS (FROM new_aliases WHERE status = 'primary')
