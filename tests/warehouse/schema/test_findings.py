"""How findings are put in order, and counted."""

from warehouse.schema.findings import Finding, Severity, make_report


def found(rule: str, severity: Severity = "error", follows: str | None = None) -> Finding:
    return Finding(severity=severity, rule=rule, message=f"{rule} is broken", follows=follows)


def test_what_follows_from_a_finding_stands_below_it() -> None:
    """Below the last finding of its cause, though worse ones come after."""
    report = make_report(
        [
            found("orphan-rows", "warning", follows="unreadable-value"),
            found("missing-table", follows="truncated-file"),
            found("unreadable-value"),
            found("unreadable-value"),
            found("truncated-file"),
            found("foreign-file", "warning"),
        ]
    )
    assert [one.rule for one in report.findings] == [
        "unreadable-value",
        "unreadable-value",
        "orphan-rows",
        "truncated-file",
        "missing-table",
        "foreign-file",
    ]


def test_a_follow_on_whose_cause_is_not_there_stands_for_itself() -> None:
    (alone,) = make_report([found("orphan-rows", "warning", follows="unreadable-value")]).findings
    assert alone.follows is None


def test_follow_ons_are_counted_apart_from_what_must_be_corrected() -> None:
    report = make_report([found("unreadable-value"), found("missing-table", follows="unreadable-value")])
    assert report.summary() == "1 error, 1 consequence"
    assert report.refused
    assert report.count("error") == 2, "a machine counts them all"
