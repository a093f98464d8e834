"""Whatever is generated from the OpenAPI description is answered as the description says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.served import Served

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Requests made up for each operation. `make soak` sets more.
_EXAMPLES = os.environ.get("CONFORMANCE_EXAMPLES", "15")
# How parameters belong together is prose, and what is forgiven is not in the schema.
_NOT_JUDGED = "positive_data_acceptance,negative_data_rejection"


@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="schemathesis is not installed (pip install '.[conformance]')")
def test_no_request_gets_a_server_error_or_an_undocumented_answer(documented: Served, tmp_path: Path) -> None:
    """Status, content type, headers and body; for requests that fit the description and such that do not."""
    address = f"http://127.0.0.1:{documented.port}"
    command = [
        *(str(SCHEMATHESIS), "run", f"{address}/docs/openapi.json", "--url", address),
        *("--header", f"x-api-key: {documented.key}", "--max-examples", _EXAMPLES),
        *("--exclude-checks", _NOT_JUDGED, "--continue-on-failure", "--no-color", "--generation-database", "none"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "Authentication failed" not in done.stdout
