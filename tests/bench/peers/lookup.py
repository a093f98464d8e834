"""One ZIP code's answer from a release's tables by DuckDB, in the usual way: for the Python peers, on a miss."""

import os
from typing import Any

import duckdb

_TABLES = os.environ["RELEASE"] + "/tables"
_connection = duckdb.connect()
_connection.execute("SET threads = 1; SET parquet_metadata_cache = true")
_QUERY = f"""
SELECT l.*, p.years, p.figures, h.* EXCLUDE (zip_code)
FROM read_parquet('{_TABLES}/locations.parquet') l
LEFT JOIN (SELECT zip_code, list(year ORDER BY year) AS years,
                  list(tot_population ORDER BY year) AS figures
           FROM read_parquet('{_TABLES}/population.parquet') WHERE zip_code = $zip GROUP BY zip_code) p USING (zip_code)
LEFT JOIN (SELECT * FROM read_parquet('{_TABLES}/housing.parquet') WHERE zip_code = $zip) h USING (zip_code)
WHERE l.zip_code = $zip
"""
_HOUSING = [f"tot_home_available_{year}" for year in range(2020, 2024)] + ["est_total_home_demand_2030"]


def look_up(zip_code: str) -> dict[str, Any] | None:
    """The body of the contract, or None where there is no such ZIP code."""
    row = _connection.cursor().execute(_QUERY, {"zip": zip_code}).fetchone()
    if row is None:
        return None
    zip_, city, state, county, fips, latitude, longitude, years, figures, *housing = row
    location = {
        "zip_code": zip_,
        "county_name": county,
        "county_fips_code": fips,
        "city": f"{city}, {state}",
        "state_code": state,
        "latitude": latitude,
        "longitude": longitude,
    }
    population = [
        {"year": year, "tot_population": figure} for year, figure in zip(years or (), figures or (), strict=True)
    ]
    entry = {"location": location, "population": population, "housing": dict(zip(_HOUSING, housing, strict=True))}
    return {"total_results": 1, "zip_codes": [entry]}
