"""What members of answers look like, beyond their types; the OpenAPI description says so."""

from typing import Annotated

from msgspec import Meta

ZipCode = Annotated[str, Meta(pattern="^[0-9]{5}$")]
FipsCode = Annotated[str, Meta(pattern="^[0-9]{5}$")]
StateCode = Annotated[str, Meta(pattern="^[A-Z]{2}$")]
City = Annotated[str, Meta(description='"<city name>, <state_code>"')]
