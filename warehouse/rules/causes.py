"""Likely causes of values that do not fit their column, recognised by a pattern, each with its remedy."""

import msgspec

from config.text import BYTE_ORDER_MARK, INVISIBLE, MARK_READ_AS_LATIN_1
from warehouse.schema.column_types import TYPES, ColumnType
from warehouse.schema.tables import ColumnKind

_EVERY: tuple[ColumnKind, ...] = ("zip", "fips", "state", "text", "integer", "real", "date")
_CODES: tuple[ColumnKind, ...] = ("zip", "fips")
_NUMBERS: tuple[ColumnKind, ...] = ("integer", "real")
_DIGITS: tuple[ColumnKind, ...] = (*_CODES, *_NUMBERS)

_PAD = "cast to text and pad to five digits"
_PLAIN = "export plain digits, without signs for thousands, currencies or units"
_DATES = "export a DATE, or text such as 2026-10-05"
_DECIMAL = "export decimal degrees, with south and west negative"
_ROUND = "round in the source: the service does not round"
_INVISIBLE = "".join(rf"\x{{{first:04X}}}-\x{{{last:04X}}}" for first, last in INVISIBLE)
_SHIFTED = "check whether the columns of the export are shifted"


class Cause(msgspec.Struct, frozen=True):
    """One likely cause. Declared below, constant. The first whose pattern matches a value explains it."""

    name: str
    kinds: tuple[ColumnKind, ...]  # the kinds of columns that it applies to
    pattern: str  # regular expression (RE2) for the whole value, trimmed and cut to 60 characters
    remedy: str
    of_type: bool = False  # the pattern also matches the type behind the value (`text_present` in staging.py)


CAUSES: tuple[Cause, ...] = (
    Cause(
        "byte-order mark",
        _EVERY,
        f"({BYTE_ORDER_MARK}|{MARK_READ_AS_LATIN_1}).*",
        "export as UTF-8 without a byte-order mark",
    ),
    Cause(
        "an invisible character",
        _EVERY,
        rf".*[\x{{0000}}-\x{{0008}}{_INVISIBLE}].*",
        "remove invisible characters, such as zero-width spaces",
    ),
    Cause(
        "a placeholder for missing",
        _EVERY,
        r"(?i)(n/?a|n\.a\.?|#n/a|null|\(null\)|<null>|\\n|none|nil|nan|-+|–|—|\.+|\?+|\*+|x{1,5}|tbd|unknown|missing|"
        r"undefined|suppressed|not available|#(value|ref|div/0|name|num)[!?])",
        "leave missing values empty (NULL)",
    ),
    Cause("infinity", _DIGITS, r"(?i)[+-]?inf(inity)?", "leave it empty: infinity often comes from a division by zero"),
    Cause("text that is not UTF-8", _EVERY, r".*\\x[0-9A-F]{2}.*", "export text as UTF-8"),
    Cause("true or false", _EVERY, r"(?i)true|false", _SHIFTED),
    Cause(
        "several values in one",
        _EVERY,
        r"\[.*|[0-9]{3,5}( ?[,;|/&] ?| )[0-9]{5}([,;|/& ].*)?|[0-9]{4,5}( ?[;|/&] ?|, )[0-9]{3,5}([,;|/& ].*)?|"
        r"[+-]?[0-9.]+ ?[;|] ?[+-]?[0-9.]+|[+-]?[0-9]+\.[0-9]+[, ]+[+-]?[0-9]+\.[0-9]+|"
        r"[A-Za-z]{2}( ?[,;|/&] ?[A-Za-z]{2})+",
        "export one value in each row",
    ),
    Cause("a nested value", _EVERY, r"\{.*", "export the field inside as a column of its own"),
    Cause(
        "the Census Bureau's code for a missing estimate",
        _NUMBERS,
        r"-(2{9}|3{9}|5{9}|6{9}|8{9}|9{9})(\.0+)?",
        "leave missing estimates empty (NULL)",
    ),
    Cause("quotation marks", _EVERY, r"""(="?|["'`“‘]).*""", "export the value without quotation marks"),
    Cause("ZIP+4", ("zip",), r"[0-9]{5}[ -]?[0-9]{4}", "export only the first five digits"),
    Cause("was a float", _CODES, r"[0-9]{1,5}\.0+", f"cast to integer, then {_PAD}"),
    Cause("was a float", ("text",), r"[0-9]+\.0+", "cast to integer, then to text"),
    Cause("leading zero lost", ("zip",), r"[0-9]{3,4}", _PAD),
    Cause("leading zero lost", ("fips",), r"[0-9]{4}", _PAD),
    Cause("a county code without its state", ("fips",), r"[0-9]{1,3}", "put the state's two digits in front"),
    Cause(
        "currency or per cent sign", _DIGITS, r".*[0-9].*[$€£¥%]|[$€£¥].*[0-9].*|.*[0-9] ?(?i)(usd|eur|percent)", _PLAIN
    ),
    Cause("scientific notation", _CODES, r"(?i)[0-9]+([.,][0-9]+)?e[+-]?[0-9]+", _PAD),
    Cause(
        "too large for a number",
        ("integer",),
        r"(?i)[+-]?([0-9]{19,}(\.0+)?|[0-9.]+e\+?(1[6-9]|[2-9][0-9]|[0-9]{3,}))",
        _SHIFTED,
    ),
    Cause("a fraction", ("integer",), r"(?i)[+-]?[0-9.]+e-[0-9]+", _ROUND),
    Cause("scientific notation", _NUMBERS, r"(?i)[+-]?[0-9]*([.,][0-9]+)?e[+-]?[0-9]+", "export plain digits"),
    Cause(
        "thousands separator",
        _DIGITS,
        r"[+-]?[0-9]{1,3}([,'’ _\x{A0}\x{202F}][0-9]{3})+(\.[0-9]+)?|[+-]?[0-9]{1,3}(\.[0-9]{3}){2,}",
        _PLAIN,
    ),
    Cause("decimal comma", _NUMBERS, r"[+-]?[0-9.]*,[0-9]+", "export a decimal point, or a number instead of text"),
    Cause("a negative number", _CODES, r"-[0-9]+(\.0+)?", _SHIFTED),
    Cause("a fraction", _CODES, r"[+-]?[0-9]*\.[0-9]+", _SHIFTED),
    Cause("a fraction", ("integer",), r"[+-]?[0-9]*\.[0-9]+", _ROUND),
    Cause("a year of two digits", ("integer",), r"[0-9]{2}", "export years of four digits"),
    Cause("negative in parentheses", _NUMBERS, r"\([0-9.,]+\)|[0-9.,]+-", "write a minus sign in front"),
    Cause("a range", ("integer",), r"[0-9,]+ ?(-|–|to) ?[0-9,]+", "export one figure"),
    Cause("an estimate", ("integer",), r"[<>~≈≤≥]=? ?[0-9].*|[0-9,]+ ?\+", "export the figure itself"),
    Cause("an abbreviated number", ("integer",), r"(?i)[0-9.,]+ ?(k|m|bn|thousand|million)", _PLAIN),
    Cause("a footnote mark", ("integer",), r"(?i)[0-9,]+ ?([*†‡]+|\([a-z0-9]\)|[a-z])", "remove footnote marks"),
    Cause("degrees and minutes", ("real",), r"(?i).*[0-9].*[°'′\"″].*|[0-9. ]+[nsew]|[nsew] ?[0-9. ]+", _DECIMAL),
    Cause("a geometry", ("real",), r"(?i)(srid=.*)?(multi)?point.*", "export latitude and longitude as two numbers"),
    Cause("a date", _DIGITS, r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4}", _SHIFTED),
    Cause("too many digits", _CODES, r"[0-9]{6,}(\.0+)?", _SHIFTED),
    Cause("too few digits", ("zip",), r"[0-9]{1,2}", _SHIFTED),
    Cause(
        "a letter in place of a digit", _CODES, r"[0-9OoIlSBZ]{5}", "replace letters by digits: O by 0, l and I by 1"
    ),
    Cause(
        "digits of another script",
        _DIGITS,
        r"[\p{Nd}.,+-]*[\x{0660}-\x{10FFFF}][\p{Nd}.,+-]*",
        "export the digits 0 to 9",
    ),
    Cause(
        "a negative number",
        ("integer",),
        r"-[0-9]+(\.0+)?",
        "leave unknown figures empty (NULL); check whether a column of 16 or 32 bits is too small",
    ),
    Cause("a state's FIPS number", ("state",), r"[0-9]{1,2}(\.0)?", "export the postal code of two letters"),
    Cause("country and state", ("state",), r"(?i)usa?[-_ .]+[a-z]{2}", "leave the country out"),
    Cause("an abbreviation with periods", ("state",), r"([A-Za-z]\. ?)+", "export the postal code of two letters"),
    Cause(
        "a state's full name", ("state",), r"\p{L}{4,}|\p{L}+([ .]+\p{L}+)+", "export the postal code of two letters"
    ),
    Cause("another abbreviation", ("state",), r"\p{L}{3}\.?|\p{L}", "export the postal code of two letters"),
    Cause("another notation of dates", ("date",), r"[0-9]{1,2}[/. -][0-9A-Za-z]+[/. -][0-9]{2,4}.*|[0-9]{8}", _DATES),
    Cause("another notation of dates", ("date",), r"(?i)[a-z]{3,9}\.? [0-9]{1,2},? [0-9]{4}", _DATES),
    Cause("a year alone", ("date",), r"(?i)[0-9]{4}|[0-9]{4}-[0-9]{2}|q[1-4].*", _DATES),
    Cause("a spreadsheet's day number", ("date",), r"[0-9]{5}(\.[0-9]+)?", _DATES),
    Cause("seconds or milliseconds since 1970", ("date",), r"[0-9]{9,19}", _DATES),
    Cause("an impossible day", ("date",), r"[0-9]+-[0-9]{2}-[0-9]{2}.*", "correct the date in the source"),
    Cause("too long", ("text",), r".{60}", "check whether several columns were joined, or leave the text out"),
    Cause("words", (*_DIGITS, "date"), r".*\p{L}{3,}.*", _SHIFTED),
)


def causes_of(kind: ColumnKind) -> tuple[Cause, ...]:
    """Returns the causes for a kind of column, in the order in which they are tried.

    The types that cannot be read as this kind are causes, too: with a remedy of their own, they come first.
    """
    types = [one for one in TYPES if kind not in one.conversions]
    first, last = ([_type_cause(kind, one) for one in types if bool(one.remedy) == own] for own in (True, False))
    return (*first, *(cause for cause in CAUSES if kind in cause.kinds), *last)


def _type_cause(kind: ColumnKind, held: ColumnType) -> Cause:
    return Cause(f"the type {held.name}", (kind,), f".*::{held.name}", held.remedy_for(kind), of_type=True)


def cause_named(kind: ColumnKind, name: str) -> Cause:
    return next(cause for cause in causes_of(kind) if cause.name == name)
