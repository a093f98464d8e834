"""Rules on changes from the current release to a drop."""

from warehouse.rules.rule import CHECK_SOURCE, Rule

DRIFT_RULES: tuple[Rule, ...] = (
    Rule(
        name="vanished-figure",
        applies="release",
        of=("column", "coverage"),
        about="Years and housing figures that the current release has, and the drop has in no ZIP code.",
        remedy="check the export: an older drop, or one without its forecasts, lacks them",
        limit=0,
        unit="figures",
        override=True,
    ),
    Rule(
        name="lost-figures",
        applies="release",
        severity="warning",
        about="ZIP codes that lose a figure which others keep: their answers show null, or lack the year.",
        remedy=CHECK_SOURCE,
    ),
    Rule(
        name="records-lost",
        applies="release",
        of=("records",),
        remedy=CHECK_SOURCE,
        about="Share of the current release's records (projects) that no query would find in the drop; or all of a "
        "state.",
        limit=0.2,
        by_state=True,
        override=True,
    ),
    Rule(
        name="records-gained",
        applies="release",
        of=("records",),
        remedy=CHECK_SOURCE,
        about="New records (projects), as a share of those in the current release.",
        limit=0.25,
        override=True,
    ),
    Rule(
        name="suspect-records",
        applies="release",
        of=("records",),
        about="Records (projects) with a suspect change: values exchanged (days and months too), shuffled or filled "
        "in, a value that all its records lost, those of another id, or units that grew or shrank more than fivefold.",
        remedy=CHECK_SOURCE,
        limit=20,
        unit="rows",
        override=True,
    ),
    Rule(
        name="records-changed",
        applies="release",
        of=("records",),
        about="Share of the records (projects) of both releases whose value in a column changed, if 20 or more did.",
        remedy=CHECK_SOURCE,
        limit=0.25,
        override=True,
    ),
    Rule(
        name="unreadable-baseline",
        applies="release",
        severity="warning",
        about="If the oldest release kept is damaged, slow drift is not measured.",
        remedy="remove it: `forecast extracts retire`",
    ),
    Rule(
        name="changed-figures",
        applies="release",
        severity="info",
        about="How many ZIP codes were gained, were lost, or changed their figures since the current release.",
    ),
    Rule(
        name="barren-alias",
        applies="publish",
        severity="info",
        about="An alias is answered without figures if its ZIP codes have none, although their town has some.",
        remedy="if the name means the town, list it for the town's other ZIP codes too",
    ),
    Rule(
        name="not-warmed",
        applies="publish",
        severity="warning",
        about="A release that could not be warmed in the cache goes live anyway, but is slower at first.",
        remedy="check the cache: FORECAST_CACHE_URL",
    ),
    Rule(
        name="not-ready",
        applies="publish",
        severity="warning",
        about="With a store of releases: an instance that does not fetch a release in time serves the previous one.",
        remedy="look at /health/ready of these instances",
    ),
    Rule(
        name="warmed-elsewhere",
        applies="publish",
        severity="warning",
        about="If running instances use another cache than the warmed one, their first requests are slower.",
    ),
    Rule(
        name="warming-off",
        applies="publish",
        severity="info",
        about="With FORECAST_WARM=off, the first requests to running instances are slower.",
    ),
)
