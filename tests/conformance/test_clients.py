"""Clients can be generated from the OpenAPI description without a warning, and work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.http.openapi import describe_api
from tests.support.markdown import blocks
from tests.support.served import Served

_BIN = Path(sys.executable).parent
_GUIDE = Path(__file__).parents[2] / "docs/partners/clients.md"

pytestmark = pytest.mark.skipif(
    not (_BIN / "openapi-python-client").exists(), reason="no generators (pip install '.[conformance]')"
)


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    path.write_text(json.dumps(describe_api()))
    return path


@pytest.fixture(scope="module")
def client(description: Path) -> Path:
    """The folder of the package that openapi-python-client makes."""
    made = description.parent / "client"
    command = [*("openapi-python-client", "generate", "--path", str(description), "--output-path", str(made))]
    (overrides,) = blocks(_GUIDE, "yaml")
    reported = description.with_name("overrides.yaml")
    reported.write_text(overrides)
    # it formats with ruff, which it looks for on the PATH
    path = f"{_BIN}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(_BIN / command[0]), *command[1:], "--config", str(reported), "--meta", "none", "--fail-on-warning"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Warning" not in done.stdout
    return made


_PROGRAM = """
import sys
from client import Client
from client.api.forecast import get_population_housing_forecast as forecast
from client.models import ForecastBody, Problem

asking = Client(base_url=sys.argv[1], headers={"x-api-key": sys.argv[2]}, raise_on_unexpected_status=True)
body = forecast.sync(client=asking, zip_code="36436")
assert isinstance(body, ForecastBody), body
assert body.zip_codes[0].location.city == "Dickinson, AL"
assert body.zip_codes[0].population[0].tot_population == 531
nothing = forecast.sync(client=asking, zip_code="99999")
assert isinstance(nothing, Problem), nothing
assert nothing.code.value == "no_matching_records"
print("done")
"""


def test_a_generated_client_reads_answers_and_errors(documented: Served, client: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, f"http://127.0.0.1:{documented.port}", documented.key]
    done = subprocess.run(command, cwd=client.parent, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


def test_models_can_be_generated(documented: Served, description: Path) -> None:
    models = description.parent / "models.py"
    made = subprocess.run(
        [
            *(str(_BIN / "datamodel-codegen"), "--input", str(description), "--input-file-type", "openapi"),
            *("--output", str(models), "--output-model-type", "msgspec.Struct", "--formatters", "builtin"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")
    program = (
        "import sys, msgspec, models; print(msgspec.json.decode(sys.stdin.buffer.read(), type=models.ForecastBody))"
    )
    body = documented.forecast(zip_code="36436").body
    read = subprocess.run(
        [sys.executable, "-c", program], cwd=models.parent, input=body, capture_output=True, check=False
    )
    assert b"Dickinson, AL" in read.stdout, read.stderr.decode()
