"""Answers of the forecast area that the OpenAPI description shows."""

from typing import Any

EXAMPLE: dict[str, Any] = {
    "total_results": 1,
    "zip_codes": [
        {
            "location": {
                "zip_code": "36436",
                "county_name": "Clarke County",
                "county_fips_code": "01025",
                "city": "Dickinson, AL",
                "state_code": "AL",
                "latitude": 31.7061,
                "longitude": -87.9999,
            },
            "population": [{"year": 2023, "tot_population": 783}],
            "housing": {
                "tot_home_available_2020": 216,
                "tot_home_available_2021": 333,
                "tot_home_available_2022": 334,
                "tot_home_available_2023": 281,
                "est_total_home_demand_2030": 467,
            },
        }
    ],
}

# Its name beside the other.
WITHOUT_FIGURES = "without_figures"
EXAMPLE_WITHOUT_FIGURES: dict[str, Any] = {
    "total_results": 1,
    "zip_codes": [
        {
            "location": {
                "zip_code": "09001",
                "county_name": None,
                "county_fips_code": None,
                "city": "APO, AE",
                "state_code": "AE",
                "latitude": None,
                "longitude": None,
            },
            "population": [],
            "housing": dict.fromkeys(EXAMPLE["zip_codes"][0]["housing"]),
        }
    ],
}
