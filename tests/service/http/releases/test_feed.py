"""The feed of releases has what RFC 4287 asks of one."""

from datetime import UTC, datetime
from xml.etree.ElementTree import Element, fromstring

import msgspec

from service.http.releases.feed import feed_of
from service.http.releases.shelf import ReleaseHistory
from tests.service.http.releases.test_shelf import named, release
from warehouse.releases.files import AreaContents

ATOM = "{http://www.w3.org/2005/Atom}"
NEWER = msgspec.structs.replace(
    release(2, 1), areas=("forecast",), contents={"forecast": AreaContents(42094, 33772)}, illustrative=True
)
HISTORY = ReleaseHistory((NEWER, release(1)), datetime(2026, 3, 4, 5, 6, 7, 800000, tzinfo=UTC))


def texts(element: Element, name: str) -> list[str | None]:
    return [found.text for found in element.findall(ATOM + name)]


def test_feed_and_entries_have_id_title_and_time() -> None:
    feed = fromstring(feed_of(HISTORY, "/v1/releases.atom"))
    assert feed.tag == f"{ATOM}feed"
    entries = feed.findall(f"{ATOM}entry")
    ids = [texts(element, "id") for element in (feed, *entries)]
    assert all(len(one) == 1 and str(one[0]).startswith("urn:uuid:") for one in ids)
    assert len({str(one) for one in ids}) == 3
    assert [texts(entry, "title") for entry in entries] == [[f"Release {named(2)}"], [f"Release {named(1)}"]]
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    assert [link.get("rel") for link in feed.findall(f"{ATOM}link")] == ["self"]
    for element in entries:  # an entry without a link to itself must have content
        assert texts(element, "content") != []


def test_what_became_current_again_is_updated_then() -> None:
    feed = fromstring(feed_of(HISTORY, "/v1/releases.atom"))
    assert texts(feed, "updated") == ["2026-03-04T05:06:07Z"]
    times = [(texts(entry, "updated"), texts(entry, "published")) for entry in feed.findall(f"{ATOM}entry")]
    assert times == [
        (["2026-03-04T05:06:07Z"], ["2026-01-02T00:00:00Z"]),
        (["2026-01-01T00:00:00Z"], ["2026-01-01T00:00:00Z"]),
    ]


def test_an_entry_says_what_changed_and_where_it_is_listed() -> None:
    entry = fromstring(feed_of(HISTORY, "/v1/releases.atom")).findall(f"{ATOM}entry")[0]
    assert texts(entry, "content") == [
        "forecast: 42,094 rows, 33,772 changed. The figures are made up, for demonstration."
    ]
    assert [link.get("href") for link in entry.findall(f"{ATOM}link")] == [
        f"/v1/releases/{named(2)}/changes?area=forecast"
    ]


def test_ids_never_change() -> None:
    """Readers know an entry by its id: another one would be shown as new."""
    feed = fromstring(feed_of(HISTORY, "/v1/releases.atom"))
    assert texts(feed, "id") == ["urn:uuid:fb3f9265-08ef-5b3f-9f00-6082a89dd5ac"]
