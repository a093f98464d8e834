"""Whatever is generated from the OpenAPI description is answered as the description says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.settings import Settings
from service.base.terms import Terms
from tests.support.caller import Caller
from tests.support.served import Served

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Requests made up at random for each operation, beside those that its schema gives. `make soak` sets more.
_EXAMPLES = os.environ.get("CONFORMANCE_EXAMPLES", "5")
# How parameters belong together is prose, and what is forgiven is not in the schema.
_NOT_JUDGED = "positive_data_acceptance,negative_data_rejection"


pytestmark = pytest.mark.skipif(
    not SCHEMATHESIS.exists(), reason="schemathesis is not installed (pip install '.[conformance]')"
)


def test_no_request_gets_a_server_error_or_an_undocumented_answer(documented: Served, tmp_path: Path) -> None:
    """Status, content type, headers and body; for requests that fit the description and such that do not."""
    judge(documented, tmp_path, "/docs/openapi.json", documented.key, _NOT_JUDGED)


def test_nor_does_a_request_with_a_test_key(documented: Served, tmp_path: Path, settings: Settings) -> None:
    """By the description that it gets itself. A 5xx may be on purpose."""
    key = Caller(documented, settings, Terms(), test=True).key
    judge(documented, tmp_path, "/v1/openapi.json", key, f"{_NOT_JUDGED},not_a_server_error")


def judge(served: Served, folder: Path, description: str, key: str, not_judged: str) -> None:
    address = f"http://127.0.0.1:{served.port}"
    (folder / "openapi.json").write_bytes(served.ask(description, key=key).body)
    command = [
        *(str(SCHEMATHESIS), "run", "openapi.json", "--url", address),
        *("--header", f"x-api-key: {key}", "--max-examples", _EXAMPLES),
        *("--exclude-checks", not_judged, "--continue-on-failure", "--no-color", "--generation-database", "none"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "Authentication failed" not in done.stdout
