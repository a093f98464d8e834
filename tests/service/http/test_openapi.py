"""The OpenAPI description: valid, complete, and true of the real answers."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it comes without types
from openapi_spec_validator import OpenAPIV31SpecValidator

from service.http.areas import AREAS
from service.http.errors import CODES, Problem
from service.http.index import Index
from service.http.openapi import describe_api
from service.http.releases.description import SCHEMAS as RELEASE_SCHEMAS
from service.http.usage import Usage
from tests.support.served import FORECAST, Served

BODIES = [*(endpoint.operation.body for area in AREAS for endpoint in area.endpoints), *RELEASE_SCHEMAS]
STRUCTS: dict[str, type] = {struct.__name__: struct for struct in (*BODIES, Usage, Index, Problem)}
DOCUMENT = describe_api()


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body that the description has, with where it is."""
    for path, item in DOCUMENT["paths"].items():
        for status, response in item["get"]["responses"].items():
            for content in response.get("content", {}).values():
                yield f"{path} {status}", content


def named(schema: dict[str, Any]) -> str:
    """The schema of an example; of several, it is the first."""
    one = schema.get("oneOf", [schema])[0]
    return str(one["$ref"]).rpartition("/")[2]


def examples() -> list[Any]:
    return [
        pytest.param(named(content["schema"]), example["value"], id=f"{where} {name}")
        for where, content in contents()
        for name, example in content.get("examples", {}).items()
    ]


def errors_in(schema: str, value: Any) -> list[str]:
    """What is wrong with `value`, held against a schema of the description that allows no other member."""
    closed = msgspec.json.decode(msgspec.json.encode(DOCUMENT["components"]["schemas"]))
    for part in closed.values():
        part["additionalProperties"] = False
    whole = {"$ref": f"#/components/schemas/{schema}", "components": {"schemas": closed}}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_the_description_is_valid() -> None:
    """OpenAPI 3.1."""
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_the_description_is_served_as_it_is(worker: Served) -> None:
    """To whoever has a key."""
    assert worker.ask("/v1/openapi.json").json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))


@pytest.mark.parametrize(("schema", "value"), examples())
def test_every_example_is_valid_and_decodes(schema: str, value: Any) -> None:
    """Against its own schema, and into the struct that is encoded."""
    assert errors_in(schema, value) == []
    decoded: Any = msgspec.convert(value, STRUCTS[schema], strict=True)
    assert msgspec.json.encode(decoded, order="sorted") == msgspec.json.encode(value, order="sorted")


@pytest.mark.parametrize(
    ("target", "schema"),
    [
        (f"{FORECAST}?zip_code=36436", "ForecastBody"),
        (f"{FORECAST}?zip_code=09001", "ForecastBody"),
        (f"{FORECAST}?city_name=springfield&state_code=IL", "ForecastBody"),
        (f"{FORECAST}?zip_code=1", "Problem"),
        (f"{FORECAST}/batch?zip_code=36436&zip_code=09001&zip_code=99999&zip_code=1", "BatchBody"),
        (f"{FORECAST}/batch?zip_codes=36436", "Problem"),
        (f"{FORECAST}/by-county?county_fips_code=01025", "ForecastPage"),
        (f"{FORECAST}/by-county?county_fips_code=01099", "Problem"),
        (f"{FORECAST}/by-state?state_code=il&limit=2", "ForecastPage"),
        (f"{FORECAST}?zip_code=99999", "Problem"),
        ("/v1/", "Index"),
        ("/v1/usage", "Usage"),
        ("/v1/releases", "Releases"),
        ("/v1/releases/current/changes?area=forecast", "ForecastChanges"),
        ("/v1/usage?from=x", "Problem"),
    ],
)
def test_real_answers_are_as_described(worker: Served, target: str, schema: str) -> None:
    """No member more, none less; and their status is described."""
    answer = worker.ask(target)
    assert errors_in(schema, answer.json()) == []
    path = target.partition("?")[0].replace("/current/", "/{release}/")
    responses = DOCUMENT["paths"][path]["get"]["responses"]
    assert str(answer.status) in responses


def test_the_schemas_refuse_what_is_no_answer() -> None:
    """A missing member, a ZIP code without its zero, a city without its state."""
    good = examples()[0].values[1]
    entry = good["zip_codes"][0]
    for damaged in (
        {**entry, "location": {**entry["location"], "zip_code": "501"}},
        {**entry, "housing": {}},
        {**entry, "population": None},
    ):
        assert errors_in("ForecastBody", {**good, "zip_codes": [damaged]})


def test_every_code_is_described() -> None:
    """In the schema all of them; at the forecast, all that can happen there."""
    assert DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"] == list(CODES)
    shown = {
        value["code"]
        for where, content in contents()
        if where.startswith(f"{FORECAST} ")
        for value in (example["value"] for example in content["examples"].values())
        if "code" in value
    }
    assert shown == set(CODES) - {"invalid_cursor", "unknown_parameter", "range_not_satisfiable"}


@pytest.mark.parametrize("schema", DOCUMENT["components"]["schemas"])
def test_schemas_are_described_in_words_for_partners(schema: str) -> None:
    """The texts are docstrings: what a struct is to the service, or who owns it, is no business of partners."""
    text = DOCUMENT["components"]["schemas"][schema]["description"]
    assert not {"encoded", "owns", "owned", "contract", "struct"} & set(text.lower().replace(".", " ").split())


def test_every_operation_needs_the_key_and_says_so() -> None:
    """In the header of the contract's name."""
    scheme = DOCUMENT["components"]["securitySchemes"]["apiKey"]
    assert DOCUMENT["security"] == [{"apiKey": []}]
    assert scheme == {"type": "apiKey", "in": "header", "name": "x-api-key"}


def test_the_headers_of_a_200_are_described(worker: Served) -> None:
    """Every one of ours that a real answer has."""
    described = {name.lower() for name in DOCUMENT["paths"][FORECAST]["get"]["responses"]["200"]["headers"]}
    sent = {name for name, _ in worker.ask(f"{FORECAST}?zip_code=36436").headers}
    assert sent - {"date", "content-type", "content-length"} <= described
