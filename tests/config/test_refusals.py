"""What is wrong with a setting's value, in words."""

import msgspec

from config.metadata import names, type_of
from config.refusals import reword

# Each is of the wrong type, or out of bounds, for some settings.
_VALUES: tuple[object, ...] = (None, True, -1, -1.5, 1e12, "x", "x" * 200, [1], ["x"], {"x": "y"}, {"x": -1}, {"x": []})


def test_no_type_of_a_program_is_named() -> None:
    for name in names():
        for value in _VALUES:
            try:
                msgspec.convert(value, type_of(name))
            except msgspec.ValidationError as error:
                said = reword(str(error), type_of(name))
                assert "`" not in said
                assert "regex" not in said
                assert "enum" not in said
                assert said.startswith(("Expected ", "Not in the expected form"))
