"""Rules on what may change from the current release to a drop."""

from warehouse.rules.rule import Rule

_IF_INTENDED = "if this is intended, publish with --accept {rule} --reason TEXT"

DRIFT_RULES: tuple[Rule, ...] = (
    Rule(
        name="vanished-figure",
        severity="warning",
        about="A year or a housing figure that the current release has, but no ZIP code of the drop.",
        remedy="check the export, unless it was left out on purpose",
    ),
    Rule(
        name="zip-codes-lost",
        severity="error",
        about="Share of the current release's ZIP codes that the drop lacks.",
        remedy=_IF_INTENDED.format(rule="zip-codes-lost"),
        limit=0.02,
        override=True,
    ),
    Rule(
        name="zip-codes-gained",
        severity="error",
        about="ZIP codes that the current release lacks, as a share of those it has.",
        remedy=_IF_INTENDED.format(rule="zip-codes-gained"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="coverage-lost",
        severity="error",
        about="Share of the ZIP codes with a figure that lost it, while others keep it.",
        remedy=_IF_INTENDED.format(rule="coverage-lost"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="total-drift",
        severity="error",
        about="Change of a national total, up or down, as a share of the old total.",
        remedy=_IF_INTENDED.format(rule="total-drift"),
        limit=0.05,
        override=True,
    ),
    Rule(
        name="rows-lost",
        severity="error",
        about="Share of its rows that a table without figures and ids (aliases) lost.",
        remedy=_IF_INTENDED.format(rule="rows-lost"),
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-lost",
        severity="error",
        about="Share of the current release's records (projects) that no query would find any more.",
        remedy=_IF_INTENDED.format(rule="records-lost"),
        limit=0.2,
        override=True,
    ),
    Rule(
        name="changed-figures",
        severity="info",
        about="How many ZIP codes were gained, were lost, or have other figures than in the current release.",
    ),
    Rule(
        name="not-warmed",
        severity="warning",
        about="A release that could not be put into the cache in advance goes live anyway, but is slower at first.",
        remedy="check the cache: FORECAST_CACHE_URL",
    ),
    Rule(
        name="warmed-elsewhere",
        severity="warning",
        about="If the warmed cache is not the one that running instances use, their first requests are slower.",
    ),
    Rule(
        name="warming-off",
        severity="info",
        about="With FORECAST_WARM=off, the first requests to running instances are slower.",
    ),
)
