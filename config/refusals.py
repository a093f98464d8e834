"""Explains why a setting's value is refused: msgspec's messages name types, but operators write text."""

import re
from typing import Any, Literal, get_args, get_origin

_EXPECTED = re.compile(
    r"Expected `(?P<types>[^`]+)`(?: (?P<bound>>=|<=|>|<) (?P<number>\S+?)| of length >= (?P<length>\d+)"
    r"| (?P<form>matching regex .*?))?(?:, got `[^`]*`)?(?: - at `.*`)?",
    re.DOTALL,
)
_CHOICE = re.compile(r"Invalid enum value (?P<given>.*?)(?P<one_of_several> - at `.*`)?", re.DOTALL)
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "array": "a list",
    "object": "pairs like name=value",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


def reword(problem: str, kind: Any) -> str:
    """Rewords msgspec's message on a value that is not of the type `kind`. For a list, it names the invalid part."""
    choice = _CHOICE.fullmatch(problem)
    if choice is not None:
        one = f" in place of {choice['given']}" if choice["one_of_several"] else ""
        return f"Expected one of {', '.join(_choices(kind))}{one}"
    expected = _EXPECTED.fullmatch(problem)
    if expected is None:
        return problem
    if expected["length"] is not None:
        return f"Expected at least {expected['length']} characters"
    if expected["form"] is not None:
        return "Not in the expected form"
    types = [name for name in expected["types"].split(" | ") if name != "null"]
    # the text beside a number is one of the choices
    words = [*_choices(kind)] if "str" in types and _choices(kind) else []
    words += [_TYPES.get(name, name) for name in types if not (name == "str" and words)]
    bound = f" {_BOUNDS[expected['bound']]} {float(expected['number']):.15g}" if expected["bound"] else ""
    return f"Expected {' or '.join(words)}{bound}"


def _choices(kind: Any) -> list[str]:
    """Returns the literal choices in a type."""
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    return [choice for part in get_args(kind) for choice in _choices(part)]
