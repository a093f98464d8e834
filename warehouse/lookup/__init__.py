"""Look-ups in the files of a release: DuckDB, shared statements, deadlines."""
