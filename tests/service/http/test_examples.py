"""The examples are bodies that the service could send, member order included."""

import msgspec
import pytest

from service.http import examples
from service.http.errors import CODES, ApiError, of_exception
from service.http.forecast_examples import EXAMPLE, EXAMPLE_WITHOUT_FIGURES
from service.http.query import parse_location
from warehouse.areas.forecast import ForecastBody


def test_forecast_examples_have_the_order_of_real_answers() -> None:
    """Encoded again from the struct they are the same bytes."""
    for example in (EXAMPLE, EXAMPLE_WITHOUT_FIGURES):
        again = msgspec.json.encode(msgspec.convert(example, ForecastBody))
        assert again == msgspec.json.encode(example)
        assert example["total_results"] == len(example["zip_codes"])


def test_error_examples_are_what_the_code_answers() -> None:
    """To the letter, also where a parameter is at fault."""
    faults = {
        "missing_parameter": b"city_name=x",
        "invalid_parameter": b"zip_code=501",
        "duplicate_parameter": b"zip_code=1&zip_code=2",
    }
    for code in CODES:
        example = examples.example_problem(code)
        error = ApiError(code)
        if code in faults:
            with pytest.raises(ApiError) as raised:
                parse_location(faults[code], lambda _: ())
            error = raised.value
        assert msgspec.json.decode(of_exception(error, example["request_id"]).body) == example
