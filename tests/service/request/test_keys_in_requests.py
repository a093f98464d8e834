"""A key that stands anywhere in a request but in its own header is shown nowhere."""

import html
import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

import msgspec
import pytest

from tests.support.key_store import any_key
from tests.support.served import FORECAST, Served
from tests.support.waiting import until

KEY, PARTS = any_key()
PROJECTS = "/v1/development-projects"
PLACES = (
    f"{FORECAST}?city_name={{}}&state_code=AL",
    f"{FORECAST}?city_name=St+{{}}+City&state_code=AL",
    f"{FORECAST}?city_name={{}}%2C+AL",
    f"{FORECAST}?city_name={{}}",
    f"{FORECAST}?city_name=Mobile%26key%3D{{}}",
    f"{FORECAST}?city_name=Mobile&state_code={{}}",
    f"{FORECAST}?zip_code={{}}",
    f"{FORECAST}?zip_code=36436%3Fkey%3D{{}}",
    f"{FORECAST}?zip_code=36436&zip_code={{}}",
    f"{FORECAST}?zip={{}}",
    f"{FORECAST}?place={{}},%20AL",
    f"{FORECAST}?{{}}",
    f"{FORECAST}?{{}}=36436",
    f"{FORECAST}?zip_code=36436&api_key={{}}",
    f"{FORECAST}/batch?zip_code={{}}&zip_code=36436",
    f"{FORECAST}/batch?zip_code={{}},36436",
    f"{FORECAST}/batch?{{}}=36436",
    f"{FORECAST}/by-county?county_fips_code={{}}",
    f"{FORECAST}/by-state?state_code={{}}",
    f"{FORECAST}/by-state?state_code=AL&cursor={{}}",
    f"{FORECAST}/by-state?state_code=AL&limit={{}}",
    f"{FORECAST}/{{}}",
    f"{PROJECTS}?city_name={{}}&state_code=CA",
    f"{PROJECTS}?zip_code=94103&status={{}}",
    f"{PROJECTS}?zip_code=94103&project_type={{}}",
    f"{PROJECTS}?zip_code=94103&status_date_from={{}}",
    f"{PROJECTS}?zip_code=94103&{{}}=1",
    "/v1/releases/{}/forecast.parquet",
    "/v1/releases/{}/changes?area=forecast",
    "/v1/releases/current/changes?area={}",
    "/v1/releases/current/{}.parquet",
    "/v1/usage?from={}",
    "/v1/usage/errors?limit={}",
    "/v1/usage/{}",
    "/v1/?{}",
    "/{}",
)
FORMS = {
    "as it is": KEY,
    "upper case": KEY.upper(),
    "underscores encoded": KEY.replace("_", "%5F"),
    "all encoded": "".join(f"%{ord(character):02X}" for character in KEY),
    "encoded twice": "".join(f"%25{ord(character):02x}" for character in KEY),
    "some encoded again and again": KEY.replace("_", "%2525255f", 1).replace("h", "%68"),
    "invisible characters": quote("\u200b".join(KEY)),
    "invisible characters, encoded twice": quote(quote("\ufeff".join(KEY))),
    "a no-break space in the prefix": quote(KEY.replace("_", "\u00a0_", 1)),
    "an ideographic space in the prefix, encoded twice": quote(quote(KEY.replace("_", "_\u3000", 1))),
    "soft hyphens in the prefix": quote(KEY.replace("f", "f\u00ad")),
    "entities": quote("".join(f"&#{ord(character)};" if character in "_phf" else character for character in KEY)),
    "escapes": quote("".join(f"\\u{ord(character):04x}" if character in "_phf" else character for character in KEY)),
    "without its end": KEY[:-9],
}


def shows_key(text: str) -> bool:
    """Whether anybody who decodes the text finds the secret, or half of it."""
    for _ in range(8):
        text = html.unescape(unquote(text))
        text = re.sub(r"\\+(?:u00|x)([0-7][0-9a-fA-F])", lambda found: chr(int(found[1], 16)), text)
        text = re.sub(r"\\+u[0-9a-fA-F]{4}|[^\x00-\x7f]", "", text)
    return PARTS.secret[:20].lower() in text.lower()


@pytest.fixture
def shown(documented: Served, capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Takes answers; afterwards all else that is told of the requests is looked at too."""
    texts: list[str] = []
    capfd.readouterr()
    yield texts

    async def reported() -> str:
        return repr(documented.app.watch.samples.take())

    texts.append(documented.run(reported))
    texts.append(documented.ask("/v1/usage/errors?limit=100").body.decode())
    texts.append("".join(capfd.readouterr()))
    assert not [text for text in texts if shows_key(text)]


@pytest.mark.parametrize("form_of", FORMS)
def test_a_key_in_the_address_is_shown_nowhere(documented: Served, shown: list[str], form_of: str) -> None:
    for place in PLACES:
        for method in ("GET", "HEAD", "GET"):
            answer = documented.ask(place.format(FORMS[form_of]), method)
            shown.append(f"{answer.status} {answer.headers} {answer.body.decode()}")
            request_id = answer.header("x-request-id") or ""

            async def logged(request_id: str = request_id) -> str:
                return msgspec.json.encode(documented.app.watch.log.find(request_id)).decode()

            shown.append(documented.run(logged))


@pytest.mark.parametrize(
    "field",
    ["Authorization", "X_Request_Id", "If_Match", "If_None_Match", "X_Test_Error", "Cookie", "Referer", "traceparent"],
)
def test_a_key_in_a_header_is_shown_nowhere(documented: Served, shown: list[str], field: str) -> None:
    for target in (f"{FORECAST}?zip_code=1", f"{FORECAST}?zip_code=36436"):
        for key in ("", None):
            answer = documented.ask(target, key=key, **{field: KEY})
            shown.append(f"{answer.status} {answer.headers} {answer.body.decode()}")


def test_a_key_as_a_method_is_shown_nowhere(documented: Served, shown: list[str]) -> None:
    half = KEY[22:54]
    for method in (KEY, half, f"phf_live_{half}"[:32]):
        answer = documented.ask("/v1/", method)
        shown.append(f"{answer.headers} {answer.body.decode()}")
    request_id = answer.header("x-request-id") or "none"
    until(lambda: request_id in documented.ask("/v1/usage/errors").body.decode())
