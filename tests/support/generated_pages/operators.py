"""The references of metrics and of rules for drops."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from service.base.telemetry import Telemetry
from service.operators.metrics import metric_families
from service.operators.state import InstanceState
from tests.support.markdown import written_page, written_table
from warehouse.rules.all_rules import RULES
from warehouse.rules.rule import Needs, Rule


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


_NEEDS: Mapping[Needs, str] = {"drop": "", "release": "a release", "inbox": "the inbox", "publish": "a publish"}


def render_rules() -> str:
    rows = [
        (
            f"`{rule.name}`",
            rule.severity,
            _limit(rule),
            "yes" if rule.override else "no",
            _NEEDS[rule.needs],
            rule.about,
            rule.remedy or "",
        )
        for rule in RULES.values()
    ]
    return written_page(
        "Rules for drops",
        "Every rule that `forecast extracts check` and `publish` apply, with its default limit. A finding of severity "
        "error refuses the drop. Where the column *accept* has *yes*, "
        "[`--accept`](../publish/refused.md#accept-a-finding) publishes all the same. `FORECAST_LIMITS` and "
        "`FORECAST_SEVERITIES` change limits and severities; `forecast extracts rules` lists those in force.",
        "A limit without % is a number of rows, ZIP codes or figures. The column *needs* shows what a rule needs "
        "beside the drop:",
        "- **a release**: the rule compares the drop with releases. `check --no-release` and a first publish leave it "
        "out.\n"
        "- **the inbox**: only a drop of the inbox can break the rule.\n"
        "- **a publish**: the finding is made after the checks, while a release is built or goes live. `check` does "
        "not report it, and it neither refuses nor holds a drop.",
        written_table(("rule", "severity", "limit", "accept", "needs", "what it checks", "what to do"), rows),
    )


def _limit(rule: Rule) -> str:
    if rule.limit is None:
        return ""
    return f"{rule.limit:,.10g}" if rule.unit != "share" else f"{100 * rule.limit:.4g} %"
