-- name: write_locations
-- The locations of a release, by ZIP code.
COPY (SELECT {columns} FROM staged_locations ORDER BY zip_code)
TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_population
-- The population of a release: only years with a figure, only ZIP codes with a location.
COPY (SELECT {columns} FROM staged_population
      WHERE tot_population IS NOT NULL AND zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY zip_code, year) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_housing
-- The housing figures of a release: only ZIP codes with a location.
COPY (SELECT {columns} FROM staged_housing
      WHERE zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY zip_code) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_aliases
-- The city aliases of a release: named ones, only of ZIP codes with a location.
COPY (SELECT zip_code, city_name, state_code, lower(usps_status) AS usps_status FROM staged_aliases
      WHERE city_name IS NOT NULL AND zip_code IN (SELECT zip_code FROM {locations})
      ORDER BY ALL) TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: write_development_projects
-- The projects of a release; a unit count below zero means unknown.
COPY (SELECT * REPLACE (CASE WHEN total_units >= 0 THEN total_units END AS total_units,
                        CASE WHEN affordable_units >= 0 THEN affordable_units END AS affordable_units)
      FROM (SELECT {columns} FROM staged_development_projects) ORDER BY project_id)
TO '{path}' (FORMAT parquet, COMPRESSION zstd)

-- name: checksum_table
-- Rows and a checksum of a table's content that does not depend on the order of its rows.
SELECT count(*), coalesce(bit_xor(md5_number({row})), 0)::VARCHAR FROM {file}

-- name: forecast_entries
-- One row per ZIP code: its location, its years and figures in ascending order, its housing figures.
SELECT l.zip_code, l.county_name, l.county_fips_code, l.city_name, l.state_code, l.latitude, l.longitude,
       p.years, p.figures, {figures}
FROM {locations} l
LEFT JOIN (SELECT zip_code, list(year ORDER BY year) AS years, list(tot_population ORDER BY year) AS figures
           FROM {population} GROUP BY zip_code) p ON p.zip_code = l.zip_code
LEFT JOIN {housing} h ON h.zip_code = l.zip_code
ORDER BY l.zip_code

-- name: acceptable_aliases
-- City names that are acceptable for a ZIP code beside its own.
SELECT zip_code, state_code, city_name FROM {file}
WHERE usps_status = 'acceptable' ORDER BY state_code, city_name, zip_code
