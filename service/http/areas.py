"""The data areas that partners can ask for, in the order in which the index lists them."""

import msgspec


class AreaDescription(msgspec.Struct, frozen=True):
    """As the index shows it. `name` is also the area's name in releases and metrics."""

    name: str
    path: str
    description: str
    query_forms: tuple[tuple[str, ...], ...]


FORECAST = AreaDescription(
    "forecast",
    "/v1/population-housing-forecast",
    "Population by year, and housing supply and demand, by ZIP code.",
    (("zip_code",), ("city_name", "state_code")),
)

AREAS: tuple[AreaDescription, ...] = (FORECAST,)
