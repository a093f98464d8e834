-- name: entries_by_zip_code
-- The given ZIP codes and their encoded entries, unordered. The file is sorted by ZIP code, so few row groups are read.
SELECT zip_code, entry FROM {file} WHERE zip_code IN ({keys})

-- name: load_entries
-- Puts the entries of an area into a table in memory, with an index of their keys. The database has the area's name.
-- Entries are compressed (national: 11 MB, not 41); keys, which are checked for each row found, are not.
ATTACH ':memory:' AS {area} (COMPRESS);
CREATE TABLE {area}.entries ({key} VARCHAR USING COMPRESSION uncompressed PRIMARY KEY, entry BLOB NOT NULL);
INSERT INTO {area}.entries SELECT {key}, entry FROM {file};
CHECKPOINT {area};

-- name: unload_entries
-- Drops such a table, even a partial one.
DETACH DATABASE IF EXISTS {area}

-- name: page_of_projects
-- Ids and encoded entries of the projects at the given places, ascending, starting after the given id. The file is sorted
-- by place, then id, so few row groups are read.
SELECT project_id, entry FROM {file}
WHERE place IN (SELECT unnest(?::VARCHAR[])) AND project_id > ? ORDER BY project_id LIMIT ?

-- name: filtered_page_of_projects
-- The same for the projects that pass every filter that is not NULL, each with the number of all that pass; one row of
-- NULLs with the number if none is on the page. A project without a date passes no filter on it. Types are compared in
-- lower case; dates as text, which sorts in their order.
WITH matching AS MATERIALIZED (
    SELECT project_id, entry FROM (
        SELECT project_id, entry, decode(entry)::JSON AS project FROM {file}
        WHERE place IN (SELECT unnest($1::VARCHAR[]))
    )
    WHERE ($2::VARCHAR IS NULL OR project->>'status' = $2)
        AND ($3::VARCHAR IS NULL OR lower(project->>'project_type') = $3)
        AND ($4::VARCHAR IS NULL OR project->>'status_date' >= $4)
        AND ($5::VARCHAR IS NULL OR project->>'status_date' <= $5)
        AND ($6::VARCHAR IS NULL OR project->>'start_date' >= $6)
        AND ($7::VARCHAR IS NULL OR project->>'start_date' <= $7)
        AND ($8::VARCHAR IS NULL OR project->>'completion_date' >= $8)
        AND ($9::VARCHAR IS NULL OR project->>'completion_date' <= $9)
)
SELECT project_id, entry, matching_number FROM (SELECT count(*) AS matching_number FROM matching)
LEFT JOIN (SELECT * FROM matching WHERE project_id > $10 ORDER BY project_id LIMIT $11) ON true
ORDER BY project_id

-- name: lock_down
-- A look-up connection may only read the files of one release, and cannot change these settings. The folder is listed
-- twice, plain and with glob characters escaped, because DuckDB compares paths as they are written. A list of up to 512
-- keys, as many as share a statement, is looked up in an index, and its result is not joined with the list again. A
-- setting that is both global and local needs GLOBAL, or it would not apply to the cursors that look up.
SET memory_limit = '{memory}B';
SET threads = 1;
SET temp_directory = '';
SET GLOBAL parquet_metadata_cache = true;
SET GLOBAL dynamic_or_filter_threshold = 512;
SET disabled_optimizers = 'in_clause';
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET allowed_directories = ['{folder}', '{pattern}'];
SET enable_external_access = false;
SET lock_configuration = true;

-- name: limit_publisher
-- A publishing connection has a memory limit, spills into its own staging folder, and converts instants to dates in UTC.
SET memory_limit = '{memory}B';
SET threads = {threads};
SET temp_directory = '{folder}';
SET max_temp_directory_size = '{spill}B';
SET preserve_insertion_order = false;
SET TimeZone = 'UTC';
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
