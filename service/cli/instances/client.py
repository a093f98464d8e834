"""Calls one operators' listener. Every call has a time limit, and every failure is a one-line message."""

import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from config.decoders import decoder_of
from config.settings import Settings
from config.text import printable
from service.base.whoami import COMMAND_AGENT, whoami

TIMEOUT_SECONDS = 2.0
_MOST_BYTES = 8 << 20  # of an answer
_CHUNK_BYTES = 1 << 16
_READ, _WRITE = "FORECAST_OPERATOR_READ_TOKEN", "FORECAST_OPERATOR_WRITE_TOKEN"
NO_WRITE_TOKEN = f"this command needs the instance's write token: set {_WRITE}"

T = TypeVar("T")


class CallError(Exception):
    """An instance did not answer, or refused the call. `code` is the listener's error code, if it sent one."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(printable(message))
        self.code = code


class _Problem(msgspec.Struct, frozen=True):
    """The members of an error that a message uses."""

    code: str
    detail: str


class OperatorsClient:
    """Calls the listener at `url`, with the tokens of the `settings`. A command owns it. Each call opens a connection.

    It uses no proxy and follows no redirect, so that a token reaches only the listener.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url.rstrip("/")
        self._read = settings.operator_read_token or settings.operator_write_token
        self._write = settings.operator_write_token

    def get(self, path: str, kind: type[T]) -> T:
        """Returns the answer to GET `path`. Raises CallError."""
        return self._ask("GET", path, None, self._read, kind, TIMEOUT_SECONDS)

    def post(self, path: str, body: Any, kind: type[T], seconds: float = TIMEOUT_SECONDS) -> T:
        """Returns the answer to POST `path` with `body` as JSON. Raises CallError."""
        if self._write is None:
            raise CallError(NO_WRITE_TOKEN)
        return self._ask("POST", path, msgspec.json.encode(body), self._write, kind, seconds)

    def _ask(self, method: str, path: str, body: bytes | None, token: str | None, kind: type[T], seconds: float) -> T:
        headers: dict[str, str | bytes] = {
            "Accept": "application/json",
            "Connection": "close",
            "User-Agent": COMMAND_AGENT,
        }
        if body is not None:
            headers |= {"Content-Type": "application/json", "X-Actor": whoami().encode()}  # a name may have any letters
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        status, answer = self._exchange(method, path, body, headers, seconds)
        if status >= 400:
            raise self._refused(status, answer, method)
        try:
            return decoder_of(kind).decode(answer)
        except msgspec.ValidationError:
            raise CallError(f"{self.url} runs another version than this command") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._foreign() from None

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str | bytes], seconds: float
    ) -> tuple[int, bytes]:
        end = time.monotonic() + seconds
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.request(method, f"{parts.path}{path}", body, headers)
            response = connection.getresponse()
            return response.status, self._body(response, end)
        except TimeoutError:
            raise CallError(f"{self.url} does not answer within {seconds:g} s") from None
        except ConnectionRefusedError:
            raise CallError(f"{self.url} refuses connections: no process listens there") from None
        except ConnectionError:  # also if it closes without an answer
            raise CallError(f"{self.url} closed the connection without an answer") from None
        except socket.gaierror:
            raise CallError(f"host {parts.hostname} was not found") from None
        except OSError as error:
            raise CallError(f"{self.url} is unreachable: {error.strerror or error}") from None
        except HTTPException:
            raise self._foreign() from None
        finally:
            connection.close()

    def _body(self, response: HTTPResponse, end: float) -> bytes:
        found = b""
        while chunk := response.read1(_CHUNK_BYTES):
            found += chunk
            if len(found) > _MOST_BYTES:
                raise self._foreign()
            if time.monotonic() > end:
                raise TimeoutError
        return found

    def _refused(self, status: int, answer: bytes, method: str) -> CallError:
        try:
            problem = decoder_of(_Problem).decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._foreign()
        missing = "has no write token" if method == "POST" else "runs an earlier version"
        message = {
            "missing_token": f"{self.url} needs a token: set {_READ} to the instance's read token",
            "invalid_token": f"{self.url} rejects the token in {_READ} or {_WRITE}: set the instance's token",
            "not_permitted": f"{self.url} accepts this token only for reading: set {_WRITE} to the write token",
            "missing_api_key": f"{self.url} is a partners' listener: give the operators' (FORECAST_OPERATOR_PORT)",
            "not_found": f"{self.url} does not offer this: it {missing}",
        }.get(problem.code, f"{self.url} answers {status}: {problem.detail}")
        return CallError(message, problem.code)

    def _foreign(self) -> CallError:
        return CallError(f"{self.url} is not an operators' listener")
