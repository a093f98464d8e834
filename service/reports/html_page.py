"""The report of a checked drop as one self-contained page, with small charts of the drift.

The page loads no other files and runs no script, so it can be mailed, stored beside a drop, and printed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template

from service.reports import html_parts, wording
from service.reports.html_comparison import render_comparison
from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.findings import Finding

_SIGNS = {"error": "✕", "warning": "!", "info": "i"}
_NAMES = {"error": "Error", "warning": "Warning", "info": "Note"}
_TONE_SIGNS = {"good": "✓", "doubtful": "!", "bad": "✕"}


def render_page(outcome: PublishOutcome, drop: str, at: datetime | None = None) -> str:
    """Returns the page about the `outcome` of checking `drop` at the time `at` (default: now)."""
    template = resources.files("service.reports").joinpath("html_page.html").read_text(encoding="utf-8")
    verdict = wording.drop_verdict(outcome)
    comparison = outcome.report.comparison
    return Template(template).substitute(
        drop=html_parts.text(drop),
        tone=verdict.tone,
        sign=_TONE_SIGNS[verdict.tone],
        word=html_parts.text(verdict.word),
        rest=html_parts.text(verdict.rest),
        facts=_facts(outcome, at or datetime.now(UTC)),
        findings=_findings(outcome.report.findings),
        drift=render_comparison(comparison) if comparison else f"<p>{wording.NOT_COMPARED}</p>",
    )


def _facts(outcome: PublishOutcome, at: datetime) -> str:
    comparison, release = outcome.report.comparison, outcome.manifest
    facts = [("Checked", f"{at:%Y-%m-%d %H:%M} UTC")]
    if release:
        facts.append(("Current release", release.id))
    if comparison:
        facts.append(("ZIP codes", wording.places_line(comparison)))
        facts.append(("Figures", wording.figures_line(comparison)))
    return "".join(f"<div><dt>{name}</dt><dd>{html_parts.text(value)}</dd></div>" for name, value in facts)


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "<p>No findings.</p>"
    heads = ("Severity", "Rule", "Finding, and what to do", "Where", "Count")
    rows: list[str] = []
    for group in wording.by_cause(findings):
        if group.name is not None:
            rows.append(
                f'<tr><th scope="rowgroup" colspan="{len(heads)}">Cause: {html_parts.text(group.name)}</th></tr>'
            )
        rows += [_finding(finding) for finding in group.findings]
    caption = "Worst first; consequences of a finding are below it, marked └"
    return f'<div class="findings">{html_parts.table(caption, heads, rows, numeric=("Count",))}</div>'


def _finding(finding: Finding) -> str:
    kind = f"{finding.severity} follows" if finding.follows else finding.severity
    return (
        f'<tr class="{kind}">'
        f'<td class="severity"><span class="sign" aria-hidden="true">{_SIGNS[finding.severity]}</span>'
        f'{_NAMES[finding.severity]}</td><td class="rule">{_rule(finding)}</td>'
        f"<td>{_details(finding)}</td><td>{_where(finding)}</td>"
        f'<td class="number">{finding.count:,}</td></tr>'
    )


def _rule(finding: Finding) -> str:
    return f"{'└ ' if finding.follows else ''}<code>{html_parts.text(finding.rule)}</code>"


def _details(finding: Finding) -> str:
    parts = [f'<p class="message">{html_parts.text(finding.message)}</p>']
    samples = wording.samples_of(finding)
    if samples:
        row = " row" if wording.in_a_row(samples) else ""
        items = "".join(f"<li>{escape(sample)}</li>" for sample in samples)
        parts.append(f'<ul class="samples{row}">{items}</ul>')
    if finding.accepted is not None:
        parts.append(f'<p class="remedy">Accepted, reason given: {html_parts.text(finding.accepted)}</p>')
    elif remedy := wording.remedy_of(finding):
        parts.append(f'<p class="remedy">→ {html_parts.text(remedy)}</p>')
    return "".join(parts)


def _where(finding: Finding) -> str:
    places = (("table", finding.table), ("column", finding.column), ("file", finding.file))
    lines = [f"<dt>{name}</dt><dd>{html_parts.name(value)}</dd>" for name, value in places if value]
    return f'<dl class="where">{"".join(lines)}</dl>' if lines else ""
