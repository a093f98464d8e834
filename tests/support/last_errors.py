"""Errors of requests, and what is kept of them."""

from service.base.ipc import AccessLogEntry
from service.quota.last_errors import LastErrors


def failed(number: int, key_id: str = "a") -> AccessLogEntry:
    """Requests of ascending numbers were answered one millisecond after the other."""
    return AccessLogEntry(
        time=f"2026-11-20T12:00:00.{number:03}+00:00",
        request_id=f"r{number}",
        status=400,
        method="GET",
        path="/v1/population-housing-forecast",
        outcome="invalid_parameter",
        milliseconds=0.1,
        pid=1,
        query=f"zip_code={number}",
        key_id=key_id,
        address="192.0.2.1",
    )


async def kept(errors: LastErrors, key_id: str = "a") -> list[str]:
    return [error.request_id for error in await errors.of_key(key_id)]


def add(errors: LastErrors, request: AccessLogEntry) -> None:
    assert request.key_id is not None
    errors.add(request.key_id, lambda: request)


async def keep(errors: LastErrors, *requests: AccessLogEntry) -> None:
    for request in requests:
        add(errors, request)
    await errors.flush()
