"""The examples of errors are what the service answers."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from service.http import examples
from service.http.area import resolve_in
from service.http.forecast import AREA, FORECAST
from service.http.pages import PageQuery, page_of
from service.http.query import read_strictly
from service.request.errors import CODES, ApiError, problem_of
from warehouse.areas.paging import Cursors
from warehouse.places.keyset_builder import KeySetBuilder


def test_error_examples_are_what_the_code_answers() -> None:
    builder = KeySetBuilder()
    builder.add("00501", "Holtsville, NY", "NY", has_figures=True)
    look_up = partial(resolve_in, AREA, FORECAST, builder.build(), cursors=Cursors(b""))
    faults: dict[str, Callable[[], object]] = {
        "missing_parameter": lambda: look_up(query=b"city_name=x"),
        "invalid_parameter": lambda: look_up(query=b"zip_code=501"),
        "duplicate_parameter": lambda: look_up(query=b"zip_code=00501&zip_code=00501"),
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
