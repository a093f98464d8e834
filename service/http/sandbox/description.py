"""The OpenAPI description as it is true for test keys: no releases, and any error on purpose."""

from collections.abc import Mapping

from service.http.live_examples import LiveExample
from service.http.openapi import About, describe_api
from service.http.openapi_headers import Document
from service.http.releases.listing import PATH as RELEASES_PATH

_ON_PURPOSE = "The error that X-Test-Error names, or that a zip_code of the guide's list stands for."


def describe_sandbox(about: About, examples: Mapping[str, LiveExample]) -> Document:
    """The document. `examples` are of the release of test keys."""
    document = describe_api(about, examples)
    document["paths"] = {path: one for path, one in document["paths"].items() if not path.startswith(RELEASES_PATH)}
    document["tags"] = [tag for tag in document["tags"] if tag["name"] != "releases"]
    for one in document["paths"].values():
        problem = one["get"]["responses"]["400"]["content"]
        one["get"]["responses"]["default"] = {"description": _ON_PURPOSE, "content": problem}
    return document
