"""Rules on changes from the current release to a drop."""

from warehouse.rules.rule import CHECK_SOURCE, OPEN_FIGURES, Rule

# Rules that an old table also breaks.
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
        about="Years and housing figures that the current release has, and the drop has in no ZIP code.",
        remedy="check the export: an older drop, or one without its forecasts, lacks them",
        limit=0,
        unit="figures",
        override=True,
    ),
    Rule(
        name="zip-codes-gained",
        remedy=CHECK_SOURCE,
        about="New ZIP codes, as a share of those in the current release.",
        limit=0.02,
        override=True,
    ),
    Rule(
        name="coverage-lost",
        remedy=CHECK_SOURCE,
        about="Share of the ZIP codes with a figure that lost it, while others keep it; "
        f"twice as much for {OPEN_FIGURES}.",
        limit=0.02,
        override=True,
        explains=("total-drift", "slow-loss"),
    ),
    Rule(
        name="lost-figures",
        severity="warning",
        about="ZIP codes that lose a figure which others keep: their answers show null, or lack the year.",
        remedy=CHECK_SOURCE,
    ),
    Rule(
        name="coverage-gained",
        remedy=CHECK_SOURCE,
        about="ZIP codes that have a figure now, as a share of those that had it.",
        limit=0.1,
        override=True,
        explains=("total-drift",),
    ),
    Rule(
        name="total-drift",
        remedy=CHECK_SOURCE,
        about=f"Change of a national total, up or down, as a share of the old total; twice as much for {OPEN_FIGURES}.",
        limit=0.03,
        override=True,
        explains=("slow-drift", "series-drift"),
    ),
    Rule(
        name="rows-lost",
        remedy=CHECK_SOURCE,
        about="Share of rows lost by a table without figures and ids (aliases).",
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-lost",
        remedy=CHECK_SOURCE,
        about="Share of the current release's records (projects) that no query would find in the drop.",
        limit=0.2,
        override=True,
    ),
    Rule(
        name="records-gained",
        remedy=CHECK_SOURCE,
        about="New records (projects), as a share of those in the current release.",
        limit=0.25,
        override=True,
    ),
    Rule(
        name="leaping-record",
        remedy=CHECK_SOURCE,
        about="Records (projects) whose number of units grew or shrank more than fivefold.",
        limit=20,
        unit="rows",
        override=True,
    ),
    Rule(
        name="records-changed",
        about="Share of the records (projects) of both releases whose value in a column changed, if 20 or more did.",
        remedy=CHECK_SOURCE,
        limit=0.25,
        override=True,
    ),
    Rule(
        name="delivered-before",
        about="A table of the drop must not be the same as in an older release, if newer releases replaced it.",
        remedy="deliver the newest export; to go back to a release, use `forecast extracts rollback`",
        override=True,
        explains=("older-than-current", *_STALE),
    ),
    Rule(
        name="older-than-current",
        about="The date of a table (UPDATED_AT, MONTH_CODE) must not be earlier than in the releases.",
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
        about="How many ZIP codes were gained, were lost, or changed their figures since the current release.",
    ),
    Rule(
        name="barren-alias",
        severity="info",
        about="An alias is answered without figures if its ZIP codes have none, although their town has some.",
        remedy="if the name means the town, list it for the town's other ZIP codes too",
    ),
    Rule(
        name="not-warmed",
        severity="warning",
        about="A release that could not be warmed in the cache goes live anyway, but is slower at first.",
        remedy="check the cache: FORECAST_CACHE_URL",
    ),
    Rule(
        name="not-ready",
        severity="warning",
        about="With a store of releases: an instance that does not fetch a release in time serves the previous one.",
        remedy="look at /health/ready of these instances",
    ),
    Rule(
        name="warmed-elsewhere",
        severity="warning",
        about="If running instances use another cache than the warmed one, their first requests are slower.",
    ),
    Rule(
        name="warming-off",
        severity="info",
        about="With FORECAST_WARM=off, the first requests to running instances are slower.",
    ),
)
