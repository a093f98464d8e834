"""Which token may do what."""

import pytest

from service.operators.access import Access, Right
from tests.support.operators import READ, WRITE


def refusal(access: Access, needed: Right, *values: str) -> str | None:
    return access.refusal(needed, [(b"host", b"a"), *((b"authorization", value.encode()) for value in values)])


@pytest.mark.parametrize(
    ("token", "to_read", "to_write"),
    [
        (None, "missing_token", "missing_token"),
        ("another-token-altogether", "invalid_token", "invalid_token"),
        (READ, None, "not_permitted"),
        (WRITE, None, None),
        (READ[:-1], "invalid_token", "invalid_token"),
        (WRITE + "x", "invalid_token", "invalid_token"),
    ],
)
def test_the_write_token_reads_and_the_read_token_does_not_write(
    token: str | None, to_read: str | None, to_write: str | None
) -> None:
    values = () if token is None else (f"Bearer {token}",)
    access = Access(READ, WRITE)
    assert refusal(access, Right.NONE, *values) is None
    assert refusal(access, Right.READ, *values) == to_read
    assert refusal(access, Right.WRITE, *values) == to_write


@pytest.mark.parametrize("write", [None, WRITE])
def test_without_a_read_token_everybody_reads(write: str | None) -> None:
    access = Access(None, write)
    for values in ((), ("Bearer another-token-altogether",)):
        assert refusal(access, Right.READ, *values) is None
        assert refusal(access, Right.WRITE, *values) is not None


@pytest.mark.parametrize(
    ("read", "write", "code"),
    [(None, None, "token_not_set"), (None, WRITE, "missing_token"), (READ, None, "missing_token")],
)
def test_beyond_loopback_reading_takes_a_token(read: str | None, write: str | None, code: str) -> None:
    access = Access(read, write, open_to_all=False)
    assert refusal(access, Right.NONE) is None
    assert refusal(access, Right.READ) == code
    assert refusal(access, Right.READ, "Bearer another-token-altogether") in ("token_not_set", "invalid_token")
    assert access.can_grant(Right.READ) is (code != "token_not_set")
    for token in filter(None, (read, write)):
        assert refusal(access, Right.READ, f"Bearer {token}") is None


def test_without_any_token_nothing_can_be_written() -> None:
    assert not Access(READ).can_grant(Right.WRITE)
    assert refusal(Access(), Right.WRITE, "Bearer ") == "missing_token"


@pytest.mark.parametrize(
    "values",
    [(WRITE,), (f"Basic {WRITE}",), ("Bearer",), ("",), (f"Bearer {WRITE}", f"Bearer {WRITE}")],
    ids=["no scheme", "another scheme", "no token", "empty", "twice"],
)
def test_a_token_is_sent_once_as_a_bearer_s(values: tuple[str, ...]) -> None:
    assert refusal(Access(READ, WRITE), Right.WRITE, *values) == "missing_token"
    assert refusal(Access(READ, WRITE), Right.WRITE, f"bEARER {WRITE}") is None  # RFC 9110 11.1


def test_tokens_are_kept_as_digests() -> None:
    assert READ not in repr(vars(Access(READ, WRITE)))
    assert READ.encode() not in vars(Access(READ, WRITE)).values()
