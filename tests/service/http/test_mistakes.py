"""Mistakes of partners: each error names the mistake, and each correction that it offers answers the place meant."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from config.settings import Settings
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from tests.support.drops import location, project, write_drop
from tests.support.publishing import publish
from tests.support.served import FORECAST, Served, served, with_keys
from tests.support.wire import Answer
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

PROJECTS = "/v1/development-projects"
_NO_ESCAPES = "/?&=%+:;,$*'()[]@!~._-"
_PLACES = """
36436 Dickinson, AL 01025 Clarke County
58601 Dickinson, ND 38089 Stark County
00501 Holtsville, NY 36103 Suffolk County
10001 New York, NY 36061 New York County
10009 New York, NY 36061 New York County
11201 Brooklyn, NY 36047 Kings County
63101 Saint Louis, MO 29510 Saint Louis city
64101 Kansas City, MO 29095 Jackson County
66101 Kansas City, KS 20209 Wyandotte County
61933 Kansas, IL 17045 Edgar County
62701 Springfield, IL 17167 Sangamon County
65801 Springfield, MO 29077 Greene County
01101 Springfield, MA 25013 Hampden County
97477 Springfield, OR 41039 Lane County
75201 Dallas, TX 48113 Dallas County
30132 Dallas, GA 13223 Paulding County
77002 Houston, TX 48201 Harris County
75835 Crockett, TX 48225 Houston County
90210 Beverly Hills, CA 06037 Los Angeles County
90001 Los Angeles, CA 06037 Los Angeles County
94103 San Francisco, CA 06075 San Francisco County
94704 Berkeley, CA 06001 Alameda County
48072 Berkley, MI 26125 Oakland County
20001 Washington, DC 11001 District of Columbia
25301 Charleston, WV 54039 Kanawha County
29401 Charleston, SC 45019 Charleston County
97301 Salem, OR 41047 Marion County
01970 Salem, MA 25009 Essex County
02139 Cambridge, MA 25017 Middlesex County
02108 Boston, MA 25025 Suffolk County
81212 Canon City, CO 08043 Fremont County
83814 Coeur d Alene, ID 16055 Kootenai County
60601 Chicago, IL 17031 Cook County
06103 Hartford, CT 09003 Hartford County
06084 Tolland, CT 09013 Tolland County
06320 New London, CT 09011 New London County
99686 Valdez, AK 02063 Chugach Census Area
99573 Copper Center, AK 02066 Copper River Census Area
57752 Kyle, SD 46102 Oglala Lakota County
24523 Bedford, VA 51019 Bedford County
33101 Miami, FL 12086 Miami-Dade County
89101 Las Vegas, NV 32003 Clark County
30002 Avondale Estates, GA 13999 Many County
60002 Antioch, IL 17999 Many County
66002 Atchison, KS 20999 Many County
73301 Austin, TX 48999 Many County
"""
LOCATIONS = [
    location(zip_code, city, state, county_fips_code=code, county_name=county)
    for zip_code, city, state, code, county in re.findall(r"(\d{5}) (.+), (\w\w) (\d{5}) (.+)", _PLACES)
]
SITES: list[tuple[str | None, str, str]] = [
    ("94103", "San Francisco", "CA"),
    ("10451", "Bronx", "NY"),
    ("11201", "Brooklyn", "NY"),
]
SITES += [
    ("10001", "Manhattan", "NY"),
    ("10009", "Manhattan", "NY"),
    ("11201", "Queens", "NY"),
    ("10451", "Staten Island", "NY"),
]
MISTAKES = [
    tuple(part.strip() for part in line.rsplit(" | ", 2))
    for line in Path(__file__).with_name("mistakes.txt").read_text().splitlines()
    if line and not line.startswith("# ") and line != "#"
]


@pytest.fixture(scope="module")
def country(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A worker with the places of the list, and a test key."""
    folder = tmp_path_factory.mktemp("country")
    projects = [
        project(f"A-{number}", zip_code=zip_code, city_name=city, state_code=state, project_type=kind)
        for number, (zip_code, city, state) in enumerate(SITES)
        for kind in (["Housing", "Mixed Use"][number % 2],)
    ]
    drop = write_drop(folder / "drop", locations=LOCATIONS, projects=projects)
    assert publish(Catalog(folder / "data"), [str(drop)], PublishOptions()).result == "published"

    async def issue(store: KeyStore) -> tuple[str, ApiKey]:
        return await store.issue("acme", "", None, test=True)

    with served(msgspec.structs.replace(settings, data_dir=str(folder / "data"))) as worker:
        test_key, _ = worker.run(lambda: with_keys(settings.keys_url, settings.data_path, issue))
        yield worker, test_key


def test_there_are_at_least_three_hundred() -> None:
    assert len({request for request, _, _ in MISTAKES}) == len(MISTAKES) >= 300


def test_a_mistake_is_named_and_its_corrections_answer_the_place_meant(country: tuple[Served, str]) -> None:
    worker, test_key = country
    for request_, named, places in MISTAKES:
        line, key = (request_[5:], test_key) if request_.startswith("TEST ") else (request_, worker.key)
        method, line = ("POST", line[5:]) if line.startswith("POST ") else ("GET", line)
        target, _, body = line.partition(" ") if method == "POST" else (line, "", "")
        sent = quote(_whole(target), safe=_NO_ESCAPES)
        answer = _post(worker, sent, body) if method == "POST" else worker.ask(sent, key=key)
        detail = answer.json()["detail"]
        assert 400 <= answer.status < 500, request_
        for part in named.split(" + "):
            assert part.lower() in detail.lower(), detail
        found = []
        for correction in _corrections(detail):
            target = correction if correction.startswith("/") else f"{sent.partition('?')[0]}?{correction}"
            followed = worker.ask(target, key=key)
            assert followed.status == 200, (detail, followed.body)
            found.append(_place(target, followed))
        assert set(found) == (set() if places == "*" else set(places.split("; "))), detail


def test_the_name_of_a_city_whose_parts_sources_name_answers_all_of_them(country: tuple[Served, str]) -> None:
    """The boroughs of New York City; a ZIP code beside the name is still looked up alone."""
    worker, _ = country
    for name in ("New+York", "New+York+City", "NYC", "City+of+New+York"):
        answer = worker.ask(f"{PROJECTS}?city_name={name}&state_code=NY")
        assert answer.json().get("total_matching") == 6, (name, answer.body)
        cities = "Bronx, NY; Brooklyn, NY; Manhattan, NY; Queens, NY; Staten Island, NY"
        assert answer.header("x-matched-city") == cities
    page = worker.ask(f"{PROJECTS}?city_name=NYC&state_code=NY&limit=5").json()
    rest = worker.ask(f"{PROJECTS}?city_name=New+York&state_code=NY&cursor={page['next_cursor']}").json()
    assert (page["total_results"], rest["total_results"]) == (5, 1)
    filtered = worker.ask(f"{PROJECTS}?city_name=NYC&state_code=NY&project_type=Housing").json()
    assert filtered["total_matching"] == 3
    assert worker.ask(f"{PROJECTS}?city_name=Manhattan&state_code=NY").json()["total_matching"] == 2
    assert worker.ask(f"{PROJECTS}?zip_code=10001&city_name=NYC&state_code=NY").json()["total_matching"] == 1


def test_a_body_is_read_only_if_it_is_short(country: tuple[Served, str]) -> None:
    """And the connection is kept behind it."""
    worker, _ = country
    with worker.wire() as wire:
        for body, named in (('{"zip_code": "36436"}', True), ("[" * 1_900, False), ("x" * 5_000, False)):
            head = worker.head(FORECAST, "POST", content_length=str(len(body)))
            answer = wire.send(head + body).answer()
            assert (answer.status, "Send GET" in answer.json()["detail"]) == (405, named)


def _whole(target: str) -> str:
    for short, path in (("F", FORECAST), ("P", PROJECTS)):
        if target.startswith(short):
            return path + target[1:]
    return target


def _post(worker: Served, target: str, body: str) -> Answer:
    with worker.wire() as wire:
        return wire.send(worker.head(target, "POST", content_length=str(len(body))) + body).answer()


def _corrections(detail: str) -> list[str]:
    """The requests that the detail offers, without the names of counties."""
    offered = re.search(r"[Dd]id you mean (.*?)\?(?: |$)|Send GET (.*)$", detail)
    if offered is None or not re.search(r"[=]", offered[0]):
        return []
    return [re.sub(r" \([^)]*\)$", "", one) for one in (offered[1] or offered[2]).split(" or ")]


def _place(target: str, answer: Answer) -> str:
    """The place that an answer is about: the first city of a place, a county, a state, or the ZIP codes of a batch."""
    body = answer.json()
    if "results" in body:
        return " ".join(one["zip_code"] for one in body["results"])
    first = (body.get("zip_codes") or body.get("development_projects"))[0]["location"]
    if "/by-county" in target:
        return str(first["county_name"])
    return f"state {first['state_code']}" if "/by-state" in target else str(first["city"])
