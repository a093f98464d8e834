"""Drops that are well-formed and wrong: each is the made-up country with one mistake, and what must be said of it."""

import itertools
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tests.support.country import COUNTED, DEMAND, FORECAST, HOMES, PEOPLE, Country, census
from tests.warehouse.altering import (
    COUNTY,
    FIGURES,
    POINT,
    Alter,
    added,
    backwards,
    columns_late,
    copy,
    each,
    edit,
    edit_aliases,
    exchange,
    fill,
    lose,
    noise,
    scale,
    shift,
    shuffle,
    without,
    without_column,
)


class Implausible(msgspec.Struct, frozen=True):
    """`alter` makes one mistake; `says` is part of what the finding of `rule`, which is its cause, says."""

    kind: str
    rule: str
    says: str
    alter: Alter
    first: bool = False  # there is no release to compare it with


def _mistakes(*rows: tuple[str, str, str, Alter], first: bool = False) -> tuple[Implausible, ...]:
    return tuple(Implausible(*row, first) for row in rows)


def last_month(country: Country) -> None:
    """The drop of September, which October replaced: a part of the figures was revised since, two places are new."""
    noise(COUNTED, 0.004, share=0.3, mean=0.999)(country)
    noise((*FORECAST, DEMAND), 0.01, mean=0.998)(country)
    country.keep([row for row in range(len(country)) if row not in (10, 400)])
    country.updated_at, country.month_code = "2026-09-04", 9


def _earlier(country: Country) -> None:
    """An export of a few days before, which was not published."""
    noise(FIGURES, 0.001)(country)
    country.updated_at, country.month_code = "2026-10-01", 9


def _of_last_month(*names: str) -> Alter:
    def alter(country: Country) -> None:
        old = country.copy()
        last_month(old)
        by_zip_code = {zip_code: row for row, zip_code in enumerate(old.places["zip_code"])}
        rows = [by_zip_code.get(zip_code) for zip_code in country.places["zip_code"]]
        for name in names:
            country.figures[name] = [None if row is None else old.figures[name][row] for row in rows]

    return alter


def _aliases_like(states: tuple[str, str]) -> Alter:
    """The ZIP codes of the aliases of two states are exchanged."""

    def alter(country: Country) -> None:
        one, other = ([country.places["zip_code"][row] for row in country.rows_in(state)] for state in states)
        pairs = list(zip(one, other, strict=False))
        swapped = dict(pairs) | {to: source for source, to in pairs}
        country.aliases["zip_code"] = [swapped.get(zip_code, zip_code) for zip_code in country.aliases["zip_code"]]

    return alter


def _aliases_shifted(country: Country) -> None:
    """Each ZIP code has the names of the next one."""
    after = dict(zip(country.places["zip_code"], country.places["zip_code"][1:], strict=False))
    country.keep_aliases(after.__contains__)
    country.aliases["zip_code"] = [after[zip_code] for zip_code in country.aliases["zip_code"]]


def _aliases_shuffled(country: Country) -> None:
    shuffled = country.copy()
    shuffle("city_name")(shuffled)
    city = dict(zip(country.places["zip_code"], shuffled.places["city_name"], strict=True))
    names, status = country.aliases["city_name"], country.aliases["usps_status"]
    for at, zip_code in enumerate(country.aliases["zip_code"]):
        names[at] = city[zip_code] if status[at] == "primary" else names[at]


def _aliases_multiplied(country: Country) -> None:
    """Each ZIP code has the names of the next one of its state as well, as a join by state may leave it."""
    following = dict(zip(country.places["zip_code"], country.places["zip_code"][1:], strict=False))
    columns = country.aliases.values()
    for zip_code, state, city, status in list(zip(*columns, strict=True)):
        if status != "primary" and zip_code in following:
            for values, value in zip(columns, (following[zip_code], state, f"{city} Place", status), strict=True):
                values.append(value)


def _homes_of_a_county_gone(country: Country) -> None:
    for row, county in enumerate(country.places["county_fips_code"]):
        if county == "48005":
            for name in (*HOMES, DEMAND):
                country.figures[name][row] = None


def _states_exchanged(country: Country) -> None:
    swapped = {"TX": "CA", "CA": "TX"}
    edit("state_code", lambda state: swapped.get(state, state))(country)


def _border_moved(country: Country) -> None:
    """ZIP codes of Connecticut are in New York, which shares their first digits."""
    states = country.places["state_code"]
    states[:] = [
        "NY" if one[:3] == "063" else state for one, state in zip(country.places["zip_code"], states, strict=True)
    ]


def _primary_only(country: Country) -> None:
    rows = [at for at, status in enumerate(country.aliases["usps_status"]) if status == "primary"]
    country.aliases = {name: [values[at] for at in rows] for name, values in country.aliases.items()}


def _total_everywhere(country: Country) -> None:
    total = sum(country.figures["tot_census_pop_2020"][row] or 0 for row in country.rows_in("NM"))
    fill("tot_census_pop_2020", total, "NM")(country)


def _added_up(country: Country) -> None:
    """The homes of each year are added to those of the years before."""
    for before, name in itertools.pairwise(HOMES):
        pairs = zip(country.figures[before], country.figures[name], strict=True)
        country.figures[name] = [None if None in (one, other) else one + other for one, other in pairs]


def _new_homes(country: Country) -> None:
    """The homes that a year added instead of all."""
    old = country.copy().figures
    for before, name in itertools.pairwise(HOMES):
        pairs = zip(old[before], old[name], strict=True)
        country.figures[name] = [None if None in (one, other) else abs(other - one) for one, other in pairs]


def _totals_of_counties(country: Country) -> None:
    """Each ZIP code has the people of its county, as a join by county leaves them."""
    counties = country.places["county_fips_code"]
    for name in PEOPLE:
        column, totals = country.figures[name], dict.fromkeys(counties, 0)
        for county, figure in zip(counties, column, strict=True):
            totals[county] += figure or 0
        column[:] = [figure and totals[county] for county, figure in zip(counties, column, strict=True)]


def _filled_from_above(country: Country) -> None:
    """Unknown figures are those of the row before, as a program fills gaps."""
    for column in country.figures.values():
        for row in range(1, len(column)):
            column[row] = column[row - 1] if column[row] is None else column[row]


def _ends_early(country: Country) -> None:
    """The year of 2020 ends at the first ZIP code with an 8."""
    for row, zip_code in enumerate(country.places["zip_code"]):
        if zip_code >= "8":
            country.figures[census(2020)][row] = None


def _padded_behind(country: Country) -> None:
    """ZIP codes that lost their leading zero were padded at the wrong end."""
    for table in (country.places, country.aliases):
        table["zip_code"] = [
            f"{zip_code[1:]}0" if state in ("CT", "VT") else zip_code
            for zip_code, state in zip(table["zip_code"], table["state_code"], strict=True)
        ]


def _one_zip_code_for_each_name(*states: str) -> Alter:
    """A name leads only to the first ZIP code of its city, in some states or everywhere."""

    def alter(country: Country) -> None:
        named = list(zip(country.aliases["state_code"], country.aliases["city_name"], strict=True))
        rows = [row for row, name in enumerate(named) if named.index(name) == row or (states and name[0] not in states)]
        country.aliases = {name: [values[row] for row in rows] for name, values in country.aliases.items()}

    return alter


def _counties_with_their_state(country: Country) -> None:
    country.places["county_name"] = [
        name and f"{name}, {state}"
        for name, state in zip(country.places["county_name"], country.places["state_code"], strict=True)
    ]


def _aliases_with_their_state(country: Country) -> None:
    names, states = country.aliases["city_name"], country.aliases["state_code"]
    names[:] = [f"{name} (NM)" if state == "NM" else name for name, state in zip(names, states, strict=True)]


def _of_projects(name: str, change: Callable[[Any], Any]) -> Alter:
    def alter(country: Country) -> None:
        country.projects[name] = [change(value) for value in country.projects[name]]

    return alter


def _half_of_the_projects(country: Country) -> None:
    country.projects = {name: values[: len(values) // 2] for name, values in country.projects.items()}


def _demand_of_a_county_as_0(country: Country) -> None:
    demand = country.figures[DEMAND]
    for row, county in enumerate(country.places["county_fips_code"]):
        demand[row] = 0 if county == "06003" and demand[row] is not None else demand[row]


def _joined_twice(country: Country) -> None:
    """Each figure counts once for every row that a join found."""
    rng = random.Random(8)
    for row in range(len(country)):
        times = rng.choice((1, 1, 2, 3))
        for name in PEOPLE:
            if country.figures[name][row] is not None:
                country.figures[name][row] *= times


def _nothing_if_small(figure: int) -> int:
    return 0 if figure < 2_000 else figure


def _mojibake(name: str) -> str:
    return f"{name[:3]}ñ{name[3:]}".encode().decode("latin-1")


def _with_their_state(country: Country) -> None:
    places = country.places
    for row in country.rows_in("VT"):
        places["city_name"][row] = f"{places['city_name'][row]}, VT"


def _a_total(country: Country) -> None:
    """The last ZIP code of the country becomes the row of a total."""
    country.places["zip_code"][-1] = "00000"
    country.places["city_name"][-1] = "Total"


def _filled(names: tuple[str, ...]) -> Alter:
    """Unknown figures are 0, as an outer join may leave them."""

    def alter(country: Country) -> None:
        for name in names:
            country.figures[name] = [0 if figure is None else figure for figure in country.figures[name]]

    return alter


def _in_a_few(name: str) -> Alter:
    """A figure of an earlier year, which three ZIP codes have."""

    def alter(country: Country) -> None:
        known = [row for row, figure in enumerate(country.figures[COUNTED[0]]) if figure is not None][:3]
        country.figures[name] = [
            country.figures[COUNTED[0]][row] if row in known else None for row in range(len(country))
        ]

    return alter


def _half_the_regions(country: Country) -> None:
    """Some ZIP codes of Connecticut are in a planning region, others still in the county that it replaced."""
    for row in country.rows_in("CT")[:5]:
        country.places["county_fips_code"][row] = "09110"
        country.places["county_name"][row] = "Capitol Planning Region"


def _one_row(name: str, value: str, state: str) -> Alter:
    def alter(country: Country) -> None:
        country.places[name][country.rows_in(state)[3]] = value

    return alter


def _county_under_another_code(country: Country) -> None:
    country.places["county_fips_code"][country.rows_in("TX")[3]] = "48497"


def _an_alias_moved(country: Country) -> None:
    """The first further name in Texas leads to the ZIP codes of other towns."""
    aliases = country.aliases
    named = list(zip(aliases["state_code"], aliases["city_name"], strict=True))
    name = next(
        one for one, status in zip(named, aliases["usps_status"], strict=True) if one[0] == "TX" and status != "primary"
    )
    others = (country.places["zip_code"][row] for row in reversed(country.rows_in("TX")))
    for at, one in enumerate(named):
        if one == name:
            aliases["zip_code"][at] = next(others)


def _middles_of_counties(country: Country) -> None:
    points: dict[str, tuple[float, float]] = {}
    for row, county in enumerate(country.places["county_fips_code"]):
        if county is not None:
            point = points.setdefault(county, tuple(country.places[name][row] for name in POINT))
            for name, degrees in zip(POINT, point, strict=True):
                country.places[name][row] = degrees


def _rows_of_county(country: Country, county: str) -> list[int]:
    return [row for row, code in enumerate(country.places["county_fips_code"]) if code == county]


def _a_county_shifted(country: Country) -> None:
    """Each ZIP code of a county has the homes of the one before."""
    rows = [row for row in _rows_of_county(country, "48005") if country.figures[DEMAND][row] is not None]
    for name in (*HOMES, DEMAND):
        figures = country.figures[name]
        for row, figure in zip(rows, [figures[rows[-1]], *(figures[row] for row in rows[:-1])], strict=True):
            figures[row] = figure


def _a_county_in_tens(country: Country) -> None:
    figures = country.figures[census(2020)]
    for row in _rows_of_county(country, "06005"):
        figures[row] = figures[row] and round(figures[row] / 10)


def _of_county(county: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Alter:
    """Changes the figures of each ZIP code of a county."""

    def alter(country: Country) -> None:
        for row in _rows_of_county(country, county):
            for name, figure in change({name: values[row] for name, values in country.figures.items()}).items():
                country.figures[name][row] = figure

    return alter


def _against_the_trend(country: Country) -> None:
    last = country.figures[COUNTED[-1]]
    for name in FORECAST:
        figures = country.figures[name]
        for row in country.rows_in("CA"):
            figures[row] = figures[row] and round(last[row] * last[row] / figures[row])


def _one_total_for_a_county(country: Country) -> None:
    for row in _rows_of_county(country, "39003"):
        country.figures[census(2018)][row] = 41_234


def _two_counties_exchanged(country: Country) -> None:
    one, other = (_rows_of_county(country, code) for code in ("48001", "48003"))
    for name in COUNTY:
        values = country.places[name]
        first, second = values[one[0]], values[other[0]]
        for rows, value in ((one, second), (other, first)):
            for row in rows:
                values[row] = value


def _demand_that_shrinks(country: Country) -> None:
    """The rate of growth was subtracted."""
    for row in country.rows_in("TX"):
        if country.figures[DEMAND][row]:
            homes = country.figures[HOMES[3]][row]
            country.figures[DEMAND][row] = round(homes * homes / country.figures[DEMAND][row] * 0.97)


def _without_the_largest(country: Country) -> None:
    people = country.figures[census(2023)]
    largest = sorted(range(len(country)), key=lambda row: people[row] or 0)[-2:]
    country.keep([row for row in range(len(country)) if row not in largest])


def _at_a_namesake(country: Country) -> None:
    """One ZIP code has the point of a town in another state."""
    row, other = country.rows_in("OH")[7], country.rows_in("TX")[7]
    for name in POINT:
        country.places[name][row] = country.places[name][other]


def _minutes(degrees: float) -> float:
    return math.trunc(degrees) + math.fmod(degrees, 1) * 0.6


def _next_year(country: Country) -> None:
    later = datetime.now(UTC) + timedelta(days=370)
    country.updated_at, country.month_code = f"{later:%Y-%m-%d}", later.month


def _interpolated(country: Country) -> None:
    years = zip(country.figures[census(2018)], country.figures[census(2020)], strict=True)
    country.figures[census(2019)] = [None if one is None else round((one + other) / 2) for one, other in years]


def _of_the_first_projects(number: int, **values: Any) -> Alter:
    def alter(country: Country) -> None:
        for name, value in values.items():
            country.projects[name][:number] = [value] * number

    return alter


def _joined_by_name(country: Country) -> None:
    """The independent city of Texas is in the county of its name."""
    like = _rows_of_county(country, "48001")[0]
    for row in _rows_of_county(country, "48510"):
        for name in COUNTY:
            country.places[name][row] = country.places[name][like]


def _without_boxes(country: Country) -> None:
    country.keep([row for row, people in enumerate(country.figures[COUNTED[0]]) if people is not None])


def _new_month(**dates: Any) -> Alter:
    def alter(country: Country) -> None:
        noise(FIGURES, 0.003)(country)
        for name, value in dates.items():
            setattr(country, name, value)

    return alter


def _from_another_start(country: Country) -> None:
    """Forecasts grow from the count of 2015."""
    figures = country.figures
    for row in country.rows_in("CA", "TX"):
        for name in FORECAST:
            if figures[name][row]:
                figures[name][row] = round(figures[name][row] * figures[census(2015)][row] / figures[COUNTED[-1]][row])


def _first_county(country: Country) -> list[int]:
    """Makes one county of thirty ZIP codes of a state."""
    rows = country.rows_in("CA")[:30]
    for at, row in enumerate(rows):
        place = ("First County", "06001", 34 + at / 100, -117 - at / 100)
        for name, value in zip((*COUNTY, *POINT), place, strict=True):
            country.places[name][row] = value
    return rows


def _another_start_in_a_county(country: Country) -> None:
    """Forecasts of ten of thirty ZIP codes of a county grow from fewer people."""
    for row in _first_county(country)[::3]:
        for name in FORECAST:
            country.figures[name][row] = country.figures[name][row] and country.figures[name][row] * 8 // 10


def _a_county_sorted_apart(country: Country) -> None:
    """The latest count and the forecasts of a county are in another order than those before."""
    rows = _first_county(country)
    for name in (COUNTED[-1], *FORECAST):
        column = country.figures[name]
        for row, value in zip(rows, [column[row] for row in reversed(rows)], strict=True):
            column[row] = value


def _carried_forward_in_a_county(country: Country) -> None:
    """The latest count of a county is that of two years before."""
    for row in _first_county(country):
        country.figures[COUNTED[-1]][row] = country.figures[COUNTED[-3]][row]


def _other_names_cut(country: Country) -> None:
    pairs = zip(country.aliases["city_name"], country.aliases["usps_status"], strict=True)
    country.aliases["city_name"] = [name if status == "primary" else name[:12] for name, status in pairs]


def _bound_missing(country: Country) -> None:
    """Forecasts grow or shrink by at most 1% a year, but in one state."""
    for row, state in enumerate(country.places["state_code"]):
        first, last = country.figures[FORECAST[0]][row], country.figures[FORECAST[-1]][row]
        growth = (last / first) ** (1 / (len(FORECAST) - 1)) if first else 1
        is_bounded = state != "TX" or row % 3
        growth = max(0.99, min(1.01, growth)) if is_bounded else growth**3
        for years, name in enumerate(FORECAST):
            country.figures[name][row] = first and round(first * growth**years)


def _growth_applied_twice(country: Country) -> None:
    for row in country.rows_in("TX"):
        last = country.figures[COUNTED[-1]][row]
        for name in FORECAST:
            column = country.figures[name]
            column[row] = last and column[row] and round(column[row] ** 2 / last)


def _growth_cut(country: Country) -> None:
    """A growth in per cent was taken for a share, and cut at 3%."""
    figures = country.figures
    for row, last in enumerate(figures[COUNTED[-1]]):
        rate = -0.03 if row % 4 == 0 else 0.03
        for years, name in enumerate(FORECAST, start=1):
            figures[name][row] = last and round(last * (1 + rate) ** years)


def _stays_in_a_state(country: Country) -> None:
    old = list(country.figures[DEMAND])
    noise(DEMAND, 0.01)(country)
    for row in country.rows_in("OH"):
        country.figures[DEMAND][row] = old[row]


def _parts_of_zip_codes(country: Country) -> None:
    """Of every ninth ZIP code, only the part in one county is left."""
    for name in HOMES:
        column = country.figures[name]
        for row in range(0, len(column), 9):
            column[row] = column[row] and column[row] * (2 + row % 3) // 10


def _filled_places(country: Country) -> None:
    """Rows without a county have the place of the row before."""
    rows = sorted(range(len(country)), key=country.places["zip_code"].__getitem__)
    for before, row in itertools.pairwise(rows):
        for name in (*COUNTY, *POINT):
            if country.places[name][row] is None:
                country.places[name][row] = country.places[name][before]


def _names_of_a_county(country: Country) -> None:
    for row in _rows_of_county(country, "39003"):
        for at in range(80):
            place = (
                country.places["zip_code"][row],
                f"Village {chr(65 + at // 10)}{chr(65 + at % 10)}",
                "OH",
                "acceptable",
            )
            for name, value in zip(("zip_code", "city_name", "state_code", "usps_status"), place, strict=True):
                country.aliases[name].append(value)


def _projects_exchange_zip_codes(country: Country) -> None:
    """As after a sort; of three projects of each of sixteen ZIP codes."""
    values = country.projects["zip_code"]
    values[:48] = [values[at + 3 if at % 6 < 3 else at - 3] for at in range(48)]


def _projects_at_three_points(country: Country) -> None:
    for row, latitude in enumerate(country.projects["latitude"]):
        country.projects["latitude"][row] = latitude and round(33.0123 + row % 3 / 10, 4)


def _a_new_year_without_a_state(country: Country) -> None:
    last, states = country.figures[FORECAST[-1]], country.places["state_code"]
    country.figures["tot_fx_pop_2031"] = [
        None if one is None or state == "OH" else round(one * 1.008) for one, state in zip(last, states, strict=True)
    ]


def _demand_minus_homes(country: Country) -> None:
    pairs = zip(country.figures[DEMAND], country.figures[HOMES[-1]], strict=True)
    country.figures[DEMAND] = [None if None in (one, homes) else max(0, one - homes) for one, homes in pairs]


def _masked(country: Country) -> None:
    rng = random.Random(21)
    edit(HOMES, lambda homes: round(homes * rng.uniform(0.9, 1.1)))(country)


def _county_codes_late(country: Country) -> None:
    """Each county of California has the code of the next one, and its own name."""
    codes = country.places["county_fips_code"]
    rows = country.rows_in("CA")
    counties = sorted({codes[row] for row in rows})
    after = dict(zip(counties, [*counties[1:], counties[-1]], strict=True))
    for row in rows:
        codes[row] = after[codes[row]]


def _households_alone(country: Country) -> None:
    """In one of fifteen ZIP codes, most people live in a prison or a college; elsewhere, a few do."""
    for name in (census(2021), census(2022), census(2023)):
        column = country.figures[name]
        for row, figure in enumerate(column):
            if figure is not None:
                column[row] = figure * 45 // 100 if row % 15 == 0 else figure - figure * (row % 15) // 1_000


def _demand_later(years: int, *states: str) -> Alter:
    """The growth of `years` instead of six."""

    def alter(country: Country) -> None:
        demand = country.figures[DEMAND]
        for row in country.rows_in(*states):
            homes = country.figures[HOMES[-1]][row]
            if homes and demand[row]:
                demand[row] = round(homes * (demand[row] / homes) ** (years / 6))

    return alter


def _demand_nearly_flat(country: Country) -> None:
    """The growth was divided by a hundred once more."""
    homes = country.figures[HOMES[-1]]
    country.figures[DEMAND] = [one and round(one * (1 + (one % 7 - 3) / 3_000)) for one in homes]


def _projects_without_a_zip_code(country: Country) -> None:
    country.projects["zip_code"] = [one or "90086" for one in country.projects["zip_code"]]


def _points_sorted_apart(country: Country) -> None:
    for name in POINT:
        country.projects[name][:] = country.projects[name][-9:] + country.projects[name][:-9]


def _middle_of_state(country: Country) -> None:
    for state, point in (("TX", (31.05, -99.07)), ("CA", (37.05, -120.07))):
        for row in country.rows_in(state)[::5]:
            for name, degrees in zip(POINT, point, strict=True):
                country.places[name][row] = degrees


def _statuses_of_ohio(country: Country) -> None:
    other = {"acceptable": "unacceptable", "unacceptable": "acceptable"}
    pairs = zip(country.aliases["state_code"], country.aliases["usps_status"], strict=True)
    country.aliases["usps_status"] = [other.get(status, status) if state == "OH" else status for state, status in pairs]


def _aliases_cut(country: Country) -> None:
    pairs = zip(country.aliases["city_name"], country.aliases["usps_status"], strict=True)
    country.aliases["city_name"] = [name[:9] if status == "primary" else name for name, status in pairs]


def _projects_numbered_again(country: Country) -> None:
    ids = country.projects["project_id"]
    country.projects["project_id"] = [*ids[1:], ids[0]]


def _neighbours_unacceptable(country: Country) -> None:
    """Each ZIP code of two states has the city of the next one as a further name, but as one that is not acceptable."""
    for state in ("TX", "CA"):
        rows = country.rows_in(state)
        for row, following in itertools.pairwise(rows):
            values = (country.places["zip_code"][row], state, country.places["city_name"][following], "unacceptable")
            if values[2] != country.places["city_name"][row]:
                for name, value in zip(("zip_code", "state_code", "city_name", "usps_status"), values, strict=True):
                    country.aliases[name].append(value)


ORDER = _mistakes(
    ("rows-shuffled-in-a-state", "figures-misplaced", "in TX: population 20", shuffle(PEOPLE, "TX")),
    ("rows-shuffled", "figures-shuffled", "in 7 of 9 states", shuffle(FIGURES)),
    ("all-rows-shifted-by-one", "figures-misplaced", "tot_home_available_2021", shift((*HOMES, DEMAND))),
    ("a-year-shuffled", "figures-misplaced", "in TX: population 2017", shuffle(census(2017), "TX")),
    ("forecasts-shuffled", "figures-misplaced", "population 2025", shuffle(FORECAST, "OH")),
    ("demand-shuffled", "figures-misplaced", "est_total_home_demand_2030", shuffle(DEMAND, "CA")),
    ("new-demand-out-of-step", "figures-shuffled", "in 8 of 9 states", each(noise(DEMAND, 0.02), shift(DEMAND))),
    ("a-few-shuffled", "figures-shuffled", "likeness 0.8", shuffle(PEOPLE, share=0.04)),
    ("years-exchanged", "figures-exchanged", "like the former population 2020", exchange(census(2015), census(2020))),
    (
        "years-exchanged-in-a-state",
        "figures-exchanged",
        "in CA: looks like the former population 2023",
        exchange(census(2020), census(2023), "CA"),
    ),
    ("homes-of-other-years", "figures-exchanged", "former tot_home_available_2023", exchange(HOMES[0], HOMES[3])),
    (
        "demand-exchanged-with-homes",
        "figures-exchanged",
        "est_total_home_demand_2030 in CA: looks like the former tot_home",
        exchange(DEMAND, HOMES[1]),
    ),
    (
        "people-exchanged-with-homes",
        "figures-exchanged",
        "tot_home_available_2022 in CA: looks like the former population 2022",
        exchange(census(2022), HOMES[2]),
    ),
    ("forecasts-late-by-one", "figures-exchanged", "looks like the former population 20", columns_late(FORECAST)),
    ("cities-shifted", "other-city", "moved to another city", shift("city_name", "TX")),
    ("states-exchanged", "zip-of-other-state", "TX", _states_exchanged),
    ("places-given-to-a-neighbour", "state-changed", "in NY, was in CT", _border_moved),
    ("states-shuffled", "zip-of-other-state", "first three digits", shuffle("state_code", share=0.1)),
    ("counties-shuffled-in-a-state", "other-county", "FL", shuffle(COUNTY, "FL")),
    ("county-names-shuffled", "county-half-moved", "CA", shuffle("county_name", "CA")),
    ("county-codes-late-by-one", "county-half-moved", "shifted against each other", _county_codes_late),
    ("counties-shuffled", "county-of-other-state", "county code of another state", shuffle(COUNTY)),
    ("points-shuffled-in-a-state", "point-exchanged", "CA", shuffle(POINT, "CA")),
    ("aliases-shifted", "primary-alias-differs", "aliases or cities may be shuffled", _aliases_shifted),
    ("a-name-for-another-town", "alias-moved", "now in", _an_alias_moved),
    (
        "a-county-of-another-state",
        "county-left-state",
        "another state now",
        _one_row("county_fips_code", "22001", "TX"),
    ),
    (
        "a-county-with-two-names",
        "county-differs",
        "another county name",
        _one_row("county_name", "Kerr County", "TX"),
    ),
    ("a-county-with-two-codes", "county-differs", "48497", _county_under_another_code),
    ("counties-of-two-years", "retired-county", "others in 09110", _half_the_regions),
    ("aliases-of-another-state", "alias-of-other-state", "aliases are in another state", _aliases_like(("FL", "OH"))),
    (
        "homes-late-by-a-year",
        "figures-exchanged",
        "in CA: looks like the former tot_home_available_2021",
        columns_late(HOMES),
    ),
    (
        "counts-backwards",
        "figures-exchanged",
        "population 2015 in CA: looks like the former population 2024",
        backwards(COUNTED),
    ),
    ("homes-for-demand", "figures-exchanged", "looks like the former tot_home_available_2023", copy(HOMES[3], DEMAND)),
    ("latitudes-shuffled-in-a-state", "moved-place", "in OH 37", shuffle("latitude", "OH")),
    ("cities-for-counties", "county-differs", "others of 48001 in", copy("city_name", "county_name")),
    ("zip-codes-for-county-codes", "county-of-other-state", "458 of 458", copy("zip_code", "county_fips_code")),
    ("homes-of-a-county-shifted", "figures-misplaced", "tot_home_available_2021", _a_county_shifted),
    (
        "years-of-a-county-exchanged",
        "years-exchanged",
        "tot_home_available_2021 in OH: with tot_home_available_2022",
        _of_county("39003", lambda one: {HOMES[1]: one[HOMES[2]], HOMES[2]: one[HOMES[1]]}),
    ),
    (
        "people-for-the-homes-of-a-county",
        "homes-are-people",
        "tot_home_available_2023 in TX",
        _of_county("48005", lambda one: {HOMES[3]: one[census(2023)]}),
    ),
    ("two-counties-exchanged", "counties-exchanged", "two counties may be exchanged", _two_counties_exchanged),
    ("zip-codes-padded-behind", "zip-of-other-state", "ZIP codes may be changed", _padded_behind),
)
ORDER += _mistakes(
    (
        "a-year-exported-twice",
        "repeated-figure",
        "population 2016 in CA: is population 2015",
        copy(census(2015), census(2016)),
    ),
    ("a-year-shuffled-at-first", "series-shuffled", "likeness", shuffle(census(2017), "TX")),
    ("homes-shuffled-at-first", "homes-unlike-people", "FL", shuffle((*HOMES, DEMAND), "FL")),
    ("points-shuffled-at-first", "scattered-place", "TX", shuffle(POINT, "TX")),
    ("primary-aliases-shuffled", "primary-alias-differs", "not the city of their", _aliases_shuffled),
    first=True,
)

SCALE = _mistakes(
    ("a-state-in-thousands", "uniform-scale", "-99.9% in nearly every", scale(PEOPLE, 0.001, "TX")),
    ("a-state-doubled", "uniform-scale", "in OH: population 20", scale(PEOPLE, 2, "OH")),
    ("homes-of-a-state-doubled", "uniform-scale", "in CT: tot_home_available_2020", scale((*HOMES, DEMAND), 2, "CT")),
    ("rows-joined-twice", "figures-multiplied", "a join may have multiplied rows", _joined_twice),
    ("numbers-of-eight-bits", "figures-wrapped", "too few bits", edit(census(2019), lambda one: one % 256)),
    ("years-of-zeros", "zeros-gained", "became 0", fill((census(2016), census(2017)), 0)),
    ("people-without-group-quarters", "people-left-out", "dormitories", _households_alone),
    ("homes-of-one-part", "people-left-out", "one county's share", _parts_of_zip_codes),
    ("growth-cut", "growth-repeated", "cut off at a bound", _growth_cut),
    ("demand-of-2037-in-a-state", "demand-of-another-year", "in TX: 2.", _demand_later(13, "TX")),
    ("demand-of-2035", "demand-of-another-year", "in the country: 1.84 times the growth", _demand_later(11)),
    ("an-age-group-for-all", "figures-of-a-part", "one group, such as an age", noise(PEOPLE, 0.35, mean=0.1)),
    ("everything-less", "uniform-scale", "-4.0% in nearly every ZIP code", scale(FIGURES, 0.96)),
    ("a-year-in-thousands", "uniform-scale", "population 2020", scale(census(2020), 0.01)),
    ("forecasts-doubled", "uniform-scale", "+100.0% in nearly every", scale(FORECAST, 2)),
    ("less-in-every-place", "total-drift", "-4.", noise(COUNTED, 0.03, mean=0.96)),
    ("a-state-of-another-source", "total-drift", "in CA", noise(COUNTED, 0.1, "CA", mean=1.09)),
    ("another-source", "figures-moved", "changed by over a third", noise(COUNTED, 0.2, "TX")),
    (
        "some-a-hundred-times",
        "absurd-figure",
        "population 2021",
        edit(census(2021), lambda one: one * 100 if one < 9_000 else one, share=0.01),
    ),
    ("some-in-thousands", "leaping-figure", "such as", scale(census(2016), 0.001, share=0.02)),
    ("people-for-homes", "figures-exchanged", "looks like the former population 2023", copy(census(2023), HOMES[3])),
    ("a-year-interpolated", "interpolated-year", "population 2019: 100%", _interpolated),
    ("rounded-to-hundreds", "figures-rounded", "are multiples of 100", edit(FIGURES, lambda one: round(one, -2))),
    ("a-state-in-whole-tens", "figures-rounded", "in TX: 100%", edit(HOMES[2], lambda one: round(one, -1), "TX")),
    ("rounded-to-fives", "figures-rounded", "are multiples of 5", edit(HOMES, lambda one: 5 * round(one / 5))),
    (
        "small-figures-as-one",
        "repeated-value",
        "one value for a range",
        edit(COUNTED, lambda one: 901 if one < 5_000 else one),
    ),
    (
        "some-states-of-another-quarter",
        "states-apart",
        "-3.0% in nearly every ZIP code",
        scale(census(2022), 0.97, "TX", "OH", "CT", "FL"),
    ),
    ("growth-applied-twice", "growth-apart", "times the trend", _growth_applied_twice),
    (
        "homes-of-middling-places-more",
        "figures-altered",
        "changed by over 8%",
        edit(HOMES[1], lambda homes: round(homes * 1.12) if 800 < homes < 1300 else homes),
    ),
    ("forecasts-with-the-wrong-sign", "forecast-against-trend", "in CA", _against_the_trend),
    ("a-state-of-another-quarter", "states-apart", "-2.5% in nearly every ZIP code", scale(census(2022), 0.975, "TX")),
    ("a-county-in-tens", "uniform-scale", "CA: -90.0% in nearly every ZIP code", _a_county_in_tens),
    (
        "homes-of-a-large-county-tenfold",
        "uniform-scale",
        "CT: +899.7% in nearly every",
        _of_county("09001", lambda one: {HOMES[3]: one[HOMES[3]] and one[HOMES[3]] * 10}),
    ),
    ("a-total-in-a-county", "repeated-value", "to 41,234", _one_total_for_a_county),
    (
        "demand-that-shrinks",
        "demand-growth",
        "est_total_home_demand_2030 in TX: -8.4% from homes",
        _demand_that_shrinks,
    ),
    ("noise-in-every-figure", "figures-rewritten", "changed nearly everywhere", noise(FIGURES, 0.02)),
    ("unknown-as-99999", "sentinel-figure", "to 99,999", fill(census(2019), 99_999, share=0.006)),
    ("unknown-as-9999", "sentinel-figure", "to 9,999", fill(HOMES[1], 9_999, share=0.02)),
    ("unknown-as-0", "zeroed-figure", "population 2018", fill(census(2018), 0, share=0.015)),
    ("unknown-homes-as-0", "zeros-filled", "are 0 now", _filled((*HOMES, DEMAND))),
    ("small-figures-as-0", "zeros-gained", "became 0 in many", edit(HOMES[1], _nothing_if_small, "TX")),
    ("a-total-for-many", "repeated-value", "such as 87", _total_everywhere),
    ("homes-added-up-over-years", "uniform-scale", "% in nearly every", _added_up),
    ("new-homes-for-all", "figures-of-a-part", "tot_home_available_2021, tot_home_available_2022", _new_homes),
    ("totals-of-counties", "repeated-value", "one total copied to all", _totals_of_counties),
    ("households-for-people", "uniform-scale", "population 2018", noise(census(2018), 0.04, mean=1 / 2.6)),
    (
        "cut-at-a-comma",
        "figures-wrapped",
        "or cut at a comma",
        edit(HOMES[2], lambda one: one // 1000 if one >= 1000 else one, "FL"),
    ),
    ("a-round-figure-for-many", "repeated-value", "1,200", fill(HOMES[0], 1_200, "TX", share=0.7)),
    ("cut-to-four-digits", "figures-wrapped", "lost their last digits", edit(COUNTED, lambda one: int(str(one)[:4]))),
    (
        "numbers-of-sixteen-bits",
        "out-of-range",
        "a negative number",
        edit(PEOPLE, lambda one: one - 65_536 * (one > 32_767)),
    ),
    ("an-upper-bound", "repeated-value", "an upper bound", edit(COUNTED, lambda one: min(one, 10_000))),
    (
        "forecasts-that-stay",
        "forecasts-flat",
        "population 2030 in CA: 100% of ZIP codes have that of population 2024",
        each(*(copy(COUNTED[-1], one) for one in FORECAST)),
    ),
    (
        "forecasts-of-a-state-that-stay",
        "forecasts-flat",
        "in CA",
        each(*(copy(COUNTED[-1], one, "CA") for one in FORECAST)),
    ),
    ("unknown-as-the-one-before", "zeros-filled", "or those of the ZIP code before", _filled_from_above),
    ("demand-of-a-county-as-0", "zeroed-figure", "est_total_home_demand_2030: 10 ZIP codes", _demand_of_a_county_as_0),
    (
        "units-of-projects-tenfold",
        "suspect-records",
        "total_units of 240",
        _of_projects("total_units", lambda one: one * 10),
    ),
)
SCALE += _mistakes(
    (
        "a-year-of-men-at-first",
        "series-scale",
        "-50.6% after population 2023",
        scale((COUNTED[-1], *FORECAST), 0.49),
    ),
    ("a-year-doubled-at-first", "series-drift", "in OH", scale(census(2018), 2, "OH")),
    ("homes-of-people-at-first", "people-per-home", "people for each home", scale((*HOMES, DEMAND), 2.25)),
    ("demand-of-people-at-first", "demand-beside-homes", "demand may be another column", scale(DEMAND, 2.25)),
    ("a-year-with-zeros-at-first", "zeros-in-series", "population 2015", fill(census(2015), 0, share=0.08)),
    ("a-default-at-first", "repeated-value", "2,500", fill(census(2020), 2_500, "CT")),
    ("some-in-another-unit-at-first", "series-leap", "ZIP codes", scale(census(2016), 0.001, share=0.24)),
    first=True,
)

ABSENCE = _mistakes(
    ("a-state-gone", "zip-codes-lost", "VT 30", without("VT")),
    ("a-small-state-gone", "zip-codes-lost", "AE 8", without("AE")),
    ("a-part-file-gone", "zip-codes-lost", "are gone", without(share=0.12)),
    ("the-largest-places-gone", "people-lost", "138,239 people in 2 ZIP codes", _without_the_largest),
    ("places-made-up", "zip-codes-gained", "40 of 458 ZIP codes are new", added(40, "TX")),
    (
        "a-year-in-a-few-places",
        "sparse-figure",
        "population 2014 in the country: 3 of 415 ZIP codes",
        _in_a_few(census(2014)),
    ),
    ("people-of-a-state-gone", "coverage-lost", "in NM: population 20", lose(PEOPLE, "NM")),
    ("a-year-gone-in-places", "coverage-lost", "population 2018", lose(census(2018), share=0.04)),
    ("homes-of-a-county-gone", "coverage-lost", "in Ashton County, TX: 10 of 10", _homes_of_a_county_gone),
    ("zeros-filtered-out", "zeros-lost", "left out rows with 0", edit(HOMES, lambda homes: homes or None)),
    ("forecasts-gone", "vanished-figure", "population 2025", without_column(*FORECAST)),
    ("a-year-gone", "vanished-figure", "population 2017", without_column(census(2017))),
    ("last-month-again", "delivered-before", "was delivered before", last_month),
    ("people-of-last-month", "delivered-before", "population is that of", _of_last_month(*PEOPLE)),
    ("an-old-export", "older-than-current", "housing: 2026-10-01, after 2026-10-05", _earlier),
    ("a-date-in-the-future", "future-date", "in the future", _next_year),
    ("counties-gone", "place-value-missing", "have no county", lose(COUNTY, share=0.5)),
    ("points-of-a-state-gone", "place-value-missing", "DE 25", lose(POINT, "DE")),
    ("aliases-of-a-status-gone", "aliases-lost", "aliases are gone", _primary_only),
    (
        "aliases-of-a-state-gone",
        "aliases-lost",
        "TX",
        lambda country: country.keep_aliases(lambda zip_code: not zip_code.startswith("7")),
    ),
    (
        "half-of-the-names-of-a-state-gone",
        "aliases-lost",
        "in TX",
        lambda country: country.keep_aliases(lambda zip_code: zip_code[:2] not in ("75", "76", "77")),
    ),
    (
        "statuses-exchanged",
        "alias-status-changed",
        "is unacceptable, was acceptable",
        edit_aliases("usps_status", {"acceptable": "unacceptable", "unacceptable": "acceptable"}.__getitem__),
    ),
    ("statuses-exchanged-in-a-state", "alias-status-changed", "in OH", _statuses_of_ohio),
    ("large-places-hidden", "coverage-lost", "2019", edit(census(2019), lambda one: None if one > 15_000 else one)),
    ("a-year-that-ends-early", "coverage-lost", "population 2020 in CA", _ends_early),
    ("a-year-of-homes-empty", "vanished-figure", "tot_home_available_2021", lose(HOMES[1])),
    ("homes-of-last-month", "delivered-before", "housing is that of", _of_last_month(*HOMES, DEMAND)),
    ("one-zip-code-for-each-name", "aliases-lost", "are gone", _one_zip_code_for_each_name()),
    ("half-of-the-projects", "records-lost", "120 of 240", _half_of_the_projects),
    (
        "projects-with-other-ids",
        "records-lost",
        "ids may have changed",
        _of_projects("project_id", lambda one: f"P{one}"),
    ),
    ("every-project-completed", "suspect-records", "all that had", _of_projects("status", lambda _: "Completed")),
)
ABSENCE += _mistakes(
    ("counties-gone-at-first", "place-value-missing", "no county", lose(COUNTY, share=0.5)), first=True
)

NONSENSE = _mistakes(
    ("longitude-without-sign", "place-outside-state", "without a sign", edit("longitude", abs)),
    ("longitude-without-sign-in-a-state", "place-outside-state", "DE 25", edit("longitude", abs, "DE")),
    ("boxes-in-the-middle-of-their-state", "point-filled", "middle of a county or state", _middle_of_state),
    ("middles-of-counties", "point-filled", "the middle of a county", _middles_of_counties),
    ("points-in-whole-degrees", "whole-degrees", "whole degrees", edit(POINT, lambda degrees: float(round(degrees)))),
    ("a-namesake-in-another-state", "place-outside-state", "those of a namesake", _at_a_namesake),
    ("degrees-and-minutes", "minutes-as-decimals", "in TX 100", edit(POINT, _minutes, "TX")),
    (
        "a-state-at-one-point",
        "point-filled",
        "a default may have been filled in",
        each(fill("latitude", 40.0, "OH"), fill("longitude", -82.5, "OH")),
    ),
    ("points-at-0", "zero-coordinate", "locations.latitude are 0", fill(POINT, 0.0, share=0.03)),
    ("points-exchanged", "place-outside-state", "VT", exchange(*POINT, "VT", "CT")),
    ("one-county-for-all", "county-of-other-state", "one may have been filled in", fill("county_fips_code", "48201")),
    (
        "one-county-for-a-state",
        "counties-merged",
        "TX",
        each(fill("county_fips_code", "48001", "TX"), fill("county_name", "Ashton County", "TX")),
    ),
    (
        "county-codes-of-another-state",
        "county-of-other-state",
        "VT",
        edit("county_fips_code", lambda code: "33" + code[2:], "VT"),
    ),
    ("aliases-multiplied", "aliases-gained", "", _aliases_multiplied),
    ("unknown-territory", "unknown-state", "locations.state_code", fill("state_code", "ZZ", share=0.02)),
    ("another-state-nearby", "zip-of-other-state", "in RI", fill("state_code", "RI", "CT", share=0.1)),
    ("names-cut-off", "cut-to-length", "may have been cut off", edit("city_name", lambda name: name[:8])),
    (
        "counties-without-accents",
        "name-cut",
        "letters with accents",
        edit("county_name", lambda name: name.encode("ascii", "ignore").decode()),
    ),
    ("counties-in-title-case", "title-case", "Prince George'S", fill("county_name", "Prince George'S County", "DE")),
    ("counties-cut-off", "name-cut", "only a part", edit("county_name", lambda name: name[:8])),
    ("counties-without-their-last-word", "name-cut", "lost a word", edit("county_name", lambda name: name.split()[0])),
    ("city-and-county-exchanged", "city-like-county", "named as a county", exchange("city_name", "county_name")),
    ("codes-for-cities", "renamed-city", "another city name", edit("city_name", lambda name: f"{name} CDP")),
    (
        "saint-as-street",
        "word-replaced",
        "Street",
        edit("city_name", lambda name: name.replace("Saint ", "Street ")),
    ),
    ("cities-with-their-state", "state-in-name", "locations.city_name end in their state", _with_their_state),
    ("a-row-for-the-total", "unassigned-zip", "has 00000", _a_total),
    (
        "plus-for-spaces",
        "garbled-name",
        "locations.city_name",
        edit("city_name", lambda name: f"Port+{name}", share=0.02),
    ),
    (
        "invisible-characters",
        "odd-name",
        "invisible",
        edit("city_name", lambda name: f"{name}\u200b", share=0.02),
    ),
    ("rows-of-tests", "placeholder-name", "words for tests", fill("city_name", "TEST", share=0.005)),
    ("mojibake", "garbled-name", "locations.city_name", edit("city_name", _mojibake, share=0.02)),
    ("nan-as-a-name", "placeholder-name", "locations.county_name", fill("county_name", "nan", share=0.02)),
    ("points-in-radians", "place-outside-state", "another unit", edit(POINT, lambda one: round(math.radians(one), 5))),
    ("counties-with-their-state", "state-in-name", "locations.county_name", _counties_with_their_state),
    (
        "counties-of-a-state-in-full",
        "state-in-name",
        "locations.county_name",
        edit("county_name", lambda one: f"{one}, Texas", "TX"),
    ),
    ("aliases-with-their-state", "state-in-name", "aliases.city_name", _aliases_with_their_state),
    ("codes-for-county-names", "placeholder-name", "numbers", copy("county_fips_code", "county_name")),
    ("escaped-names", "garbled-name", "are escaped", edit("city_name", lambda one: f"O&#39;{one}", share=0.02)),
    ("states-for-cities", "renamed-city", "another column", copy("state_code", "city_name")),
    (
        "quarters-for-cities",
        "renamed-city",
        "in CA 2",
        edit("city_name", lambda name: f"{name} Heights", "CA", share=0.27),
    ),
    ("one-city-for-a-state", "renamed-city", "in TX 100", fill("city_name", "Dallas", "TX")),
    ("aliases-cut-off", "alias-cut", "may have been cut off", _aliases_cut),
    (
        "every-alias-primary",
        "alias-status-changed",
        "filled in everywhere",
        edit_aliases("usps_status", lambda _: "primary"),
    ),
)
NONSENSE += _mistakes(
    ("one-point-for-many", "point-filled", "at one point together", added(520, "CA")),
    ("middles-of-counties-at-first", "shared-point", "at the point of another one", _middles_of_counties),
    first=True,
)

PARTS = _mistakes(
    (
        "rounded-in-a-county",
        "figures-rounded",
        "County, CA: 100% are multiples of 10",
        _of_county("06005", lambda one: {census(2019): one[census(2019)] and round(one[census(2019)], -1)}),
    ),
    (
        "a-default-in-a-county",
        "repeated-value",
        "to 450",
        _of_county("39003", lambda one: {HOMES[2]: one[HOMES[2]] and 450}),
    ),
    (
        "noise-in-two-years",
        "figures-rewritten",
        "population 2017, population 2019",
        noise((census(2017), census(2019)), 0.04),
    ),
    ("added-up-twice-unevenly", "figures-added-up", "in FL", noise(HOMES[1:3], 0.2, "FL", mean=1.6)),
    ("counties-stripped-of-letters", "renamed-county", "was ", edit("county_name", lambda name: name.replace("r", ""))),
    (
        "some-cities-of-another-source",  # all of a small state and some elsewhere, which are most
        "renamed-city",
        "in DE 25, TX 12",
        each(edit("city_name", "Port {}".format, "DE"), edit("city_name", "New {}".format, share=0.15)),
    ),
    ("other-names-cut", "alias-cut-to-length", "cut off", _other_names_cut),
    ("noise-in-a-state", "figures-altered", "in TX", noise((COUNTED[2], COUNTED[5]), 0.12, "TX")),
    ("homes-masked", "figures-rewritten", "tot_home_available_2020, tot_home_available_2021", _masked),
    ("demand-minus-homes", "demand-without-homes", "minus the homes", _demand_minus_homes),
    ("demand-that-stays", "figures-stayed", "the same in", noise((*FORECAST, *HOMES), 0.004)),
    ("zip-code-by-default", "suspect-records", "one value, or a few", _projects_without_a_zip_code),
    ("points-sorted-apart", "suspect-records", "shuffled among records, or", _points_sorted_apart),
    ("demand-that-stays-in-a-state", "figures-stayed", "in OH: the same in", _stays_in_a_state),
    ("places-filled-from-above", "place-filled", "those of the row before", _filled_places),
    ("every-name-of-a-county", "many-aliases", "multiplied", _names_of_a_county),
    (
        "zip-codes-of-projects-shuffled",
        "suspect-records",
        "shuffled among records",
        _projects_exchange_zip_codes,
    ),
    ("projects-at-three-points", "suspect-records", "one value, or a few", _projects_at_three_points),
    ("demand-of-an-older-release", "stale-figure", "of an older release", _of_last_month(DEMAND)),
    ("an-independent-city-joined-by-name", "independent-city", "was in City of", _joined_by_name),
    ("boxes-lost-in-a-join", "boxes-lost", "PO boxes", _without_boxes),
    ("months-from-0", "older-than-current", "counted from 0", _new_month(updated_at="2026-11-05", month_code=10)),
    ("forecasts-from-another-year", "forecast-apart", "start from another year", _from_another_start),
    ("a-new-year-without-a-state", "forecasts-missing", "population 2031 in OH", _a_new_year_without_a_state),
    (
        "one-zip-code-for-many-projects",
        "suspect-records",
        "one value, or a few, may have been filled in",
        _of_the_first_projects(40, zip_code="90086"),
    ),
    (
        "projects-a-day-early",
        "suspect-records",
        "days are -1 off",
        _of_projects("start_date", lambda one: one - timedelta(days=1)),
    ),
    ("projects-numbered-again", "suspect-records", "numbered again", _projects_numbered_again),
    (
        "statuses-of-projects-exchanged",
        "suspect-records",
        "two values may be exchanged",
        _of_projects("status", lambda one: {"Proposed": "Completed", "Completed": "Proposed"}.get(one, one)),
    ),
    (
        "days-for-months",
        "suspect-records",
        "day and month",
        _of_projects("completion_date", lambda one: one.replace(month=one.day, day=one.month)),
    ),
)
PARTS += _mistakes(
    (
        "every-alias-primary-at-first",
        "several-primary-aliases",
        "filled in everywhere",
        edit_aliases("usps_status", lambda _: "primary"),
    ),
    (
        "aliases-that-end-early",
        "alias-missing",
        "a part of the aliases",
        lambda country: country.keep_aliases(lambda zip_code: zip_code < "5"),
    ),
    ("a-county-sorted-apart", "series-shuffled", "in First County, CA", _a_county_sorted_apart),
    ("forecasts-of-a-county-from-another-year", "forecast-apart", "in First County, CA", _another_start_in_a_county),
    ("carried-forward-in-a-county", "repeated-figure", "2024 in First County, CA", _carried_forward_in_a_county),
    ("a-bound-missing-in-a-state", "growth-unbounded", "in TX", _bound_missing),
    ("a-name-for-each-city-at-first", "alias-missing", "of each name", _one_zip_code_for_each_name("CA")),
    ("a-year-too-small-at-first", "series-drift", "population 2019 in CA: ", scale(census(2019), 0.942, "CA")),
    ("demand-nearly-flat", "repeated-figure", "a rate of growth be 100 times too small", _demand_nearly_flat),
    ("statuses-exchanged-at-first", "acceptable-aliases-rejected", "may be exchanged", _neighbours_unacceptable),
    first=True,
)

IMPLAUSIBLE_DROPS = (*ORDER, *SCALE, *ABSENCE, *NONSENSE, *PARTS)

# Mistakes that one drop can have, each named as the cause that it is: those that would hide each other are apart.
_TOGETHER = """
unknown-homes-as-0 city-and-county-exchanged points-shuffled-in-a-state units-of-projects-tenfold,
rows-shuffled cities-shifted counties-shuffled-in-a-state latitudes-shuffled-in-a-state half-of-the-projects,
all-rows-shifted-by-one names-cut-off counties-shuffled points-of-a-state-gone,
years-exchanged codes-for-cities county-names-shuffled projects-with-other-ids longitude-without-sign,
homes-of-other-years saint-as-street a-county-of-another-state every-project-completed
  longitude-without-sign-in-a-state,
a-year-exported-twice points-shuffled-at-first primary-aliases-shuffled counties-gone-at-first,
rows-joined-twice states-for-cities a-county-with-two-names middles-of-counties one-zip-code-for-many-projects,
numbers-of-eight-bits one-city-for-a-state points-in-whole-degrees statuses-of-projects-exchanged,
years-of-zeros aliases-shifted one-county-for-all days-for-months,
an-age-group-for-all a-name-for-another-town degrees-and-minutes one-county-for-a-state,
everything-less aliases-of-another-state a-state-at-one-point county-codes-of-another-state,
a-year-in-thousands aliases-of-a-status-gone points-at-0 counties-cut-off,
forecasts-doubled aliases-of-a-state-gone points-exchanged counties-without-their-last-word,
less-in-every-place half-of-the-names-of-a-state-gone nan-as-a-name points-in-radians,
people-for-homes counties-of-a-state-in-full projects-numbered-again,
demand-of-2035 statuses-exchanged a-namesake-in-another-state a-county-with-two-codes,
small-figures-as-one aliases-with-their-state codes-for-county-names,
noise-in-every-figure every-alias-primary,
some-a-hundred-times years-exchanged-in-a-state years-of-a-county-exchanged people-of-a-state-gone,
a-year-that-ends-early unknown-as-99999 forecasts-shuffled projects-a-day-early cut-at-a-comma,
a-year-shuffled-at-first homes-shuffled-at-first a-year-doubled-at-first a-name-for-each-city-at-first,
a-state-in-thousands demand-of-a-county-as-0,
another-source rounded-in-a-county homes-of-a-large-county-tenfold,
a-default-at-first a-year-with-zeros-at-first one-point-for-many,
a-year-of-homes-empty another-state-nearby a-year-gone-in-places zip-code-by-default,
rounded-to-hundreds aliases-multiplied a-date-in-the-future demand-minus-homes,
new-homes-for-all a-new-year-without-a-state unknown-territory boxes-lost-in-a-join,
forecasts-from-another-year a-state-doubled an-old-export large-places-hidden,
demand-exchanged-with-homes cities-with-their-state an-upper-bound a-year-gone,
a-state-in-whole-tens a-part-file-gone unknown-as-9999 unknown-as-0,
a-state-of-another-quarter a-year-in-a-few-places places-given-to-a-neighbour households-for-people,
numbers-of-sixteen-bits homes-of-a-state-doubled demand-that-shrinks a-small-state-gone,
a-state-gone noise-in-two-years unknown-as-the-one-before points-sorted-apart,
rounded-to-fives counties-with-their-state a-few-shuffled forecasts-gone,
people-for-the-homes-of-a-county forecasts-of-a-state-that-stay some-in-thousands demand-of-an-older-release,
states-exchanged a-row-for-the-total homes-added-up-over-years demand-that-stays,
zeros-filtered-out boxes-in-the-middle-of-their-state counties-in-title-case homes-of-one-part totals-of-counties,
demand-of-2037-in-a-state every-name-of-a-county projects-at-three-points states-shuffled people-of-last-month,
growth-cut places-filled-from-above zip-codes-of-projects-shuffled cut-to-four-digits demand-that-stays-in-a-state
  a-round-figure-for-many,
forecasts-late-by-one invisible-characters cities-for-counties homes-of-a-county-shifted a-state-of-another-source,
counts-backwards mojibake two-counties-exchanged zip-codes-padded-behind months-from-0,
forecasts-of-a-county-from-another-year demand-nearly-flat homes-of-people-at-first every-alias-primary-at-first
  a-year-too-small-at-first,
homes-for-demand escaped-names counties-gone small-figures-as-0 last-month-again,
a-year-of-men-at-first middles-of-counties-at-first statuses-exchanged-at-first demand-of-people-at-first
  aliases-that-end-early some-in-another-unit-at-first,
people-exchanged-with-homes plus-for-spaces counties-of-two-years new-demand-out-of-step
  statuses-exchanged-in-a-state county-codes-late-by-one,
homes-late-by-a-year rows-of-tests zip-codes-for-county-codes some-states-of-another-quarter demand-shuffled
  a-total-for-many,
a-year-shuffled a-county-in-tens a-total-in-a-county homes-of-last-month forecasts-that-stay places-made-up,
people-without-group-quarters aliases-cut-off counties-without-accents homes-of-a-county-gone
  the-largest-places-gone homes-masked,
a-year-interpolated one-zip-code-for-each-name an-independent-city-joined-by-name rows-shuffled-in-a-state
  forecasts-with-the-wrong-sign a-default-in-a-county
"""
WRONG_TOGETHER = [tuple(drop.split()) for drop in _TOGETHER.split(",")]
