"""The OpenAPI description: valid, complete, and true of the real answers."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it comes without types
from openapi_spec_validator import OpenAPIV31SpecValidator

from config.settings import Settings
from service.base.terms import Rate, Terms
from service.http.areas import AREAS
from service.http.index import Index
from service.http.openapi import About, describe_api
from service.http.own_usage.description import SCHEMAS as USAGE_SCHEMAS
from service.http.releases.description import SCHEMAS as RELEASE_SCHEMAS
from service.request.errors import CODES, Problem
from tests.support.caller import Caller
from tests.support.served import FORECAST, Served

BODIES = [*(endpoint.operation.body for area in AREAS for endpoint in area.endpoints), *RELEASE_SCHEMAS]
STRUCTS: dict[str, type] = {struct.__name__: struct for struct in (*BODIES, *USAGE_SCHEMAS, Index, Problem)}
DOCUMENT = describe_api()
FORMS = {endpoint.path: list(endpoint.query_forms[0]) for area in AREAS for endpoint in area.endpoints}


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


def examples() -> list[tuple[str, Any]]:
    """The schema of each example, and its value."""
    return [
        (named(content["schema"]), example["value"])
        for _, content in contents()
        for example in content.get("examples", {}).values()
    ]


def shown_at(document: dict[str, Any], path: str) -> dict[str, Any]:
    shown: dict[str, Any] = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"][
        "examples"
    ]
    return shown


def undressed(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: undressed(part) for name, part in document.items() if name not in ("example", "examples")}
    return [undressed(part) for part in document] if isinstance(document, list) else document


def errors_in(schema: str, value: Any) -> list[str]:
    """What is wrong with `value`, held against a schema of the description that allows no other member."""
    closed = msgspec.json.decode(msgspec.json.encode(DOCUMENT["components"]["schemas"]))
    for part in closed.values():
        part["additionalProperties"] = False
    whole = {"$ref": f"#/components/schemas/{schema}", "components": {"schemas": closed}}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_the_description_is_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_the_description_is_served_with_examples_of_the_current_release(worker: Served) -> None:
    served = worker.ask("/v1/openapi.json").json()
    for path, item in served["paths"].items():
        operation = item["get"]
        shown = operation["responses"]["200"].get("content", {}).get("application/json", {}).get("examples", {})
        if not path.startswith(FORECAST):
            continue
        given = {one["name"]: one.get("example") for one in operation["parameters"] if one["in"] == "query"}
        assert given.get("cursor") is None, "whoever sends it beside other examples is answered 400"
        names = FORMS[path] if "limit" not in given else [*FORMS[path], "limit"]
        query = urlencode({name: 1 if name == "limit" else given[name] for name in names}, doseq=True)
        example = next(iter(shown.values()))
        assert worker.ask(f"{path}?{query}").json() == example["value"]
        assert "summary" not in example
    assert set(shown_at(served, FORECAST)) == {"zip_code", "without_figures"}
    assert shown_at(served, FORECAST)["without_figures"]["value"]["zip_codes"][0]["population"] == []
    assert undressed(served) == undressed(msgspec.json.decode(msgspec.json.encode(DOCUMENT)))


def test_what_the_release_lacks_has_an_example_that_says_it_is_made_up(worker: Served) -> None:
    examples = shown_at(worker.ask("/v1/openapi.json").json(), "/v1/development-projects")
    assert [example["summary"] for example in examples.values()] == ["Made up."]


def test_the_description_is_compressed(worker: Served) -> None:
    assert worker.ask("/v1/openapi.json", accept_encoding="gzip").header("content-encoding") == "gzip"


def test_the_next_page_is_linked(worker: Served) -> None:
    """By an expression on the answer that generated clients follow."""
    responses = DOCUMENT["paths"][f"{FORECAST}/by-state"]["get"]["responses"]
    link = responses["200"]["links"]["next"]["parameters"]
    asked = {"state_code": "IL", "limit": "2"}
    page = worker.ask(f"{FORECAST}/by-state?{urlencode(asked)}").json()
    values = {"$response.body#/next_cursor": page["next_cursor"]}
    values |= {f"$request.query.{name}": value for name, value in asked.items()}
    following = {name.removeprefix("query."): values[expression] for name, expression in link.items()}
    after = worker.ask(f"{FORECAST}/by-state?{urlencode(following)}").json()
    assert after["total_results"] == 2
    assert after["zip_codes"][0]["location"]["zip_code"] > page["zip_codes"][-1]["location"]["zip_code"]


def test_operators_say_where_the_service_is_and_whom_to_ask() -> None:
    reported = describe_api(About("https://api.example.com", "data@example.com", guide=True))
    assert reported["servers"] == [{"url": "https://api.example.com"}]
    assert reported["externalDocs"]["url"] == "https://api.example.com/docs/"
    assert reported["info"]["contact"] == {"email": "data@example.com"}
    assert (
        describe_api(About(contact="https://example.com/help"))["info"]["contact"]["url"] == "https://example.com/help"
    )
    assert "contact" not in DOCUMENT["info"]
    assert "externalDocs" not in DOCUMENT
    OpenAPIV31SpecValidator(reported).validate()


def test_every_member_is_described() -> None:
    for schema in DOCUMENT["components"]["schemas"]:
        members = DOCUMENT["components"]["schemas"][schema].get("properties", {})
        assert [name for name, member in members.items() if not {"description", "$ref"} & set(member)] == []


def test_every_parameter_and_header_is_described_and_every_operation_has_a_tag() -> None:
    tags = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}
    for item in DOCUMENT["paths"].values():
        assert all(parameter.get("description") for parameter in item["get"].get("parameters", ()))
        assert set(item["get"]["tags"]) <= tags
    assert all(header["description"] for header in DOCUMENT["components"]["headers"].values())


@pytest.mark.parametrize("query", ["zip_code=36436", "zip_code=1", "zip_code=99999"])
def test_headers_of_a_key_with_limits_are_described(worker: Served, settings: Settings, query: str) -> None:
    answer = Caller(worker, settings, Terms(rate=Rate(10, 1, 10))).ask(f"{FORECAST}?{query}")
    assert answer.header("ratelimit")
    described = DOCUMENT["paths"][FORECAST]["get"]["responses"][str(answer.status)]["headers"]
    sent = {name for name, _ in answer.headers} - {"date", "content-type", "content-length"}
    assert sent <= {name.lower() for name in described}


def test_every_example_is_valid_and_decodes() -> None:
    for schema, value in examples():
        assert errors_in(schema, value) == []
        decoded: Any = msgspec.convert(value, STRUCTS[schema], strict=True)
        assert msgspec.json.encode(decoded, order="sorted") == msgspec.json.encode(value, order="sorted")


@pytest.mark.parametrize(
    ("target", "schema"),
    [
        (f"{FORECAST}?zip_code=36436", "ForecastBody"),
        (f"{FORECAST}?zip_code=09001", "ForecastBody"),
        (f"{FORECAST}?zip_code=1", "Problem"),
        (f"{FORECAST}/batch?zip_code=36436&zip_code=09001&zip_code=99999&zip_code=1", "BatchBody"),
        (f"{FORECAST}/batch?zip_codes=36436", "Problem"),
        (f"{FORECAST}/by-county?county_fips_code=01025", "ForecastPage"),
        (f"{FORECAST}/by-state?state_code=il&limit=2", "ForecastPage"),
        (f"{FORECAST}?zip_code=99999", "Problem"),
        ("/v1", "Index"),
        ("/v1/usage", "Usage"),
        ("/v1/usage/hours", "UsageByHour"),
        ("/v1/usage/errors", "OwnErrors"),
        ("/v1/releases", "Releases"),
        ("/v1/releases/current/changes?area=forecast", "ForecastChanges"),
    ],
)
def test_real_answers_are_as_described(worker: Served, target: str, schema: str) -> None:
    answer = worker.ask(target)
    assert errors_in(schema, answer.json()) == []
    path = target.partition("?")[0].replace("/current/", "/{release}/")
    responses = DOCUMENT["paths"][path]["get"]["responses"]
    assert str(answer.status) in responses


def test_the_schemas_refuse_what_is_no_answer() -> None:
    good = examples()[0][1]
    entry = good["zip_codes"][0]
    for damaged in (
        {**entry, "location": {**entry["location"], "zip_code": "501"}},
        {**entry, "housing": {}},
        {**entry, "population": None},
    ):
        assert errors_in("ForecastBody", {**good, "zip_codes": [damaged]})


def test_every_code_is_described() -> None:
    assert DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"] == list(CODES)
    shown = {
        value["code"]
        for where, content in contents()
        if where.startswith(f"{FORECAST} ")
        for value in (example["value"] for example in content["examples"].values())
        if "code" in value
    }
    assert shown == set(CODES) - {"invalid_cursor", "unknown_parameter", "range_not_satisfiable"}


def test_schemas_are_described_in_words_for_partners() -> None:
    """The texts are docstrings: what a struct is to the service, or who owns it, is no business of partners."""
    for schema in DOCUMENT["components"]["schemas"]:
        text = DOCUMENT["components"]["schemas"][schema]["description"]
        assert not {"encoded", "owns", "owned", "contract", "struct"} & set(text.lower().replace(".", " ").split())


def test_every_operation_needs_the_key_and_says_so() -> None:
    scheme = DOCUMENT["components"]["securitySchemes"]["apiKey"]
    assert DOCUMENT["security"] == [{"apiKey": []}]
    assert scheme == {"type": "apiKey", "in": "header", "name": "x-api-key"}
