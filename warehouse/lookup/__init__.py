"""Look-ups in the files of a release: DuckDB, batching, deadlines."""
