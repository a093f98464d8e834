"""The examples of errors are what the service answers."""

from collections.abc import Callable

import msgspec
import pytest

from service.http import examples
from service.http.pages import PageQuery, page_of
from service.http.query import parse_location, read_strictly
from service.request.errors import CODES, ApiError, problem_of
from warehouse.areas.paging import Cursors


def test_error_examples_are_what_the_code_answers() -> None:
    faults: dict[str, Callable[[], object]] = {
        "missing_parameter": lambda: parse_location(b"city_name=x", lambda _: ()),
        "invalid_parameter": lambda: parse_location(b"zip_code=501", lambda _: ()),
        "duplicate_parameter": lambda: parse_location(b"zip_code=1&zip_code=2", lambda _: ()),
        "unknown_parameter": lambda: read_strictly(b"page=2", ("limit", "cursor")),
        "invalid_cursor": lambda: page_of("", PageQuery(1, "x"), Cursors(b"")),
    }
    for code in CODES:
        example = examples.example_problem(code)
        error = ApiError(code)
        if code in faults:
            with pytest.raises(ApiError) as raised:
                faults[code]()
            error = raised.value
        assert msgspec.json.decode(problem_of(error).whole(example["request_id"].encode())[1]) == example
