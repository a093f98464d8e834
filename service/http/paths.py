"""Paths that several modules name."""

OPENAPI_PATH = "/v1/openapi.json"
# Only if the operators have switched the documentation on.
GUIDE_PATH = "/docs/"
