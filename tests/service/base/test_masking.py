"""What looks like a key is masked wherever text is shown."""

import html
import random
import re
from urllib.parse import quote, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.masking import has_key, masked
from tests.support.key_store import any_key


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no key here", "no key here"),
        ("phf_live", "phf_live"),
        ("/v1/phf_live_abc?x=1", "/v1/phf_live_********?x=1"),
        ("' phf_live_0_1_2' and phf_live_Zz9", "' phf_live_********' and phf_live_********"),
        ("a phf_test_0_1_2", "a phf_test_********"),
        ("xphf_live_phf_live_a", "xphf_live_********"),
        ("PHF_LIVE_ABC_1 x", "phf_live_******** x"),
        ("phf%5Ftest%5fabc%20d", "phf_test_********%20d"),
        ("%2570hf%25252525255Flive_a&b=1", "phf_live_********&b=1"),
        ("phf_\u200blive_ab\ufeffcd e", "phf_live_******** e"),
        (r"phf\u005flive_ab\u200bcd e", "phf_live_******** e"),
        ("phf&#95;live_ab&shy;c d", "phf_live_******** d"),
        ("city=Ca%C3%B1on+City&state_code=CO", "city=Ca%C3%B1on+City&state_code=CO"),
        ("phf_live_********", "phf_live_********"),
    ],
)
def test_what_looks_like_a_key_is_masked_in_any_text(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert has_key(text) is (text != shown)


WAYS = (
    str,
    str.upper,
    str.lower,
    lambda character: f"%{ord(character):02X}",
    lambda character: f"%25{ord(character):02x}",
    lambda character: f"%252525{ord(character):02X}",
    lambda character: f"\\u{ord(character):04x}",
    lambda character: f"\\\\x{ord(character):02X}",
    lambda character: f"%5Cu{ord(character):04X}",
    lambda character: f"&#{ord(character)};",
    lambda character: f"%26%23{ord(character)}%3B",
    lambda character: f"{character}\u200b",
    lambda character: f"{character}%E2%80%8B",
    lambda character: f"{character}\\u200b",
    lambda character: f"{character}&#8203;",
)


@given(st.lists(st.sampled_from(WAYS), min_size=72, max_size=72), st.booleans())
def test_a_key_is_masked_however_each_of_its_characters_is_written(ways: list, test: bool) -> None:  # type: ignore[type-arg]
    key, parts = any_key(test=test)
    written = "".join(way(character) for way, character in zip(ways, key, strict=True))
    shown = masked(f"city={written} and more")
    assert shown.startswith(f"city=phf_{'test' if test else 'live'}_********")
    assert shown.endswith(" and more")
    for _ in range(6):
        shown = html.unescape(unquote(shown))
    assert not re.search(parts.secret[-12:], shown)


@given(st.text(max_size=200))
def test_a_line_of_the_log_stays_json(text: str) -> None:
    query = text + "\\" * 9 + "u0070hf_live_abc" + text
    line = msgspec.json.encode({"query": query, "x": quote(text)}).decode()
    msgspec.json.decode(masked(line))


def test_long_texts_take_time_in_proportion_to_their_length() -> None:
    """Callers choose them. Were it the square of the length, this would take minutes."""
    rng = random.Random(1)
    signs = ["p", "phf_", "%", "%25", "\\", "&#104;", "&a;", "é", "%5C", "%26"]
    signs += ["\\u2020", "&#200;", "u0070", "phf_live_"]
    for _ in range(40):
        unit = "".join(rng.choices(signs, k=rng.randint(1, 4)))
        for start in ("", "p", "phf_live_"):
            assert masked(start + (unit * 20_000)[:20_000])
