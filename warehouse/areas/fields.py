"""Types for members of answers that the OpenAPI description specifies further."""

from typing import Annotated

from msgspec import Meta

ZipCode = Annotated[str, Meta(pattern="^[0-9]{5}$")]
FipsCode = Annotated[str, Meta(pattern="^[0-9]{5}$")]
StateCode = Annotated[str, Meta(pattern="^[A-Z]{2}$")]
City = Annotated[str, Meta(description='"<city name>, <state_code>"')]
