"""Rules on aliases that are well-formed and may be wrong."""

from warehouse.rules.rule import PlaceChangeRule, PlaceRule, PlausibilityRule

ALIAS_RULES: tuple[PlausibilityRule, ...] = (
    PlaceRule(
        name="alias-of-other-state",
        among="new_aliases",
        limit=0.005,
        about="Share of the aliases that are in another state than their ZIP code.",
        finding="are in another state than their ZIP code",
        cause="aliases may be shifted among ZIP codes",
        explains=("aliases-gained", "aliases-lost", "primary-alias-differs"),
    ),
    PlaceRule(
        name="primary-alias-differs",
        among="new_aliases WHERE status = 'primary'",
        limit=0.05,
        about="Share of the primary aliases that are not the city of their ZIP code.",
        finding="are primary but not the city of their ZIP code",
        cause="aliases or cities may be shuffled, or from another month",
        explains=("alias-moved", "aliases-gained", "aliases-lost"),
    ),
    PlaceChangeRule(
        name="alias-moved",
        among="(SELECT DISTINCT state, city FROM old_aliases)",
        limit=0.0005,
        about="Share of the city names among the aliases that lead to other ZIP codes, and to none of the former ones "
        "that still exist.",
        finding="lead to other ZIP codes",
        cause="aliases may be shifted among ZIP codes",
        explains=("aliases-gained", "aliases-lost"),
    ),
    PlaceChangeRule(
        name="alias-status-changed",
        among="old_aliases",
        limit=0.05,
        about="Share of the aliases that have another status than before.",
        finding="have another status",
        cause="statuses may be exchanged, or one may have been filled in everywhere",
        explains=("primary-alias-differs",),
    ),
    PlaceChangeRule(
        name="aliases-gained",
        among="new_aliases",
        limit=0.2,
        about="Share of aliases that the current release lacks, among the ZIP codes that have aliases in it.",
        finding="are new",
        cause="a join may have multiplied aliases, or they may be shuffled",
        explains=("alias-of-other-state", "alias-moved"),
    ),
    PlaceChangeRule(
        name="aliases-lost",
        among="old_aliases",
        limit=0.1,
        state_factor=3,
        about="Share of the current release's aliases that the drop lacks.",
        finding="are gone",
        cause="aliases may be shuffled, or some may be missing",
        explains=("rows-lost", "aliases-gained"),
    ),
)
