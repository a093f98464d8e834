"""The words that sources write, and their meanings.

A word is folded before it is looked up: lower case, only letters and digits, one space between words (statement
`folded_text`). The statuses of projects are those of contract 14. Their words come from San Francisco's pipeline (PL:
planning department, BP: building permit), from New York's housing production, and from common usage in such registers.
"""

from collections.abc import Mapping
from typing import Final, Literal

ProjectStatus = Literal[
    "proposed", "approved", "permitted", "under_construction", "completed", "stalled", "withdrawn", "unknown"
]
UNKNOWN: Final = "unknown"

_WORDS: Mapping[ProjectStatus, tuple[str, ...]] = {
    "proposed": (
        "proposed", "planned", "planning", "in planning", "pre application", "application filed",
        "application submitted", "filed", "submitted", "pending", "pending review", "in review", "under review",
        "plan review", "pl filed", "bp filed",
    ),
    "approved": (
        "approved", "entitled", "entitlement approved", "plan approved", "planning approved",
        "pl approved", "bp approved",
    ),
    "permitted": (
        "permitted", "permit issued", "permits issued", "building permit issued", "issued",
        "bp issued", "bp reinstated",
    ),
    "under_construction": (
        "under construction", "construction", "in construction", "in progress", "construction started", "started",
        "broke ground",
    ),
    "completed": (
        "completed", "complete", "construction completed", "built", "finished", "finaled", "occupied",
        "certificate of occupancy",
    ),
    "stalled": ("stalled", "on hold", "hold", "paused", "suspended", "inactive", "delayed"),
    "withdrawn": (
        "withdrawn", "cancelled", "canceled", "abandoned", "denied", "disapproved", "rejected", "expired", "terminated",
    ),
    UNKNOWN: (UNKNOWN,),
}  # fmt: skip

PROJECT_STATUSES: Mapping[str, ProjectStatus] = {word: status for status, words in _WORDS.items() for word in words}
