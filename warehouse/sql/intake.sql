-- name: claimed_rows
-- How many rows a file says that it has, in all and in its row groups: whichever is more. Its footer is all that is read.
SELECT greatest(whole, parts) FROM
    (SELECT sum(num_rows) AS whole FROM parquet_file_metadata({file})),
    (SELECT coalesce(sum(rows), 0) AS parts FROM (
        SELECT max(row_group_num_rows) AS rows FROM parquet_metadata({file}) GROUP BY row_group_id))
