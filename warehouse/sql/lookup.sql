-- name: entries_by_zip_code
-- The given ZIP codes and their encoded entries, unordered. The file is sorted by ZIP code, so few row groups are read.
SELECT zip_code, entry FROM {file} WHERE zip_code IN ({keys})

-- name: page_of_projects
-- Ids and encoded entries of the projects at the given places, ascending, starting after the given id. The file is sorted
-- by place, then id, so few row groups are read.
SELECT project_id, entry FROM {file}
WHERE place IN (SELECT unnest(?::VARCHAR[])) AND project_id > ? ORDER BY project_id LIMIT ?

-- name: lock_down
-- A look-up connection may only read the files of one release, and cannot change these settings. The folder is listed
-- twice, plain and with glob characters escaped, because DuckDB compares paths as they are written.
SET memory_limit = '{memory}B';
SET threads = 1;
SET temp_directory = '';
SET parquet_metadata_cache = true;
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
