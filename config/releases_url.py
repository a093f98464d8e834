"""URLs of the store of releases: what is wrong with one, and the options beside it."""

from urllib.parse import urlsplit

# What `FORECAST_RELEASES_OPTIONS` may set. Credentials come from the environment, as the tools of each cloud find them.
OPTIONS = ("account_name", "allow_http", "endpoint", "region", "skip_signature", "virtual_hosted_style_request")
_BUCKETS = ("s3", "gs", "az")


def releases_url_problem(url: str) -> str | None:
    """What is wrong with `url`, in words that do not repeat it; None if nothing is."""
    needed = "must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError:
        return needed
    if parts.scheme not in (*_BUCKETS, "file"):
        return needed
    if "@" in parts.netloc or has_port or parts.query or parts.fragment:
        return f"{needed}, without credentials, port or options: those are in FORECAST_RELEASES_OPTIONS"
    if parts.scheme == "file":
        return None if not parts.netloc and parts.path.strip("/") else "needs an absolute path: file:///releases"
    return None if parts.netloc else needed


def option_problem(options: "dict[str, str]") -> str | None:
    """What is wrong with the options beside a URL."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        return f"unknown option {', '.join(unknown)}; there are {', '.join(OPTIONS)}"
    endpoint = options.get("endpoint", "https://")
    plain = options.get("allow_http", "false").lower() in ("true", "1", "yes")
    if not endpoint.startswith(("https://", "http://")):
        return "endpoint must be a URL, like https://s3.example.com"
    if endpoint.startswith("http://") and not plain:
        return (
            "endpoint is http://, where keys and releases can be read on the way: say allow_http=true if that is right"
        )
    return None
