"""The references of metrics and of rules for drops."""

from collections.abc import Mapping, Sequence

from prometheus_client.core import Metric

from service.base.telemetry import OLDER, Telemetry
from service.operators.metrics import metric_families
from service.operators.overview import EVENT_KINDS
from service.operators.state import InstanceState
from tests.support.markdown import written_page, written_table
from warehouse.rules.drift_rules import DRIFT_RULES
from warehouse.rules.file_rules import COLUMN_RULES, FILE_RULES
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES, PlausibilityRule
from warehouse.rules.row_rules import ROW_RULES
from warehouse.rules.rule import CHECK_SOURCE, Needs, Rule

_TIERS = (
    "`near` (the worker's memory), `shared` (Redis) or `warehouse` (DuckDB)",
    "`previous`: the previous release answered in place of the current one",
)
# Rows of a table: label, metrics, values.
_LABEL_VALUES = (
    ("`tier`", "`forecast_answers_total`", f"{_TIERS[0]}; {_TIERS[1]}"),
    ("`tier`", "`forecast_cache_lookups_total`", _TIERS[0]),
    ("`tier`", "`forecast_cache_lookup_seconds`", "`shared` or `warehouse`"),
    (
        "`outcome`",
        "`forecast_cache_lookups_total`",
        "near: `hit`, `miss`; shared: `hit`, `miss`, `damaged`, `unavailable`; warehouse: `hit`, `error`",
    ),
    (
        "`outcome`",
        "`forecast_requests_total`, `forecast_test_requests_total`",
        "`answered`, `answered_empty` (a 200 without figures), `not_modified`, or the code of the error",
    ),
    (
        "`outcome`",
        "`forecast_key_checks_total`",
        "`accepted`, `missing`, `invalid`, `pending`, `suspended`, `expired`, `revoked`, `unknown` (store unreachable)",
    ),
    ("`partner`", "`forecast_partner_requests_total`", "the partner's name; the busiest 50"),
    (
        "`reason`",
        "`forecast_cache_stores_failed_total`",
        "`full`, `read_only`, `away` (unreachable), `slow` (too many waited) or `other`",
    ),
    (
        "`reason`",
        "`forecast_near_cache_left_total`",
        "`size` (no room), `expired`, `retired` (of an old release), `purged`",
    ),
    ("`area`", "requests and answers", "`forecast`, `projects`, `bulk`; `none` for a request outside every area"),
    ("`status`", "requests", "the HTTP status"),
    ("`code`", "`forecast_connections_rejected_total`", "the [code of the error](../partners/error-codes.md)"),
    ("`release`", "answers and workers", f"the id of a release; `{OLDER}` for answers of much older releases"),
    ("`illustrative`", "`forecast_release`", "`true` if the figures are made up, else `false`"),
    ("`store`", "`forecast_store_…`", "`keys` or `cache`"),
    ("`node`", "`forecast_cache_node_…`", "the address of a node of the cache's cluster"),
    ("`kind`", "`forecast_events_total`", ", ".join(f"`{kind}`" for kind in EVENT_KINDS)),
    ("`within`", "`forecast_keys_expiring`", "`7d` or `30d`"),
    ("`task`", "`forecast_task_failures_total`", "the name of the background task, as in the log"),
    ("`pid`", "`forecast_worker_…`", "the process of a worker"),
)


def exported_metrics() -> list[Metric]:
    """Returns all, by name."""
    state = InstanceState(workers=(), wanted_workers=1, restarts=0, draining=False)
    return sorted(metric_families(state, Telemetry().snapshot()), key=lambda metric: metric.name)


def name_in_scrape(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def render_metrics_page() -> str:
    rows = [(f"`{name_in_scrape(one)}`", one.type, _labels(one), one.documentation) for one in exported_metrics()]
    explained = {label for label, _, _ in _LABEL_VALUES}
    assert explained == {label for _, _, labels, _ in rows for label in labels.split(", ") if label}
    return written_page(
        "service/base/telemetry.py and service/operators/",
        "Metrics",
        "This page lists, for operators, every metric at `/metrics` of the operators' listener and the values of its "
        "labels. [Watch an instance](../operate/watch.md) says which to look at first, and "
        "[alerts](../operate/alerts.md) are rules on them.",
        "The **hit rate** is the share of answers that came from a cache. Calculate it from "
        "`forecast_answers_total`, not from `forecast_cache_lookups_total`: "
        "[The hit rate](../operate/watch.md#the-hit-rate) has the query.",
        "## Values of labels",
        written_table(("label", "of", "values"), _LABEL_VALUES),
        "## All metrics",
        written_table(("metric", "type", "labels", "meaning"), rows),
    )


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric._labelnames)  # type: ignore[attr-defined]  # of each family


_NEEDS: Mapping[Needs, str] = {"drop": "", "release": "a release", "inbox": "the inbox", "publish": "a publish"}

# The groups of rules: title, introduction, rules.
_GROUPS: Sequence[tuple[str, str, Sequence[Rule]]] = (
    ("Files", "Rules on the files of a drop, and on the dates of its tables.", FILE_RULES),
    ("Columns", "Rules on the tables of a drop, and on their columns.", COLUMN_RULES),
    ("Rows", "Rules on single rows and values.", ROW_RULES),
    ("Places", f"Rules on locations and aliases. For each of them: {CHECK_SOURCE}.", PLACE_RULES),
    (
        "Figures",
        f"Rules on figures that are well-formed and may be wrong. For each of them: {CHECK_SOURCE}.",
        FIGURE_RULES,
    ),
    (
        "Changes from the current release",
        "Rules on columns, records and names, and on the build of a release.",
        DRIFT_RULES,
    ),
)


def render_rules() -> str:
    parts: list[str] = []
    for title, about, rules in _GROUPS:
        judged = [rule for rule in rules if isinstance(rule, PlausibilityRule)]
        rows = [(*_row(rule), rule.cause if rule in judged else rule.remedy or "") for rule in rules]
        head = ("rule", "severity", "limit", "accept", "needs", "what it checks")
        parts += [
            f"## {title}",
            about,
            written_table((*head, "likely cause" if judged else "what to do"), rows),
        ]
    return written_page(
        "warehouse/rules/",
        "Rules for drops",
        "Every rule that `forecast extracts check` and `publish` apply, with its default limit. A finding of severity "
        "error refuses the drop. `FORECAST_LIMITS` and `FORECAST_SEVERITIES` change limits and severities; `forecast "
        "extracts rules` lists those in force. The anchor of a rule is its name, such as `#total-drift`.",
        "A limit without % is a number of rows, ZIP codes or figures. *In a state* and *open* are factors: for a "
        "state, and for figures that may still be revised (demand, and years from two years ago on). The column "
        "*accept* shows whether [`--accept`](../publish/refused.md#accept-a-finding) publishes a drop in "
        "spite of an error:",
        "- **no**: an error must be corrected. A warning or a note needs no acceptance.\n"
        "- **yes**: it can be accepted for the drop as a whole.\n"
        "- **by state**: it can also be accepted for one state, as in `--accept total-drift:TX=9%`.",
        "The column *needs* shows what a rule needs beside the drop:",
        "- **a release**: the rule compares the drop with releases. `check --no-release` and a first publish leave it "
        "out.\n"
        "- **the inbox**: only a drop of the inbox can break the rule.\n"
        "- **a publish**: the finding is made after the checks, while a release is built or goes live. `check` does "
        "not report it, and it neither refuses nor holds a drop.",
        *parts,
    )


def _row(rule: Rule) -> tuple[str, ...]:
    accept = ("by state" if rule.by_state else "yes") if rule.override else "no"
    name = f'<span id="{rule.name}">`{rule.name}`</span>'
    return name, rule.severity, _limit(rule), accept, _NEEDS[rule.applies], rule.about


def _limit(rule: Rule) -> str:
    if rule.limit is None:
        return ""
    factors = ""
    if rule.state_factor > 1:
        factors += f", in a state ×{rule.state_factor}"
    if isinstance(rule, PlausibilityRule) and rule.open_factor > 1:
        factors += f", open ×{rule.open_factor}"
    return (f"{rule.limit:,.10g}" if rule.unit != "share" else f"{100 * rule.limit:.4g} %") + factors
