"""The reference is the OpenAPI description, as text and with Swagger UI."""

import pytest

from service.http.documentation.reference import render_reference
from service.http.openapi import describe_api
from service.request.errors import CODES


@pytest.mark.parametrize("with_swagger", [False, True])
def test_the_reference_is_a_text_that_swagger_ui_may_replace(with_swagger: bool) -> None:
    document = describe_api()
    page = render_reference(document, with_swagger=with_swagger)
    for path, item in document["paths"].items():
        assert f"<code>{path}</code>" in page
        assert all(f"<code>{parameter['name']}</code>" in page for parameter in item["get"].get("parameters", ()))
    assert all(f"<code>{code}</code>" in page for code in CODES)
    assert ("<script" in page) is ("/docs/swagger-ui-bundle.js" in page) is with_swagger
