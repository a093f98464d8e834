"""The examples are bodies that the service could send, member order included."""

import msgspec

from service.http import examples
from service.http.errors import CODES, problem
from warehouse.areas.forecast import ForecastBody


def test_forecast_examples_have_the_order_of_real_answers() -> None:
    """Encoded again from the struct they are the same bytes."""
    for example in (examples.FORECAST, examples.FORECAST_WITHOUT_FIGURES):
        again = msgspec.json.encode(msgspec.convert(example, ForecastBody))
        assert again == msgspec.json.encode(example)
        assert example["total_results"] == len(example["zip_codes"])


def test_error_examples_are_what_the_code_answers() -> None:
    """Status, title and detail are those of the real error."""
    for code in CODES:
        example = examples.problem(code)
        real = msgspec.json.decode(problem(code, example["request_id"]).body)
        assert {**example, **real} == example
