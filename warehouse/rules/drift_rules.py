"""Rules on what changes from the current release to a drop."""

from warehouse.rules.rule import Rule

_IF_MEANT = "if it is meant, publish with --accept {rule} --reason TEXT"

DRIFT_RULES: tuple[Rule, ...] = (
    Rule(
        name="vanished-figure",
        severity="warning",
        about="A year, or a housing figure, that the current release has and the drop has for no ZIP code.",
        remedy="check the export, if it was not left out on purpose",
    ),
    Rule(
        name="zip-codes-lost",
        severity="error",
        about="Share of the current release's ZIP codes that the drop lacks.",
        remedy=_IF_MEANT.format(rule="zip-codes-lost"),
        limit=0.02,
        override=True,
    ),
    Rule(
        name="zip-codes-gained",
        severity="error",
        about="ZIP codes that the current release lacks, as a share of those it has.",
        remedy=_IF_MEANT.format(rule="zip-codes-gained"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="coverage-lost",
        severity="error",
        about="Share of the ZIP codes that had a figure and lost it, while others keep it.",
        remedy=_IF_MEANT.format(rule="coverage-lost"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="total-drift",
        severity="error",
        about="Change of a national total, up or down, as a share of what it was.",
        remedy=_IF_MEANT.format(rule="total-drift"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="rows-lost",
        severity="error",
        about="Share of the rows that a table without figures and ids (aliases) lost.",
        remedy=_IF_MEANT.format(rule="rows-lost"),
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-lost",
        severity="error",
        about="Share of the current release's records (projects) that nothing would find any more.",
        remedy=_IF_MEANT.format(rule="records-lost"),
        limit=0.2,
        override=True,
    ),
    Rule(
        name="changed-figures",
        severity="info",
        about="How many ZIP codes came, went or have other figures than in the current release.",
    ),
    Rule(
        name="not-warmed",
        severity="warning",
        about="A release that could not be put into the cache beforehand goes live all the same, more slowly at first.",
        remedy="look at the cache: FORECAST_CACHE_URL",
    ),
    Rule(
        name="warmed-elsewhere",
        severity="warning",
        about="The cache that is warmed must be that of the running instances, or their first requests are slower.",
    ),
    Rule(
        name="warming-off",
        severity="info",
        about="With FORECAST_WARM=off the first requests to running instances are slower.",
    ),
)
