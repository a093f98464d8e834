"""Which lines forecast log shows, and how."""

import pytest

from service.base.whoami import caller, inbox, whoami
from service.cli.keys.log import Filter, _row
from service.keys.audit import Change
from tests.service.conftest import Cli

PUBLISHED = Change(what="published", by=inbox(), release="r1", reason="it was checked")
PURGED = Change(what="purged", by=caller("::1"))
ISSUED = Change(what="issued", by=whoami(), key_id="a", partner="acme")
LINES = (PUBLISHED, PURGED, ISSUED, None)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, LINES),
        ({"what": ("published", "purged")}, (PUBLISHED, PURGED)),
        ({"via": "inbox"}, (PUBLISHED,)),
        ({"via": "http"}, (PURGED,)),
        ({"via": "command", "what": ("issued",)}, (ISSUED,)),
        ({"partner": "acme"}, (ISSUED,)),
        ({"key_id": "a", "via": "inbox"}, ()),
    ],
)
def test_filters_hold_together(given: dict[str, object], shown: tuple[Change | None, ...]) -> None:
    wanted = Filter(**{"key_id": None, "partner": None, "what": (), "via": None} | given)  # type: ignore[arg-type]
    assert tuple(line for line in LINES if wanted.matches(line)) == shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "soon"), "is not a time"),
        (("--what", "renamed"), "'renamed' is not one of 'issued'"),
        (("--via", "mail"), "'mail' is not one of 'command', 'http', 'page', 'inbox', 'instance'"),
    ],
)
def test_wrong_usage_is_reported_before_the_store_is_called(cli: Cli, words: tuple[str, ...], said: str) -> None:
    done = cli("log", *words, "--json")
    assert done.code == 2
    assert said in done.json["error"]["message"]
    assert not cli.data.exists()


def test_a_row_of_a_release_names_it_and_the_reason() -> None:
    assert _row(PUBLISHED) == (inbox(), "published", "-", "-", "r1; reason: it was checked")
