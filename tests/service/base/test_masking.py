"""What looks like a key is masked wherever text is shown."""

import pytest

from service.base.masking import masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no key here", "no key here"),
        ("phf_live", "phf_live"),
        ("/v1/phf_live_abc?x=1", "/v1/phf_live_********?x=1"),
        ("' phf_live_0_1_2' and phf_live_Zz9", "' phf_live_********' and phf_live_********"),
        ("a phf_test_0_1_2", "a phf_test_********"),
        ("xphf_live_phf_live_a", "xphf_live_********"),
    ],
)
def test_what_looks_like_a_key_is_masked_in_any_text(text: str, shown: str) -> None:
    """Each one, and nothing around it."""
    assert masked(text) == shown
