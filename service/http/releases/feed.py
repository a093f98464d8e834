"""Releases as an Atom feed (RFC 4287)."""

from datetime import UTC, datetime
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, tostring

from service.http.releases.shelf import ReleaseHistory
from warehouse.releases.catalog import Manifest

_ATOM = "http://www.w3.org/2005/Atom"
# Base of the ids of feed and entries: they never change (RFC 4287, 4.2.6), wherever the service runs.
_IDS = UUID("6b4f5c0e-3f0a-4f0e-9a51-0d6a3b6f2c11")
_TITLE = "Population and housing forecasts: releases"


def feed_of(history: ReleaseHistory, path: str) -> bytes:
    """Returns the feed served at `path`. A rollback updates the release that became current again."""
    feed = Element("feed", xmlns=_ATOM)
    _text(feed, "id", _id("releases"))
    _text(feed, "title", _TITLE)
    current_since = history.since or history.current.published_at
    _text(feed, "updated", _instant(current_since))
    _text(SubElement(feed, "author"), "name", "Population and housing forecasts")
    _link(feed, "self", path, "application/atom+xml")
    for release in history.releases:
        since = current_since if release is history.current else release.published_at
        _entry(feed, release, since)
    encoded: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return encoded


def _entry(feed: Element, release: Manifest, updated: datetime) -> None:
    entry = SubElement(feed, "entry")
    _text(entry, "id", _id(release.id))
    _text(entry, "title", f"Release {release.id}")
    _text(entry, "updated", _instant(updated))
    _text(entry, "published", _instant(release.published_at))
    content = _text(entry, "content", _summary(release))
    content.set("type", "text")
    for area, held in release.contents.items():
        if held.changed is not None:
            _link(entry, "related", f"/v1/releases/{release.id}/changes?area={area}", "application/json")


def _summary(release: Manifest) -> str:
    said = []
    for area in release.areas:
        held = release.contents.get(area)
        changed = f", {held.changed:,} changed" if held is not None and held.changed is not None else ""
        said.append(f"{area}: {held.rows:,} rows{changed}" if held is not None else area)
    made_up = " The figures are made up, for demonstration." if release.illustrative else ""
    return "; ".join(said) + "." + made_up


def _id(name: str) -> str:
    return uuid5(_IDS, name).urn


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(parent: Element, name: str, text: str) -> Element:
    element = SubElement(parent, name)
    element.text = text
    return element


def _link(parent: Element, rel: str, href: str, kind: str) -> None:
    SubElement(parent, "link", {"rel": rel, "href": href, "type": kind})
