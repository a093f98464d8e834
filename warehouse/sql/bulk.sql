-- name: flat_forecast
-- One row per ZIP code, as partners download it: location, a column for each year of population, housing figures.
CREATE OR REPLACE TEMP TABLE flat_records AS
SELECT l.zip_code, l.county_name, l.county_fips_code, l.city_name || ', ' || l.state_code AS city, l.state_code,
       l.latitude, l.longitude, {figures}
FROM {locations} l
LEFT JOIN (SELECT {years} FROM {population} GROUP BY zip_code) p ON p.zip_code = l.zip_code
LEFT JOIN {housing} h ON h.zip_code = l.zip_code

-- name: population_years
-- The years for which any ZIP code has a population.
SELECT DISTINCT year FROM {population} ORDER BY year

-- name: population_of_year
-- The column of one year: NULL where a ZIP code has no figure for it.
max(tot_population) FILTER (year = {year}) AS tot_population_{year}

-- name: flat_projects
-- One row per project that has a place, after `place_projects` and `name_project_places`. The lists are words of sources,
-- and the status of each word.
CREATE OR REPLACE TEMP TABLE flat_records AS
SELECT project_id, project_name, project_type, coalesce(map(?::VARCHAR[], ?::VARCHAR[])[status_word], ?) AS status,
       status AS status_source, status_date, start_date, completion_date, total_units AS tot_units, affordable_units,
       address AS street_address, p.zip_code, county_name, county_fips_code, n.city, p.state_code, latitude, longitude
FROM placed_projects p JOIN project_places n
    ON p.city_name = n.city_name AND p.state_code = n.state_code AND p.zip_code IS NOT DISTINCT FROM n.zip_code

-- name: count_flat
-- The number of flat rows.
SELECT count(*) FROM flat_records

-- name: write_flat_parquet
-- The flat rows as a Parquet file, in row groups small enough for readers to skip those that they do not need.
COPY (SELECT * FROM flat_records ORDER BY {id}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 8192)

-- name: write_flat_csv
-- The flat rows as CSV, where NULL is an empty field.
COPY (SELECT * FROM flat_records ORDER BY {id}) TO '{path}' (FORMAT csv, HEADER)

-- name: changed_records
-- The ids of the records whose entries differ between two serving files, or that only one of them has.
SELECT id FROM (SELECT {id} AS id, any_value(entry) AS entry FROM {old} GROUP BY id) o
FULL JOIN (SELECT {id} AS id, any_value(entry) AS entry FROM {new} GROUP BY id) n USING (id)
WHERE o.entry IS DISTINCT FROM n.entry ORDER BY id

-- name: all_records
-- The ids of all records of a serving file.
SELECT DISTINCT {id} AS id FROM {new} ORDER BY id
