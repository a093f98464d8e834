"""What many instances ask of a bucket, and how late they are, for the page "Scaling".

``python -m tests.figures.bucket_polls [INSTANCES [LIMIT [SECONDS]]]`` (1,000, none and 20 by default) runs that many
mirrors, each with a data folder and connections of its own, against an S3 in a process of its own, which replies 503
to more than LIMIT requests a second, as S3 does. It counts requests and bytes there: of mirrors that only poll, of a
release that is announced and fetched, and of the switch to it. The release is small: the bytes of a real one are its
size, times the instances. Warming is left out.
"""

import asyncio
import json
import logging
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import md5
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import uvloop

from service.instance import kept_main
from tests.figures.common import milliseconds, say
from tests.support.drops import write_drop
from tests.support.publishing import publish_as_shipped
from tests.support.s3_server import CREDENTIALS
from tests.support.upstream import point, upload
from tests.support.waiting import until
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.upstream.mirror import Mirror
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

OTHER = "29991105T090000Z-ba9876543210"
_THREADS = 16
_BIN = 0.1


class Bucket(asyncio.Protocol):
    """A connection to an S3 that keeps objects in memory: GET, HEAD, PUT and lists, with conditions."""

    # of all connections
    objects: ClassVar[dict[str, tuple[bytes, str, datetime]]] = {}
    counts: ClassVar[Counter[str]] = Counter()
    bins: ClassVar[Counter[int]] = Counter()
    seconds: ClassVar[Counter[int]] = Counter()
    limit: ClassVar[int] = 0

    def connection_made(self, transport: Any) -> None:
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            line, *lines = self._received[:end].decode().split("\r\n")
            headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
            whole = end + 4 + int(headers.get("content-length", 0))
            if len(self._received) < whole:
                return
            body, self._received = self._received[end + 4 : whole], self._received[whole:]
            method, target, _ = line.split()
            reply = self._reply(method, target, headers, body)
            self._transport.write(reply)
            if target != "/counts":
                kind = re.sub(r".*/production/?(\w+)?.*", r"\1", urlsplit(target).path) or "list"
                self.counts.update({f"{method} {kind}": 1, "requests": 1, "bytes": len(reply), "received": whole})
                self.bins[int(time.time() / _BIN)] += 1

    def _reply(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        path, query = unquote(urlsplit(target).path), parse_qs(urlsplit(target).query)
        if target == "/counts":
            return _reply(200, json.dumps([self.counts, self.bins, time.process_time()]).encode())
        if "list-type" in query:
            return _reply(200, self._list(query.get("prefix", [""])[0]))
        self.seconds[int(time.time())] += 1
        if 0 < self.limit < self.seconds[int(time.time())]:
            self.counts["refused"] += 1
            return _reply(503, b"<Error><Code>SlowDown</Code></Error>")
        known = self.objects.get(path)
        if method == "PUT":
            wanted = headers.get("if-match")
            if (headers.get("if-none-match") == "*" and known) or (wanted and (not known or known[1] != wanted)):
                return _reply(412)
            tag = f'"{md5(body, usedforsecurity=False).hexdigest()}-{self.counts["requests"]}"'
            self.objects[path] = body, tag, datetime.now(UTC)
            return _reply(200, etag=tag)
        if method == "DELETE":
            self.objects.pop(path, None)
            return _reply(204)
        if known is None:
            return _reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        content, tag, modified = known
        if headers.get("if-none-match") == tag:
            return _reply(304, etag=tag)
        return _reply(200, content, etag=tag, modified=f"{modified:%a, %d %b %Y %H:%M:%S GMT}", head=method == "HEAD")

    def _list(self, prefix: str) -> bytes:
        rows = [
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size><ETag>{escape(tag)}</ETag><LastModified>"
            f"{modified:%Y-%m-%dT%H:%M:%SZ}</LastModified></Contents>"
            for key, (content, tag, modified) in ((path.split("/", 2)[2], one) for path, one in self.objects.items())
            if key.startswith(prefix)
        ]
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>".encode()


def _reply(status: int, content: bytes = b"", etag: str = "", modified: str = "", *, head: bool = False) -> bytes:
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(content)}"]
    lines += [f"ETag: {etag}"] if etag else []
    lines += [f"Last-Modified: {modified}"] if modified else []
    return "\r\n".join([*lines, "\r\n"]).encode() + (b"" if head or status == 304 else content)


def serve_bucket(parent: Connection, limit: int) -> None:
    Bucket.limit = limit

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Bucket, "127.0.0.1", 0, backlog=4096)
        parent.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


def open_store(port: int) -> ReleasesStore:
    options = {"endpoint": f"http://127.0.0.1:{port}", "region": "us-east-1", "allow_http": "true"}
    return ReleasesStore(open_objects("s3://bucket/production", options))


class Followed(logging.Handler):
    """When mirrors logged that they fetched a release, and that they follow the pointer to it."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[str, list[float]] = {"fetched": [], "current": []}

    def emit(self, record: logging.LogRecord) -> None:
        for event, times in self.times.items():
            if record.levelno == logging.INFO and event in str(record.msg):
                times.append(time.monotonic())


class Instances:
    """The mirrors of instances. Threads act for all in turn: a thread for each would fight for the interpreter."""

    def __init__(self, folder: Path, number: int, port: int) -> None:
        self.looks: list[float] = []
        self._number, self._followed = number, Followed()
        log = logging.getLogger("forecast.mirror")
        log.addHandler(self._followed)
        log.setLevel(logging.INFO)
        log.propagate = False
        self._files: list[InstanceFile] = []
        self._mirrors: list[Mirror] = []
        for at in range(number):
            catalog, name = Catalog(folder / f"{at}"), f"{at:012x}"
            catalog.data.mkdir()
            file = InstanceFile(catalog.data, name)
            file.write(InstanceRecord(name, 7, f"forecast-{at}", f"http://10.0.0.1:{at}", (None, None)))
            self._files.append(file)
            self._mirrors.append(Mirror(open_store(port), catalog, name, lambda *_: ()))

    def start(self) -> None:
        """Spread evenly over a poll, as instances that started at different times."""
        for act, pause in ((self._look, kept_main._POLL_SECONDS), (self._work, kept_main._IDLE_SECONDS)):
            due: SimpleQueue[tuple[float, Mirror]] = SimpleQueue()
            began = time.monotonic()
            for at, mirror in enumerate(self._mirrors):
                due.put((began + at / self._number * pause, mirror))
            for _ in range(_THREADS):
                threading.Thread(target=self._repeat, args=(due, act, pause), daemon=True).start()

    def _repeat(self, due: "SimpleQueue[tuple[float, Mirror]]", act: Callable[[Mirror], None], pause: float) -> None:
        while True:
            at, mirror = due.get()
            time.sleep(max(0.0, at - time.monotonic()))
            act(mirror)
            due.put((time.monotonic() + pause, mirror))

    def _look(self, mirror: Mirror) -> None:
        began = time.monotonic()
        mirror.look()
        self.looks.append(time.monotonic() - began)

    def _work(self, mirror: Mirror) -> None:
        while mirror.work():
            pass

    def wait(self, event: str, began: float) -> list[float]:
        """The seconds from `began` until each has logged the event."""
        times = self._followed.times[event]
        until(lambda: len(times) >= self._number)
        return [one - began for one in times]

    def forget(self) -> None:
        for times in self._followed.times.values():
            times.clear()


class Counts:
    """Requests and bytes at the bucket since it was made."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/counts"
        self._before, _, self._cpu = self._read()
        self._began = time.time()

    def say(self, name: str) -> None:
        counts, bins, cpu = self._read()
        seconds = time.time() - self._began
        since = Counter(counts)
        since.subtract(self._before)
        peak = max((number for at, number in bins.items() if int(at) >= int(self._began / _BIN)), default=0)
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(since.items()) if " " in kind and number)
        say(
            f"{name}: {seconds:.1f} s, {since['requests']:,} requests, {since['requests'] / seconds:,.0f}/s, "
            f"at most {peak:,} in {_BIN:g} s, {since['refused']:,} refused; "
            f"{since['bytes'] / 1e6:.2f} MB sent, {since['received'] / 1e6:.2f} MB received; "
            f"{(cpu - self._cpu) / seconds:.0%} of a core ({kinds})"
        )

    def _read(self) -> Any:
        with urllib.request.urlopen(self._url) as reply:
            return json.load(reply)


def measure(folder: Path, number: int, seconds: float, port: int) -> None:
    (folder / "publisher").mkdir()
    publish_as_shipped(Catalog(folder / "publisher"), [str(write_drop(folder / "drop"))], PublishOptions())
    store = open_store(port)
    first = upload(store, folder / "publisher").id
    upload(store, folder / "publisher", OTHER)
    size = sum(file.bytes for file in store.release(first).files.values())
    say(f"{number} instances, a release of {size:,} bytes in {len(store.release(first).files)} files")
    point(store, first)
    instances = Instances(folder, number, port)
    counts, began = Counts(port), time.monotonic()
    instances.start()
    taken = instances.wait("current", began)
    counts.say("cold start of all")
    say(f"each has a release after {milliseconds(taken)}")

    time.sleep(2)
    counts, cpu = Counts(port), time.process_time()
    instances.looks.clear()
    time.sleep(seconds)
    counts.say("polling")
    used = (time.process_time() - cpu) / seconds
    say(f"a look: {milliseconds(instances.looks)}; {used:.0%} of a core for all mirrors")

    instances.forget()
    counts, began = Counts(port), time.monotonic()
    point(store, first, announced=OTHER)
    taken = instances.wait("fetched", began)
    counts.say("announced, until all have fetched it")
    say(f"each has fetched it after {milliseconds(taken)}")

    time.sleep(2)
    instances.forget()
    counts, began = Counts(port), time.monotonic()
    point(store, OTHER, first)
    taken = instances.wait("current", began)
    counts.say("switched, until all follow")
    say(f"each follows after {milliseconds(taken)}")

    time.sleep(2)
    counts, began = Counts(port), time.monotonic()
    beats, unread = store.live_and_unread(store.now())
    say(f"a publisher reads {len(beats):,} beats in {time.monotonic() - began:.1f} s: {unread or 'all'}")


def main(arguments: list[str]) -> None:
    number, limit, seconds = (int(one) for one in [*arguments, *("1000", "0", "20")[len(arguments) :]])
    os.environ.update(CREDENTIALS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve_bucket, args=(theirs, limit), daemon=True)
    server.start()
    with tempfile.TemporaryDirectory(prefix="pf", ignore_cleanup_errors=True) as folder:
        try:
            measure(Path(folder), number, seconds, ours.recv())
        finally:
            logging.disable()  # of mirrors, whose loops never end
            server.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
