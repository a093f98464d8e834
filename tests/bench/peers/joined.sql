-- The release as ROAPI and flAPI like it best while they answer the same entries: one row per ZIP code, joined
-- beforehand.
COPY (
    SELECT l.zip_code,
           {'zip_code': l.zip_code, 'county_name': county_name, 'county_fips_code': county_fips_code,
            'city': city_name || ', ' || state_code, 'state_code': state_code,
            'latitude': latitude, 'longitude': longitude} AS location,
           coalesce(p.population, []) AS population,
           {'tot_home_available_2020': tot_home_available_2020, 'tot_home_available_2021': tot_home_available_2021,
            'tot_home_available_2022': tot_home_available_2022, 'tot_home_available_2023': tot_home_available_2023,
            'est_total_home_demand_2030': est_total_home_demand_2030} AS housing
    FROM read_parquet('@TABLES@/locations.parquet') l
    LEFT JOIN (SELECT zip_code, list({'year': year, 'tot_population': tot_population} ORDER BY year) AS population
               FROM read_parquet('@TABLES@/population.parquet') GROUP BY zip_code) p USING (zip_code)
    LEFT JOIN read_parquet('@TABLES@/housing.parquet') h USING (zip_code)
    ORDER BY l.zip_code
) TO '@FILE@' (FORMAT parquet)
