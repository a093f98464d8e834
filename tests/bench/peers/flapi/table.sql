-- The joined table as a DuckDB database that the older DuckDB in flAPI reads, its list of objects as two of numbers.
ATTACH '@FILE@' AS made (STORAGE_VERSION 'v1.2.0');
CREATE TABLE made.forecast AS
SELECT zip_code, location, list_transform(population, lambda one: one.year) AS years,
       list_transform(population, lambda one: one.tot_population) AS figures, housing
FROM read_parquet('@JOINED@') ORDER BY zip_code;
DETACH made;
