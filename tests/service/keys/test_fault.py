"""What is said of a key in the wrong form."""

from urllib.parse import quote

import pytest

from service.keys import form
from service.keys.suggestions import hint_for_malformed_key
from tests.support.key_store import any_key

KEY, PARTS = any_key()


def as_sent(text: str) -> str:
    """A header's value as it is read: bytes as Latin-1."""
    return text.encode().decode("latin-1")


WRONG = [
    (f"Bearer {KEY}", 'comes with "bearer". Send the key alone.'),
    (f'"{KEY}"', "comes with quotation marks. Send the key alone."),
    (f"x-api-key: {KEY}", 'comes with "x-api-key"'),
    (f"Authorization: Bearer {KEY}", '"authorization", "bearer"'),
    (f"{KEY}%0D%0A", "percent-encoding, a line break"),
    (f"{KEY}\\r\\n", "a line break"),
    (f"{KEY[:40]}\\n{KEY[40:]}", "a line break"),
    (KEY.replace("_", "%5F"), "percent-encoding"),
    (quote(quote(f'"{KEY}"')), "percent-encoding, quotation marks"),
    (as_sent(f"\u201c{KEY}\u201d"), "quotation marks"),
    (f"\x93{KEY}\x94", "quotation marks"),
    (as_sent(f"\ufeff{KEY}"), "U+FEFF, byte-order mark"),
    (as_sent(as_sent(f"\ufeff{KEY}")), "U+FEFF, byte-order mark"),
    (as_sent(f"{KEY}\u200b"), "U+200B, zero width space"),
    (as_sent(f"{KEY[:30]}\u00ad{KEY[30:]}"), "U+00AD, soft hyphen"),
    *(
        (as_sent(f"{KEY}{sign}"), f"U+{ord(sign):04X}")
        for sign in "\u00a0\u2003\u2028\u202f\u2060\u3000\u3164\u2800\ufff9\U000e0041"
    ),
    (as_sent(f"\u200e'{KEY}'"), "left-to-right mark), quotation marks"),
    (KEY.upper(), "letter case"),
    (f"{KEY[:30]} {KEY[30:]}", "spaces in it"),
    (f'{{"key": "{KEY}"}}', 'comes with "key", quotation marks'),
    (f"export NAME='{KEY}'", "comes with quotation marks, other text"),
    (f"?api_key={KEY}", 'comes with "api_key"'),
    (f"{KEY}, {KEY}", "comes with another key"),
    (KEY + KEY, "comes with another key"),
    (f"{KEY} # production", "comes with other text"),
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
    detail = hint_for_malformed_key(presented)
    assert detail is not None
    assert said in detail
    assert PARTS.secret not in detail


def test_of_a_key_in_good_form_nothing_more_is_said() -> None:
    assert hint_for_malformed_key(KEY) is None
