-- name: write_locations
-- The locations of a release, by ZIP code. A row without a ZIP code is an error already, and is left out.
COPY (SELECT {columns} FROM staged_locations WHERE zip_code IS NOT NULL ORDER BY zip_code)
TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_population
-- The population of a release: years with a figure, in ZIP codes with a location.
COPY (SELECT {columns} FROM staged_population
      WHERE tot_population IS NOT NULL AND zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY zip_code, year) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_housing
-- The housing figures of a release, in ZIP codes with a location.
COPY (SELECT {columns} FROM staged_housing
      WHERE zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY zip_code) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_aliases
-- The city aliases of a release: those with a name, in ZIP codes with a location.
COPY (SELECT zip_code, city_name, state_code, lower(usps_status) AS usps_status FROM staged_aliases
      WHERE city_name IS NOT NULL AND zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY ALL) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_development_projects
-- The projects of a release. A negative unit count means unknown and becomes NULL.
COPY (SELECT * REPLACE (CASE WHEN total_units >= 0 THEN total_units END AS total_units,
                        CASE WHEN affordable_units >= 0 THEN affordable_units END AS affordable_units)
      FROM (SELECT {columns} FROM staged_development_projects) WHERE project_id IS NOT NULL ORDER BY project_id)
TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: checksum_table
-- The number of rows, and a checksum of the content that does not depend on the order of rows.
SELECT count(*), coalesce(bit_xor(md5_number({row})), 0)::VARCHAR FROM {file}

-- name: forecast_entries
-- One row per ZIP code: its location, its years with their population (ascending), its housing figures.
SELECT l.zip_code, l.county_name, l.county_fips_code, l.city_name, l.state_code, l.latitude, l.longitude,
       p.years, p.figures, {figures}
FROM {locations} l
LEFT JOIN (SELECT zip_code, list(year ORDER BY year) AS years, list(tot_population ORDER BY year) AS figures
           FROM {population} GROUP BY zip_code) p ON p.zip_code = l.zip_code
LEFT JOIN {housing} h ON h.zip_code = l.zip_code
ORDER BY l.zip_code

-- name: acceptable_aliases
-- City names that the postal service accepts for a ZIP code, besides the name of its own city.
SELECT zip_code, city_name, state_code FROM {file}
WHERE usps_status = 'acceptable' ORDER BY state_code, city_name, zip_code

-- name: place_projects
-- Every project that has a place. Its place is the city it names, in its own state or else in that of its ZIP code. A
-- project that names no city is in the postal city of its ZIP code. County and postal city come from the ZIP code.
CREATE OR REPLACE TEMP TABLE placed_projects AS
SELECT * FROM (
    SELECT p.project_id, p.project_name, p.project_type, {folded} AS status_word, p.status, p.status_date, p.start_date,
           p.completion_date, p.total_units, p.affordable_units, p.address, p.zip_code, p.latitude, p.longitude,
           coalesce(p.state_code, l.state_code) AS own_state, {city} AS own_city,
           CASE WHEN own_city IS NULL OR own_state IS NULL THEN l.city_name ELSE own_city END AS city_name,
           CASE WHEN own_city IS NULL OR own_state IS NULL THEN l.state_code ELSE own_state END AS state_code,
           l.county_name, l.county_fips_code, l.city_name AS postal_city, l.state_code AS postal_state
    FROM {projects} p LEFT JOIN {locations} l ON l.zip_code = p.zip_code)
WHERE city_name IS NOT NULL

-- name: project_cities
-- Every spelling of a city in the projects, most frequent first: the number of projects, in total and by ZIP code.
SELECT city_name, state_code, sum(number)::BIGINT AS total,
       coalesce(map_from_entries(list((zip_code, number)) FILTER (zip_code IS NOT NULL)), MAP {})
FROM (SELECT city_name, state_code, zip_code, count(*) AS number FROM placed_projects GROUP BY ALL)
GROUP BY city_name, state_code ORDER BY total DESC, city_name, state_code

-- name: project_types
-- Every type of project, in its most frequent spelling. Types that differ only in letter case are the same.
SELECT project_type FROM placed_projects WHERE project_type IS NOT NULL GROUP BY project_type
QUALIFY row_number() OVER (PARTITION BY lower(project_type) ORDER BY count(*) DESC, project_type) = 1
ORDER BY lower(project_type)

-- name: project_zips
-- Every ZIP code in the projects, with its postal city. A ZIP code without a location has a city of its projects instead.
SELECT zip_code, place.city, place.state, number FROM (
    SELECT zip_code, count(*) AS number,
           coalesce(min({'city': postal_city, 'state': postal_state}) FILTER (postal_city IS NOT NULL),
                    min({'city': city_name, 'state': state_code})) AS place
    FROM placed_projects WHERE zip_code IS NOT NULL GROUP BY zip_code)
ORDER BY zip_code

-- name: name_project_places
-- For each spelling of a city and each of its ZIP codes (or none): the name to print, and the keys of its projects.
CREATE OR REPLACE TEMP TABLE project_places AS
SELECT unnest(?::VARCHAR[]) AS city_name, unnest(?::VARCHAR[]) AS state_code, unnest(?::VARCHAR[]) AS zip_code,
       unnest(?::VARCHAR[]) AS city, unnest(?::VARCHAR[][]) AS places

-- name: count_projects
-- The number of projects that have a place.
SELECT count(*) FROM placed_projects

-- name: project_entries
-- One row for each project and key that finds it, in the order of the serving file.
SELECT unnest(places) AS place, project_id, project_name, project_type, status_word, status, status_date, start_date,
       completion_date, total_units, affordable_units, address, p.zip_code, county_name, county_fips_code, city,
       p.state_code, latitude, longitude
FROM placed_projects p JOIN project_places n
    ON p.city_name = n.city_name AND p.state_code = n.state_code AND p.zip_code IS NOT DISTINCT FROM n.zip_code
ORDER BY place, project_id

-- name: servable_development_projects
-- The projects that a query can find: those with an id, and with a place of their own or from their ZIP code.
(SELECT p.* FROM {rows} p LEFT JOIN {locations} l ON l.zip_code = p.zip_code
 WHERE p.project_id IS NOT NULL AND (l.zip_code IS NOT NULL OR ({city} IS NOT NULL AND p.state_code IS NOT NULL)))

-- name: named_city
-- A city's name, or NULL if it has no letter or digit: sources write a dash or a dot for "none".
CASE WHEN regexp_matches({value}, '[\p{L}\p{N}]') THEN {value} END
