"""An S3 on this machine: moto, which checks a condition and writes without a lock, behind one.

``python -m tests.support.s3_server [ADDRESS]`` prints its port, and serves until it is killed.
"""

import contextlib
import itertools
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.network import HERE, Machine

_users = itertools.count()
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@dataclass(frozen=True)
class S3Server:
    port: int
    machine: Machine = HERE

    @property
    def endpoint(self) -> str:
        return f"http://{self.machine.address}:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "region": REGION, "allow_http": "true"}

    def make_bucket(self, name: str) -> str:
        """The URL of a new bucket."""
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with self.machine.inside(), urllib.request.urlopen(request):
            return f"s3://{name}"

    def user_with(self, policy: str) -> dict[str, str]:
        """The credentials of a new user with a policy, for the environment. Call before `require_rights`."""
        import boto3

        name = f"user{next(_users)}"
        own = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        iam = boto3.client("iam", endpoint_url=self.endpoint, region_name=REGION, **own)
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=policy)
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]}

    def require_rights(self) -> None:
        """From now on, nobody may do what no policy allows."""
        headers = {"content-type": "text/plain"}
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", b"0", headers, method="POST")
        with urllib.request.urlopen(request):
            return


@contextlib.contextmanager
def s3_server(machine: Machine = HERE) -> Iterator[S3Server]:
    command = [*machine.prefix, sys.executable, "-m", "tests.support.s3_server", machine.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        yield S3Server(int(process.stdout.readline()), machine)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main(address: str = HERE.address) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    moto: Callable[..., Iterable[bytes]] = DomainDispatcherApplication(create_backend_app)
    changing = threading.Lock()

    def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return iter(moto(environ, start))
        with changing:
            return list(moto(environ, start))

    server = make_server(address, 0, serve, threaded=True)
    print(server.port, flush=True)  # noqa: T201 - it listens already
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:2])
