"""What happens from one month to the next in real data, made up on the country: all of it must be published."""

import hashlib
import math
import random
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.country import COUNTED, DEMAND, FORECAST, HOMES, Country, Shape, census
from tests.warehouse.altering import (
    COUNTY,
    FIGURES,
    POINT,
    Alter,
    added,
    each,
    edit,
    edit_aliases,
    lose,
    noise,
    scale,
    without,
)

Finish = Callable[[Path], object]


class RealChange(msgspec.Struct, frozen=True):
    """`alter` changes the country, `finish` the files of its drop."""

    kind: str
    alter: Alter = lambda _: None
    finish: Finish = lambda _: None
    shape: Shape = "long"


def in_place(state: str, factor: float) -> Alter:
    """A town of about 10,000 people in the state has other figures from 2022 on."""

    def alter(country: Country) -> None:
        of_last_year = country.figures[census(2023)]
        row = min(country.rows_in(state), key=lambda row: abs((of_last_year[row] or 0) - 10_000))
        for name in FIGURES:
            if int(name[-4:]) >= 2022:
                country.figures[name][row] = round(country.figures[name][row] * factor)

    return alter


def _counted_2025(country: Country) -> None:
    """The census of 2025 replaces its forecast: 3% off in most places, up to 40% in small ones; forecasts follow."""
    rng = random.Random(9)
    forecast = country.figures["tot_fx_pop_2025"]
    for row, figure in enumerate(forecast):
        if figure is not None:
            error = rng.gauss(0, 0.04) if figure > 1_500 else max(-0.4, min(0.4, rng.gauss(0, 0.15)))
            for name in FORECAST:
                country.figures[name][row] = round(country.figures[name][row] * (1 + error))
    country.figures[census(2025)] = country.figures.pop("tot_fx_pop_2025")


def _vintage(country: Country) -> None:
    """Every count since the census of 2020 is revised, each year farther, as the errors of the years add up."""
    rng = random.Random(16)
    for row in range(len(country)):
        error = rng.gauss(0.001, 0.003)
        for year in range(2021, 2025):
            column = country.figures[census(year)]
            column[row] = column[row] and round(column[row] * (1 + error) ** (year - 2020))


def _counted_2014(country: Country) -> None:
    """The counts begin a year earlier."""
    pairs = zip(country.figures[census(2015)], country.figures[census(2016)], strict=True)
    country.figures[census(2014)] = [one and round(one * one / after) for one, after in pairs]


def _next_forecast(country: Country) -> None:
    pairs = zip(country.figures["tot_fx_pop_2029"], country.figures["tot_fx_pop_2030"], strict=True)
    country.figures["tot_fx_pop_2031"] = [None if last is None else round(last * last / one) for one, last in pairs]


def _steeper(country: Country) -> None:
    """Forecasts are extrapolated again, from growth that differs by a third of a per cent a year."""
    rng = random.Random(10)
    for row in range(len(country)):
        change = rng.gauss(0, 0.004)
        for name in FORECAST:
            if country.figures[name][row] is not None:
                figure = country.figures[name][row] * math.exp(change * (int(name[-4:]) - 2024))
                country.figures[name][row] = round(figure)


def _another_model(country: Country) -> None:
    """Forecasts of another model are 6% off in a usual place, and 1% above in all."""
    rng = random.Random(15)
    for row in range(len(country)):
        factor = 1.01 * math.exp(rng.gauss(0, 0.06))
        for name in FORECAST:
            if country.figures[name][row] is not None:
                country.figures[name][row] = round(country.figures[name][row] * factor)


def _model_by_state(country: Country) -> None:
    """Forecasts of another model grow by another rate in each state, and differ more in small places."""
    rng = random.Random(17)
    rates = {state: rng.gauss(0.001, 0.004) for state in sorted(set(country.places["state_code"]))}
    for row, state in enumerate(country.places["state_code"]):
        last = country.figures[COUNTED[-1]][row] or 1
        rate = rates[state] + rng.gauss(0, min(0.02, 0.3 / math.sqrt(last)))
        for name in FORECAST:
            column = country.figures[name]
            column[row] = column[row] and round(column[row] * (1 + rate) ** (int(name[-4:]) - 2024))


def _demand_by_county(country: Country) -> None:
    """Each county's demand is estimated again: a few per cent off, in one by 30%."""
    rng = random.Random(11)
    counties = list(dict.fromkeys(country.places["county_fips_code"]))
    factors = {county: 1 + rng.gauss(0.01, 0.03) for county in counties} | {"48005": 1.3}
    for row, county in enumerate(country.places["county_fips_code"]):
        if country.figures[DEMAND][row] is not None:
            country.figures[DEMAND][row] = round(country.figures[DEMAND][row] * factors[county])


def _planning_regions(country: Country) -> None:
    """As in Connecticut: new counties with new codes and names, each of parts of the old ones."""
    for at, row in enumerate(country.rows_in("CT")):
        country.places["county_fips_code"][row] = f"09{110 + 10 * (at % 9)}"
        country.places["county_name"][row] = f"Region {'ABCDEFGHI'[at % 9]} Planning Region"


_REGIONS = (
    "Capitol",
    "Greater Bridgeport",
    "Lower Connecticut River Valley",
    "Naugatuck Valley",
    "Northeastern Connecticut",
    "Northwest Hills",
    "South Central Connecticut",
    "Southeastern Connecticut",
    "Western Connecticut",
)


def _named_regions(country: Country) -> None:
    """Every ZIP code of Connecticut is in the planning region around it, by its official code and name."""
    rows = country.rows_in("CT")
    rows.sort(key=lambda row: country.places["longitude"][row])
    for at, row in enumerate(rows):
        region = at * len(_REGIONS) // len(rows)
        country.places["county_fips_code"][row] = f"09{110 + 10 * region}"
        country.places["county_name"][row] = f"{_REGIONS[region]} Planning Region"


def _retired(country: Country) -> None:
    """Two ZIP codes of Ohio are retired: the next one of each has their people, homes and names."""
    gone = country.rows_in("OH")[20:60:39]
    zip_codes = country.places["zip_code"]
    after = {zip_codes[row]: zip_codes[row + 1] for row in gone}
    for column in country.figures.values():
        for row in gone:
            column[row + 1] = (column[row + 1] or 0) + (column[row] or 0) or None
    names = set(zip(country.aliases["zip_code"], country.aliases["city_name"], strict=True))
    for at, zip_code in enumerate(country.aliases["zip_code"]):
        if zip_code in after and (after[zip_code], country.aliases["city_name"][at]) not in names:
            country.aliases["zip_code"][at] = after[zip_code]
            country.aliases["usps_status"][at] = "acceptable"
    country.keep([row for row in range(len(country)) if row not in gone])


def _split(country: Country) -> None:
    """The two ZIP codes of Texas that grew most are divided: 45% of the people and homes are in a new one."""
    first, last = country.figures[census(2020)], country.figures[COUNTED[-1]]
    known = [row for row in country.rows_in("TX") if (first[row] or 0) > 1_000]
    for row in sorted(known, key=lambda row: last[row] / first[row])[-2:]:
        old = country.places["zip_code"][row]
        new = next(f"{at:05}" for at in range(int(old), 100_000) if f"{at:05}" not in country.places["zip_code"])
        for name, values in country.places.items():
            values.append(new if name == "zip_code" else values[row])
        for values in country.figures.values():
            part = None if values[row] is None else round(0.45 * values[row])
            values.append(part)
            values[row] = None if part is None else values[row] - part
        for at in [at for at, zip_code in enumerate(country.aliases["zip_code"]) if zip_code == old]:
            for name, values in country.aliases.items():
                values.append(new if name == "zip_code" else values[at])


def _add_alias(country: Country, row: int, city: str, status: str) -> None:
    place = country.places["zip_code"][row], country.places["state_code"][row]
    for values, value in zip(country.aliases.values(), (*place, city, status), strict=True):
        values.append(value)


def _rename(country: Country, row: int, city: str) -> None:
    """The former name stays as an acceptable alias."""
    aliases = country.aliases
    for at, zip_code in enumerate(aliases["zip_code"]):
        if zip_code == country.places["zip_code"][row] and aliases["usps_status"][at] == "primary":
            aliases["usps_status"][at] = "acceptable"
    _add_alias(country, row, city, "primary")
    country.places["city_name"][row] = city


def _new_city(country: Country) -> None:
    """A part of a city becomes a city of its own, with aliases."""
    row = country.rows_in("FL")[7]
    _rename(country, row, "Lakeshore Gardens")
    _add_alias(country, row, "Lakeshore Gdns", "unacceptable")
    _add_alias(country, row, "The Gardens", "acceptable")


def _city_joined(country: Country) -> None:
    """Two ZIP codes of Ohio join the city beside them."""
    first, *others = country.rows_in("OH")[30:33]
    for row in others:
        if country.places["city_name"][row] != country.places["city_name"][first]:
            _rename(country, row, country.places["city_name"][first])


def _preferred_name(country: Country) -> None:
    """In three ZIP codes, an acceptable name becomes the primary one, which becomes acceptable."""
    aliases = country.aliases
    rows = {zip_code: row for row, zip_code in enumerate(country.places["zip_code"])}
    acceptable = [at for at, status in enumerate(aliases["usps_status"]) if status == "acceptable"][5:200:90]
    for at in acceptable:
        row = rows[aliases["zip_code"][at]]
        own = [one for one, zip_code in enumerate(aliases["zip_code"]) if zip_code == aliases["zip_code"][at]]
        for one in own:
            if aliases["usps_status"][one] == "primary":
                aliases["usps_status"][one] = "acceptable"
        aliases["usps_status"][at] = "primary"
        country.places["city_name"][row] = aliases["city_name"][at]


def _more_names_of_a_state(country: Country) -> None:
    """Each ZIP code of Connecticut has two more names."""
    for row in country.rows_in("CT"):
        city = country.places["city_name"][row]
        _add_alias(country, row, f"East {city}", "acceptable")
        _add_alias(country, row, f"{city} Center", "unacceptable")


def _county_with_another_code(country: Country) -> None:
    """As Shannon County in South Dakota became Oglala Lakota County."""
    for row, county in enumerate(country.places["county_fips_code"]):
        if county == "39005":
            country.places["county_fips_code"][row] = "39902"
            country.places["county_name"][row] = "Oglala Lakota County"


def _disaster(country: Country) -> None:
    """Three counties of Texas lose from 3% to 40% of their people, and some of the homes that they will need."""
    rng = random.Random(18)
    for row, county in enumerate(country.places["county_fips_code"]):
        if county in ("48001", "48003", "48005"):
            stay = rng.uniform(0.6, 0.97)
            for name in (COUNTED[-1], *FORECAST, DEMAND):
                column = country.figures[name]
                column[row] = column[row] and round(column[row] * stay)


def _base_closed(country: Country) -> None:
    """Nobody lives on a base of New Mexico from 2024 on; its homes are empty, and a post office abroad is closed."""
    figures = country.figures
    row = min(country.rows_in("NM"), key=lambda row: abs((figures[census(2023)][row] or 0) - 8_000))
    for name in (COUNTED[-1], *FORECAST, DEMAND):
        figures[name][row] = 0
    abroad = country.rows_in("AE")[3]
    country.keep([row for row in range(len(country)) if row != abroad])


def _line_moved(country: Country) -> None:
    """A sixth of the people and homes of some ZIP codes belong to the next one, in every year."""
    for row in country.rows_in("OH")[:-1:8]:
        for name in FIGURES:
            column = country.figures[name]
            if column[row] is not None and column[row + 1] is not None:
                part = column[row] // 6
                column[row] -= part
                column[row + 1] += part


def _post_offices_counted(country: Country) -> None:
    """Homes are found in a few ZIP codes that had only boxes."""
    rng = random.Random(19)
    empty = [row for row in country.rows_in("TX", "CA", "OH") if country.figures[COUNTED[0]][row] is None]
    for row in empty[:10]:
        people = rng.randrange(20, 400)
        for name in FIGURES:
            country.figures[name][row] = people if "_pop_" in name else round(people / 2.3)


def _middle_of_people(country: Country) -> None:
    """Points move from the middle of the land to where people live, up to 10 km."""
    rng = random.Random(20)
    edit(POINT, lambda degrees: round(degrees + rng.uniform(-0.07, 0.07), 5), "NM", "TX", "CA")(country)


def _projects_of_a_city(country: Country) -> None:
    """A city reports for the first time in a year: other statuses, units and dates, two new projects, one given up."""
    projects = country.projects
    city = projects["city_name"][0]
    rows = [row for row, name in enumerate(projects["city_name"]) if name == city]
    for row in rows:
        projects["status"][row] = "Completed"
        projects["status_date"][row] = date(2026, 9, 20)
        projects["total_units"][row] += 4
    for number in (7, 8):
        for name, values in projects.items():
            values.append(f"{values[rows[0]]}{number}" if name == "project_id" else values[rows[0]])
    for values in projects.values():
        del values[rows[-1]]


def _small_places(change: Callable[[int], int | None]) -> Alter:
    def alter(country: Country) -> None:
        for name in COUNTED:
            column = country.figures[name]
            column[:] = [figure if figure is None or figure > 1_200 else change(figure) for figure in column]

    return alter


def _another_model_of_demand(country: Country) -> None:
    """It sees 3% more homes in 2030, and up to 8% more or fewer in each county."""
    rng = random.Random(22)
    of_county = {
        code: 1.03 * rng.uniform(0.92, 1.08) for code in sorted(set(country.places["county_fips_code"]) - {None})
    }
    demand = country.figures[DEMAND]
    for row, county in enumerate(country.places["county_fips_code"]):
        demand[row] = demand[row] and round(demand[row] * of_county[county])


def _county_merged(country: Country) -> None:
    """The last county of New Mexico becomes a part of the first one."""
    rows = country.rows_in("NM")
    for row in rows[-6:]:
        for name in COUNTY:
            country.places[name][row] = country.places[name][rows[0]]


def _one_kilometre(country: Country) -> None:
    rng = random.Random(12)
    edit(POINT, lambda degrees: round(degrees + rng.uniform(-0.01, 0.01), 5))(country)


def _boxes_in_their_town(country: Country) -> None:
    """Boxes of a town are where it is now, and the town has another name."""
    town, *boxes = country.rows_in("CA")[:4]
    for row in boxes:
        for name in POINT:
            country.places[name][row] = country.places[name][town]
    country.places["city_name"][town] += " Springs"


def _fewer_aliases(country: Country) -> None:
    rng = random.Random(13)
    status = country.aliases["usps_status"]
    rows = [row for row in range(len(status)) if status[row] == "primary" or rng.random() > 0.03]
    country.aliases = {name: [values[row] for row in rows] for name, values in country.aliases.items()}


def _more_aliases(country: Country) -> None:
    for row in country.rows_in("OH")[:60]:
        new = ("zip_code", "state_code", "city_name", "usps_status")
        city = f"Old {country.places['city_name'][row]}"
        values = (country.places["zip_code"][row], "OH", city, "acceptable")
        for name, value in zip(new, values, strict=True):
            country.aliases[name].append(value)


def _renamed_cities(country: Country) -> None:
    """One city in forty, with its primary alias."""
    new = {city: f"Port {city}" for city in sorted(set(country.places["city_name"]) - {"APO"})[::40]}
    for values in (country.places["city_name"], country.aliases["city_name"]):
        values[:] = [new.get(city, city) for city in values]


def _spelt_otherwise(country: Country) -> None:
    """All in capitals, with a hyphen, as another system writes them."""
    for values in (country.places["city_name"], country.aliases["city_name"]):
        values[:] = [city.upper().replace("BRIDGE", "-BRIDGE") for city in values]


def _new_month(country: Country) -> None:
    country.updated_at, country.month_code = "2026-11-04", 11


def _zip_codes_as_numbers(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        numbers = table["zip_code"].cast(pa.int64())
        pq.write_table(table.set_column(table.schema.get_field_index("zip_code"), "ZIP_CODE", numbers), path)


def _figures_as_text(folder: Path) -> None:
    table = pq.read_table(folder / "housing.parquet")
    fields = [pa.field(field.name, pa.string()) for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), folder / "housing.parquet")


def _another_year_of_homes(folder: Path) -> None:
    """Homes of 2024 are interpolated between those of 2023 and the demand of 2030; answers do not show them yet."""
    table = pq.read_table(folder / "housing.parquet")
    pairs = zip(table[HOMES[-1]].to_pylist(), table[DEMAND].to_pylist(), strict=True)
    homes = [None if None in (one, last) else round(one + (last - one) / 7) for one, last in pairs]
    pq.write_table(table.append_column("tot_home_available_2024", [homes]), folder / "housing.parquet")


def _decimals_with_companions(folder: Path) -> None:
    """Numbers are decimals, as a warehouse unloads them, and a checksum stands beside each file."""
    for name in ("population", "housing"):
        path = folder / f"{name}.parquet"
        table = pq.read_table(path)
        kinds = {field.name: field.type for field in table.schema}
        decimals = [(one, pa.decimal128(38, 0) if pa.types.is_integer(kind) else kind) for one, kind in kinds.items()]
        pq.write_table(table.cast(pa.schema(decimals)), path, compression="zstd")
    for path in folder.glob("*.parquet"):
        path.with_name(f"{path.name}.sha256").write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}\n")


def _population_alone(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        if path.stem != "population":
            path.unlink()


def _part_files(folder: Path) -> None:
    for name in ("locations", "population"):
        table = pq.read_table(folder / f"{name}.parquet")
        (folder / f"{name}.parquet").unlink()
        (folder / name).mkdir()
        third = table.num_rows // 3
        for part, start in enumerate((0, third, 2 * third)):
            rows = table.slice(start, third if part < 2 else None)
            pq.write_table(rows, folder / name / f"part-{part:05}.parquet")


def _other_order(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        rows = random.Random(14).sample(range(table.num_rows), table.num_rows)
        columns = list(reversed(table.column_names))
        pq.write_table(table.take(rows).select(columns), path)


REVISIONS = (
    RealChange("nothing"),
    RealChange("revised-by-1-percent", noise(FIGURES, 0.01)),
    RealChange("1-percent-more-everywhere", scale(FIGURES, 1.01)),
    RealChange("some-revised-by-5-percent", noise(FIGURES, 0.05, share=0.2)),
    RealChange("a-state-revised", noise(COUNTED, 0.04, "OH", mean=1.01)),
    RealChange("latest-year-revised", noise(COUNTED[-1], 0.03, mean=1.01)),
    RealChange("forecasts-extrapolated-again", _steeper),
    RealChange("a-model-of-forecasts-replaced", _another_model),
    RealChange("demand-estimated-by-county", _demand_by_county),
    RealChange("a-model-of-demand-replaced", _another_model_of_demand),
    RealChange("small-places-revised", _small_places(lambda figure: round(figure * (1.15 if figure % 2 else 0.87)))),
    RealChange("small-places-suppressed", _small_places(lambda figure: None if figure < 350 else figure)),
    RealChange("figures-under-10-hidden", edit(FIGURES, lambda figure: None if figure < 10 else figure)),
    RealChange("homes-revised", noise(HOMES, 0.02, mean=1.005)),
    RealChange("a-year-of-homes-revised", noise(HOMES[1], 0.04, mean=1.015)),
    RealChange("a-model-by-state", _model_by_state),
    RealChange(
        "homes-of-small-places-suppressed",
        edit((*HOMES, DEMAND), lambda homes: None if homes < 250 else homes),
    ),
    RealChange("a-line-between-neighbours-moved", _line_moved),
    RealChange("post-offices-counted", _post_offices_counted),
)

EVENTS = (
    RealChange("a-fire", in_place("CA", 0.15)),
    RealChange("a-boom-town", in_place("TX", 3)),
    RealChange("a-prison-closed", in_place("NM", 0.55)),
    RealChange("a-storm", noise((*COUNTED[-2:], *FORECAST), 0.05, "FL", share=0.1, mean=0.75)),
    RealChange("a-place-left", edit(COUNTED[-1], lambda figure: 0 if figure < 260 else figure, "TX")),
    RealChange("a-disaster-in-three-counties", _disaster),
    RealChange("a-base-closed", _base_closed),
)

NEW_YEARS = (
    RealChange("a-new-forecast-year", _next_forecast),
    RealChange("a-census-for-a-forecast", _counted_2025),
    RealChange("a-new-month", each(_new_month, noise(FIGURES, 0.003))),
    RealChange("an-earlier-year", _counted_2014),
    RealChange(
        "a-census-with-all-that-follows",
        each(_counted_2025, _vintage, _next_forecast, _demand_by_county, noise(HOMES, 0.01), _new_month),
    ),
    RealChange("another-year-of-homes", noise(HOMES[3], 0.01), _another_year_of_homes),
)

PLACES = (
    RealChange("zip-codes-retired", without(share=0.004)),
    RealChange("zip-codes-added", added(8, "TX")),
    RealChange("figures-for-some-more", lose(FIGURES, share=0.01)),
    RealChange("renamed-cities", _renamed_cities),
    RealChange("boxes-in-their-town", _boxes_in_their_town),
    RealChange("spelt-otherwise", _spelt_otherwise),
    RealChange("new-counties-of-a-state", _planning_regions),
    RealChange("a-county-merged", _county_merged),
    RealChange("a-county-renamed", edit("county_name", lambda name: f"Fort {name}" if name[0] == "K" else name, "OH")),
    RealChange("points-rounded", edit(POINT, lambda degrees: round(degrees, 2))),
    RealChange("points-improved", _one_kilometre),
    RealChange("aliases-added", _more_aliases),
    RealChange("aliases-dropped", _fewer_aliases),
    RealChange("aliases-judged-again", edit_aliases("usps_status", lambda _: "acceptable", share=0.1)),
    RealChange("planning-regions-with-their-names", _named_regions),
    RealChange("retired-into-a-neighbour", _retired),
    RealChange("zip-codes-split", _split),
    RealChange("a-new-city-with-its-aliases", _new_city),
    RealChange("a-city-joined-by-others", _city_joined),
    RealChange("another-name-preferred", _preferred_name),
    RealChange("names-added-in-a-state", _more_names_of_a_state),
    RealChange("a-county-with-another-code", _county_with_another_code),
    RealChange("points-where-people-live", _middle_of_people),
    RealChange("projects-of-a-city-updated", _projects_of_a_city),
)

FILES = (
    RealChange("wide-shape", shape="wide"),
    RealChange("zip-codes-as-numbers", finish=_zip_codes_as_numbers),
    RealChange("figures-as-text", finish=_figures_as_text),
    RealChange("part-files", finish=_part_files),
    RealChange("another-order", finish=_other_order),
    RealChange("without-aliases", finish=lambda folder: (folder / "aliases.parquet").unlink()),
    RealChange("decimals-with-companions", finish=_decimals_with_companions),
    RealChange("population-alone", finish=_population_alone),
)

REAL_CHANGES = (*REVISIONS, *EVENTS, *NEW_YEARS, *PLACES, *FILES)

# What comes together in one drop, as it does in a month. Changes that would hide each other are not together.
_TOGETHER = """
a-fire a-boom-town a-prison-closed a-storm,
a-place-left a-new-forecast-year a-census-for-a-forecast zip-codes-retired,
a-new-month zip-codes-added figures-for-some-more renamed-cities,
spelt-otherwise new-counties-of-a-state a-county-merged a-county-renamed,
points-rounded points-improved aliases-added aliases-dropped,
aliases-judged-again zip-codes-as-numbers part-files another-order,
a-disaster-in-three-counties a-base-closed names-added-in-a-state a-county-with-another-code,
retired-into-a-neighbour a-new-city-with-its-aliases another-name-preferred another-year-of-homes,
a-city-joined-by-others points-where-people-live projects-of-a-city-updated decimals-with-companions,
revised-by-1-percent 1-percent-more-everywhere figures-as-text without-aliases,
some-revised-by-5-percent a-model-of-demand-replaced a-model-of-forecasts-replaced population-alone,
a-year-of-homes-revised a-model-by-state post-offices-counted small-places-suppressed nothing
  figures-under-10-hidden,
demand-estimated-by-county small-places-revised homes-revised homes-of-small-places-suppressed
  a-line-between-neighbours-moved an-earlier-year,
a-state-revised latest-year-revised forecasts-extrapolated-again a-census-with-all-that-follows
  planning-regions-with-their-names zip-codes-split
"""
REAL_TOGETHER = [tuple(drop.split()) for drop in _TOGETHER.split(",")]
