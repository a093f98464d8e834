"""GET /v1/population-housing-forecast."""

from functools import partial
from typing import Any

from service.cache.key import cache_key
from service.http.area import Operation, PartnerArea, Resolved
from service.http.lookups import SampleLookup
from service.http.query import parse_location
from warehouse.areas import forecast
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease
from warehouse.places.keyset import KeySet, Match, NoMatch

PATH = "/v1/population-housing-forecast"
NAME = forecast.FORECAST_AREA.name


def resolve(keys: KeySet, query_string: bytes, _: Cursors) -> Resolved | NoMatch:
    """What a partner's query string asks for. Raises ApiError (400)."""
    query = parse_location(query_string)
    match = keys.resolve(query.zip_code, query.city_name, query.state_code)
    if not isinstance(match, Match):
        return match
    outcome = "answered" if keys.has_figures(match.keys) else "answered_empty"
    return Resolved(match.query, match.keys, lambda engine: forecast.look_up_forecast(engine, match), outcome)


def samples(release: OpenRelease, most: int) -> list[SampleLookup]:
    """ZIP codes at random; the area is in every release."""
    return [
        SampleLookup(
            cache_key(release.id, NAME, match.query), partial(forecast.look_up_forecast, release.engine, match)
        )
        for match in release.keys[NAME].some(most)
    ]


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

AREA = PartnerArea(
    name=NAME,
    path=PATH,
    description="Population by year, and housing supply and demand, by ZIP code.",
    operation=Operation(
        id="getPopulationHousingForecast",
        description="Every ZIP code that matches is in the answer; there are no pages.",
        body=forecast.ForecastBody,
        matched="A match. zip_codes ascend by ZIP code, population by year.",
        examples={"zip_code": EXAMPLE, "without_figures": EXAMPLE_WITHOUT_FIGURES},
    ),
    resolve=resolve,
    nothing=("There are no records of ZIP code {}", "There is no city {} in {}"),
)
