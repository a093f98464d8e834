"""The reference is the OpenAPI description, as text and with Swagger UI."""

from service.http.documentation.reference import render_reference
from service.http.openapi import describe_api
from service.request.errors import CODES


def test_without_swagger_ui_the_text_is_all_there_is() -> None:
    document = describe_api()
    page = render_reference(document, with_swagger=False)
    for path, item in document["paths"].items():
        assert f"<code>{path}</code>" in page
        assert all(f"<code>{parameter['name']}</code>" in page for parameter in item["get"].get("parameters", ()))
    assert all(f"<code>{code}</code>" in page for code in CODES)
    assert "<script" not in page
    assert "swagger" not in page


def test_with_swagger_ui_the_text_is_there_until_it_has_come() -> None:
    document = describe_api()
    page = render_reference(document, with_swagger=True)
    assert "/docs/swagger-ui-bundle.js" in page
    assert all(f"<code>{path}</code>" in page for path in document["paths"])
