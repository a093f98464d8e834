"""The rights in the bucket that docs/operate/rights.md grants are enough, and no more than it says."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.drops import people, write_drop
from tests.support.instance import environment, forecast_here
from tests.support.markdown import ROOT
from tests.support.s3_server import S3Server, s3_server
from tests.support.upstream import point, upload
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.schema.errors import StoreError
from warehouse.upstream.mirror import Mirror
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

URL = "s3://forecast-releases/production"  # as in the policies


def policy(name: str) -> str:
    (found,) = re.findall(
        rf'```json title="{name}"\n(.*?)```', (ROOT / "docs/operate/rights.md").read_text(), re.DOTALL
    )
    return str(found)


class Bucket:
    """`store` may do everything; `become` takes the rights of a user."""

    def __init__(self, server: S3Server, patched: pytest.MonkeyPatch) -> None:
        self._server, self._patched = server, patched
        server.make_bucket("forecast-releases")
        admin = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
        wanted = {"admin": admin, "instances": policy("instances"), "publishers": policy("publishers")}
        self._users = {name: server.user_with(text) for name, text in wanted.items()}
        server.require_rights()
        self.options = ",".join(f"{name}={value}" for name, value in server.options.items())

    def become(self, name: str) -> ReleasesStore:
        for variable, value in self._users[name].items():
            self._patched.setenv(variable, value)
        return ReleasesStore(open_objects(URL, self._server.options))


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with pytest.MonkeyPatch.context() as patched, s3_server() as server:
        yield Bucket(server, patched)


def test_a_publisher_needs_no_other_rights(bucket: Bucket, tmp_path: Path) -> None:
    bucket.become("publishers")
    env = environment(tmp_path / "data", releases_url=URL, releases_options=bucket.options)
    for at in range(3):
        drop = write_drop(tmp_path / str(at), population=(people("36436", 2023, 783 + at),))
        done = forecast_here(env, "extracts", "publish", str(drop))
        assert done.returncode == 0, done.stderr
    oldest = done_id(env, "list", "--json")
    for command in (["show"], ["diff", oldest], ["rollback"], ["rollback"], ["retire", "--keep", "2"]):
        done = forecast_here(env, "extracts", *command)
        assert done.returncode == 0, done.stderr


def done_id(env: dict[str, str], *arguments: str) -> str:
    """The oldest release that is listed."""
    done = forecast_here(env, "extracts", *arguments)
    return str(re.findall(r'"id": "([^"]+)"', done.stdout)[-1])


def test_an_instance_needs_no_other_rights(bucket: Bucket, published: Path, tmp_path: Path) -> None:
    admin = bucket.become("admin")
    release = upload(admin, published).id
    point(admin, release)
    record = InstanceFile(tmp_path, "ab")
    record.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (None,)))
    mirror = Mirror(bucket.become("instances"), Catalog(tmp_path), "ab", lambda *_: ())
    mirror.look()
    while mirror.work():
        mirror.look()
    mirror.look()
    assert mirror.problem is None
    assert Catalog(tmp_path).current().id == release
    assert set(admin.live(admin.now())) == {"ab"}
    mirror.end()
    assert admin.live(admin.now()) == {}
    record.close()


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("instances", "current.json"),
        ("instances", "releases/a.json"),
        ("instances", "blobs/a"),
        ("instances", "clock"),
        ("publishers", "instances/a.json"),
    ],
)
def test_no_role_has_rights_that_it_does_not_need(bucket: Bucket, user: str, name: str) -> None:
    objects = bucket.become(user).objects
    calls: tuple[Callable[[], object], ...] = (lambda: objects.put(name, b""), lambda: objects.create(name, b""))
    for call in calls:
        with pytest.raises(StoreError):
            call()
