-- name: claimed_rows
-- How many rows a file says that it has; its footer is all that is read.
SELECT num_rows FROM parquet_file_metadata(?)
