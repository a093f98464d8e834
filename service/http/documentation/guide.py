"""The guide: docs/partners.md as a page. It runs no script and loads only its stylesheet."""

import re
from html import escape
from importlib import resources
from itertools import pairwise
from string import Template

from markdown_it import MarkdownIt
from markdown_it.token import Token

from service.http.openapi import About

# As in docs/partners.md.
_SAMPLE_URL = "http://127.0.0.1:8000"
TITLE = "Population and housing forecasts"
_NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")


def render_guide(about: About) -> str:
    """Returns the page as HTML.

    Headings have the anchors that code forges give them, samples the instance's address.
    """
    pages = resources.files("service.http.documentation").joinpath("pages")
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.add_render_rule("html_block", lambda *_: "")  # comments for editors of the text
    text = pages.joinpath("partners.md").read_text(encoding="utf-8")
    tokens = markdown.parse(text.replace(_SAMPLE_URL, about.public_url or about.local_url or _SAMPLE_URL))
    sections = _anchored(tokens)
    body = markdown.renderer.render(tokens[3:], markdown.options, {})  # without the title, which the template has
    body = body.replace("<pre>", '<pre tabindex="0">')  # so that keys scroll it
    template = pages.joinpath("guide.html").read_text(encoding="utf-8")
    contents = "\n".join(f'<li><a href="#{anchor}">{escape(text)}</a></li>' for anchor, text in sections)
    values = {"title": TITLE, "contents": contents, "contact": _contact(about.contact), "body": body}
    return Template(template).substitute(values)


def _contact(contact: str | None) -> str:
    if contact is None:
        return ""
    address = contact if "://" in contact else f"mailto:{contact}"
    return f'<p>Questions, keys, limits: <a href="{escape(address)}">{escape(contact)}</a></p>'


def _anchored(tokens: list[Token]) -> list[tuple[str, str]]:
    """Gives each heading its anchor; returns anchor and text of the second level."""
    sections = []
    for opening, text in pairwise(tokens):
        if opening.type == "heading_open":
            anchor = _NOT_IN_AN_ANCHOR.sub("", text.content.lower()).replace(" ", "-")
            opening.attrSet("id", anchor)
            if opening.tag == "h2":
                sections.append((anchor, text.content))
    return sections
