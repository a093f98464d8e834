"""The references of metrics and of rules for drops."""

from prometheus_client.core import Metric

from service.base.telemetry import Telemetry
from service.operators.metrics import metric_families
from service.operators.state import InstanceState
from tests.support.markdown import written_page, written_table
from warehouse.rules.all_rules import RULES
from warehouse.rules.rule import Rule


def exported_metrics() -> list[Metric]:
    """Returns all, by name."""
    state = InstanceState(workers=(), wanted_workers=1, restarts=0, draining=False)
    return sorted(metric_families(state, Telemetry().snapshot()), key=lambda metric: metric.name)


def name_in_scrape(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def render_metrics_page() -> str:
    rows = [(f"`{name_in_scrape(one)}`", one.type, _labels(one), one.documentation) for one in exported_metrics()]
    return written_page(
        "Metrics",
        "Every metric at `/metrics` of the operators' listener. [Watch an instance](../operate/watch.md) says which to "
        "look at first, and [alerts](../operate/alerts.md) are rules on them. A label `store` is `keys` or `cache`; "
        "`pid` is a worker's process.",
        written_table(("metric", "type", "labels", "meaning"), rows),
    )


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric._labelnames)  # type: ignore[attr-defined]  # of each family


def render_rules() -> str:
    rows = [
        (
            f"`{rule.name}`",
            rule.severity,
            _limit(rule),
            "yes" if rule.override else "no",
            rule.about,
            rule.remedy or "",
        )
        for rule in RULES.values()
    ]
    return written_page(
        "Rules for drops",
        "Every rule that `forecast extracts check` and `publish` apply, with its default limit. A finding of severity "
        "error refuses the drop. Where the table says yes, `--accept` publishes all the same. `FORECAST_LIMITS` "
        "and `FORECAST_SEVERITIES` change limits and severities.",
        written_table(("rule", "severity", "limit", "accept", "what it checks", "what to do"), rows),
    )


def _limit(rule: Rule) -> str:
    if rule.limit is None:
        return ""
    return f"{rule.limit:.4g}" if rule.unit != "share" else f"{100 * rule.limit:.4g} %"
