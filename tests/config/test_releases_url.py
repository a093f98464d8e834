"""URLs of the store of releases, and the options beside them."""

import pytest

from config.loading import load
from config.settings import SettingsError
from config.urls import option_problem, releases_url_problem


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/a/b", "gs://bucket/a", "az://container/a", "file:///a/b"])
def test_a_url_of_a_bucket_or_a_folder_is_right(url: str) -> None:
    assert releases_url_problem(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "bucket",
        "s3://",
        "https://bucket.s3.amazonaws.com",
        "s3://key:secret@bucket",
        "s3://b?a=b",
        "s3://b:9000/p",
        "file://host/a",
        "file:///",
        "s3://[",
        "gs:///p",
    ],
)
def test_any_other_url_is_refused_without_repeating_it(url: str) -> None:
    problem = releases_url_problem(url)
    assert problem is not None
    assert "secret" not in problem


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endpoint": "https://s3.example.com", "region": "eu"}, None),
        ({"endpoint": "http://127.0.0.1:9000", "allow_http": "true"}, None),
        ({"endpoint": "http://127.0.0.1:9000"}, "allow_http"),
        ({"endpoint": "s3.example.com"}, "must be a URL"),
        ({"secret_access_key": "x"}, "unknown option secret_access_key"),
        ({"region": "eu-west-1 endpoint=https://s3.example.com"}, "region cannot be part of a URL; separate options"),
        ({"endpoint": "https://[::1]:9000", "region": "eu_1"}, None),
    ],
    ids=["endpoint", "plain", "plain-unsaid", "no-url", "secret", "no-comma", "ipv6"],
)
def test_options_are_those_that_are_known(options: dict[str, str], said: str | None) -> None:
    problem = option_problem(options)
    assert (problem is None) if said is None else said in (problem or "")


def test_settings_take_both_from_the_environment() -> None:
    given = {
        "HOME": "/nowhere",
        "FORECAST_RELEASES_URL": "s3://bucket/prefix",
        "FORECAST_RELEASES_OPTIONS": "endpoint=http://127.0.0.1:9000, allow_http=true",
    }
    settings = load(given).settings
    assert settings.releases_url == "s3://bucket/prefix"
    assert settings.releases_options == {"endpoint": "http://127.0.0.1:9000", "allow_http": "true"}
    with pytest.raises(SettingsError, match=r"^FORECAST_RELEASES_URL: must be s3://"):
        load(given | {"FORECAST_RELEASES_URL": "redis://h"})
