"""What is said of a key in the wrong form."""

import pytest

from service.keys import form
from service.keys.fault import fault_of

KEY, PARTS = form.generate()

WRONG = [
    (f"Bearer {KEY}", "without quotes or Bearer"),
    (f'"{KEY}"', "without quotes or Bearer"),
    (f"x-api-key: {KEY}"[2:], "without quotes or Bearer"),
    ("$KEY", "placeholder"),
    ("${API_KEY}", "placeholder"),
    ("<your key>", "placeholder"),
    ("YOUR_API_KEY", "placeholder"),
    (PARTS.key_id, "the id of an API key"),
    ("sk_live_123", "phf_live_"),
    (KEY[:-4], f"{form.LENGTH - 4} characters instead of {form.LENGTH}"),
    (f"{KEY[:-1]}{'0' if KEY[-1] != '0' else '1'}", "mistyped"),
]


@pytest.mark.parametrize(("presented", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_with_the_form_of_a_key_is_said_without_the_key(presented: str, said: str) -> None:
    detail = fault_of(presented)
    assert detail is not None
    assert said in detail
    assert PARTS.secret not in detail


def test_of_a_key_in_good_form_nothing_more_is_said() -> None:
    """Whether its id is known is for nobody to learn."""
    assert fault_of(KEY) is None
