"""Types for members of answers, with details for the OpenAPI description and the data dictionary."""

from typing import Annotated

from msgspec import Meta


def figure(description: str, *, unit: str, source: str, years: str) -> Meta:
    """Returns the details of a figure. The extensions are written into the OpenAPI description as they are."""
    return Meta(description=description, extra_json_schema={"x-unit": unit, "x-source": source, "x-years": years})


ZipCode = Annotated[str, Meta(pattern="^[0-9]{5}$", description="Five digits, leading zeros included.")]
FipsCode = Annotated[str, Meta(pattern="^[0-9]{5}$", description="Two digits of the state, three of the county.")]
StateCode = Annotated[str, Meta(pattern="^[A-Z]{2}$", description="The postal code of a state or territory.")]
City = Annotated[str, Meta(description='"<city name>, <state_code>"')]
Latitude = Annotated[float | None, Meta(description="Degrees, north positive.")]
Longitude = Annotated[float | None, Meta(description="Degrees, east positive.")]
TotalMatching = Annotated[int, Meta(description="The number of entries on all pages together.")]
NextCursor = Annotated[str | None, Meta(description="The cursor of the next page; null on the last.")]
