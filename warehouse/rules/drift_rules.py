"""Rules on what may change from the current release to a drop."""

from warehouse.rules.rule import OPEN_FIGURES, Rule

# What an old table brings along.
_STALE = (
    "vanished-figure",
    "total-drift",
    "state-drift",
    "slow-drift",
    "slow-loss",
    "uniform-scale",
    "coverage-lost",
    "figures-moved",
    "records-changed",
)

DRIFT_RULES: tuple[Rule, ...] = (
    Rule(
        name="vanished-figure",
        about="Years and housing figures that the current release has, but no ZIP code of the drop.",
        remedy="check the export: an older drop, or one without its forecasts, lacks them",
        limit=0,
        unit="figures",
        override=True,
    ),
    Rule(
        name="zip-codes-gained",
        about="ZIP codes that the current release lacks, as a share of those it has.",
        limit=0.02,
        override=True,
    ),
    Rule(
        name="coverage-lost",
        about="Share of the ZIP codes with a figure that lost it, while others keep it; "
        f"twice as much of {OPEN_FIGURES}.",
        limit=0.02,
        override=True,
        explains=("total-drift", "slow-loss"),
    ),
    Rule(
        name="total-drift",
        about=f"Change of a national total, up or down, as a share of the old total; twice as much of {OPEN_FIGURES}.",
        limit=0.03,
        override=True,
        explains=("slow-drift", "series-drift"),
    ),
    Rule(
        name="rows-lost",
        about="Share of its rows that a table without figures and ids (aliases) lost.",
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-lost",
        about="Share of the current release's records (projects) that no query would find any more.",
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-changed",
        about="Share of the records (projects) of both releases whose value in a column changed, if 20 or more did.",
        remedy="check the export against its source",
        limit=0.25,
        override=True,
    ),
    Rule(
        name="delivered-before",
        about="A table of the drop must not be that of an older release, which newer ones replaced.",
        remedy="deliver the newest export; to go back to a release, use `forecast extracts rollback`",
        override=True,
        explains=("older-than-current", *_STALE),
    ),
    Rule(
        name="older-than-current",
        about="The date that a table carries (UPDATED_AT, MONTH_CODE) must not be before the one that releases knew.",
        remedy="deliver the newest export; to go back to a release, use `forecast extracts rollback`",
        override=True,
        explains=_STALE,
    ),
    Rule(
        name="unreadable-baseline",
        severity="warning",
        about="If the oldest release kept is damaged, slow drift is not measured.",
        remedy="remove it: `forecast extracts retire`",
    ),
    Rule(
        name="changed-figures",
        severity="info",
        about="How many ZIP codes were gained, were lost, or have other figures than in the current release.",
    ),
    Rule(
        name="barren-alias",
        severity="info",
        about="An alias of only ZIP codes without figures, in a town that has some, is answered without figures.",
        remedy="if the name means the town, list it for the town's other ZIP codes too",
    ),
    Rule(
        name="not-warmed",
        severity="warning",
        about="A release that could not be put into the cache in advance goes live anyway, but is slower at first.",
        remedy="check the cache: FORECAST_CACHE_URL",
    ),
    Rule(
        name="not-ready",
        severity="warning",
        about="With a store of releases: an instance that has not fetched a release in time serves the one before it.",
        remedy="look at /health/ready of these instances",
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
