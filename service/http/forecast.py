"""GET /v1/population-housing-forecast, and its area, which includes batches and regions."""

from functools import partial

from service.cache.key import cache_key
from service.http.area import Endpoint, Operation, PartnerArea, Resolved
from service.http.forecast_batch import BATCH
from service.http.forecast_examples import EXAMPLE, EXAMPLE_WITHOUT_FIGURES, WITHOUT_FIGURES
from service.http.forecast_regions import BY_COUNTY, BY_STATE
from service.http.query import LOCATION_PARAMETERS, read_location, read_parameters
from service.request.lookup_watch import SampleLookup
from warehouse.areas import forecast
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease
from warehouse.places.keyset import KeySet
from warehouse.places.match import Match, NoMatch

PATH = "/v1/population-housing-forecast"
NAME = forecast.FORECAST_AREA.name


def resolve(keys: KeySet, query_string: bytes, _: Cursors) -> Resolved | NoMatch:
    """Resolves a partner's query string. Raises ApiError (400)."""
    values, unknown = read_parameters(query_string, LOCATION_PARAMETERS)
    match = keys.resolve(*read_location(values, unknown))
    if not isinstance(match, Match):
        return match
    outcome = "answered" if keys.has_figures(match.keys) else "answered_empty"
    ignored = tuple(name for name, _ in unknown)
    return Resolved(
        match.query, match.keys, lambda engine: forecast.look_up_forecast(engine, match), outcome, match.cities, ignored
    )


def samples(release: OpenRelease, most: int) -> list[SampleLookup]:
    """Returns random ZIP codes; every release has the area."""
    return [
        SampleLookup(
            cache_key(release.id, NAME, match.query), partial(forecast.look_up_forecast, release.engine, match)
        )
        for match in release.keys[NAME].some(most)
    ]


FORECAST = Endpoint(
    path=PATH,
    description="Population by year, and housing supply and demand, by ZIP code.",
    operation=Operation(
        id="getPopulationHousingForecast",
        description="Every ZIP code that matches is in the answer; there are no pages.",
        body=forecast.ForecastBody,
        matched="A match. zip_codes ascend by ZIP code, population by year.",
        examples={"zip_code": EXAMPLE, WITHOUT_FIGURES: EXAMPLE_WITHOUT_FIGURES},
    ),
    resolve=resolve,
)

AREA = PartnerArea(
    name=NAME,
    endpoints=(FORECAST, BATCH, BY_COUNTY, BY_STATE),
    nothing=("There are no records of ZIP code {}", "There is no city {} in {}"),
    regions=f" Up to 100 ZIP codes: {BATCH.path}?zip_code=36436&zip_code=90210. All of a county: {BY_COUNTY.path}?"
    f"county_fips_code=01025. All of a state: {BY_STATE.path}?state_code=AL. The whole country: the files that GET "
    "/v1/releases lists.",
)
