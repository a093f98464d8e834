"""What there is at a path, for whom, and by which methods."""

import msgspec
import pytest

from service.request.request import NO_AREA, Request
from service.request.response import Response
from tests.support.pipeline import AREA, OPEN, OTHER, PATH, TEST_KEY, Steps, refused, request_for


def routed(steps: Steps, path: str, method: str = "GET", *, test: bool = False) -> tuple[Request, Response | None]:
    request = steps.begin(request_for(path, method=method, key=TEST_KEY if test else None))
    request.is_test = test
    return request, steps.router.route(request)


@pytest.mark.parametrize(
    ("path", "area"),
    [(PATH, AREA), (f"{PATH}/", AREA), (OTHER, "index"), (OPEN, NO_AREA), ("/nowhere", NO_AREA), ("/", NO_AREA)],
)
def test_a_request_counts_in_the_area_of_its_path(steps: Steps, path: str, area: str) -> None:
    assert routed(steps, path)[0].area == area


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", [PATH, f"{PATH}/", OTHER, OPEN])
def test_what_is_there_goes_on(steps: Steps, path: str, method: str) -> None:
    assert routed(steps, path, method)[1] is None


@pytest.mark.parametrize("path", ["/", "//v1", "/nowhere", f"{PATH}//", f"{PATH}/x", PATH.upper()])
def test_what_is_not_there_is_a_404_for_every_method(steps: Steps, path: str) -> None:
    for method in ("GET", "POST"):
        refusal = refused(routed(steps, path, method)[1])
        assert refusal.outcome == "not_found"
        assert "/v1/" in msgspec.json.decode(refusal.whole(b"r1")[1])["detail"]


def test_a_path_that_is_nearly_right_gets_a_suggestion(steps: Steps) -> None:
    refusal = refused(routed(steps, "/v1/thing")[1])
    assert f"Did you mean {PATH}?" in msgspec.json.decode(refusal.whole(b"r1")[1])["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "Head", "FOO", "M-SEARCH"])
def test_another_method_is_a_405(steps: Steps, method: str) -> None:
    assert steps.resolver.resolve(steps.begin(request_for())) is None
    for path in (PATH, OTHER, OPEN):
        refusal = refused(routed(steps, path, method)[1])
        assert (refusal.outcome, dict(refusal.headers)[b"allow"]) == ("method_not_allowed", b"GET, HEAD")


@pytest.mark.parametrize("target", ["*", "http://elsewhere/v1/things"])
def test_a_target_that_is_no_path_of_ours_is_not_said_to_be_missing(steps: Steps, target: str) -> None:
    refusal = refused(routed(steps, target, "OPTIONS")[1])
    assert refusal.outcome == "method_not_allowed"


def test_a_test_key_finds_the_paths_of_test_data_alone(steps: Steps) -> None:
    steps.lacking.add(AREA)
    assert routed(steps, PATH, test=True)[1] is None
    assert routed(steps, OPEN, test=True)[1] is None
    assert refused(routed(steps, OTHER, test=True)[1]).outcome == "not_found"
