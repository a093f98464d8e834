"""Counties that the Census Bureau retired, and their successors.

Source: "Substantial Changes to Counties and County Equivalent Entities: 1970-Present"
(https://www.census.gov/programs-surveys/geography/technical-documentation/county-changes.html).
"""

# Connecticut's planning regions, which replaced its counties in 2022; each with the counties of its towns.
_REGIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "09110": ("Capitol Planning Region", ("09003", "09013")),
    "09120": ("Greater Bridgeport Planning Region", ("09001",)),
    "09130": ("Lower Connecticut River Valley Planning Region", ("09007", "09011")),
    "09140": ("Naugatuck Valley Planning Region", ("09009", "09005", "09003", "09001")),
    "09150": ("Northeastern Connecticut Planning Region", ("09015", "09013")),
    "09160": ("Northwest Hills Planning Region", ("09005", "09003")),
    "09170": ("South Central Connecticut Planning Region", ("09009",)),
    "09180": ("Southeastern Connecticut Planning Region", ("09011", "09015")),
    "09190": ("Western Connecticut Planning Region", ("09001", "09005")),
}
_ALL_REGIONS = tuple(_REGIONS)
# By code: the name, and the codes that have its area now. A successor may be older than the county that it took in.
_RETIRED: dict[str, tuple[str, tuple[str, ...]]] = {
    "02201": ("Prince of Wales-Outer Ketchikan Census Area", ("02198",)),
    "02232": ("Skagway-Hoonah-Angoon Census Area", ("02105", "02230")),
    "02261": ("Valdez-Cordova Census Area", ("02063", "02066")),
    "02270": ("Wade Hampton Census Area", ("02158",)),
    "02280": ("Wrangell-Petersburg Census Area", ("02195", "02275")),
    "09001": ("Fairfield County", _ALL_REGIONS),
    "09003": ("Hartford County", _ALL_REGIONS),
    "09005": ("Litchfield County", _ALL_REGIONS),
    "09007": ("Middlesex County", _ALL_REGIONS),
    "09009": ("New Haven County", _ALL_REGIONS),
    "09011": ("New London County", _ALL_REGIONS),
    "09013": ("Tolland County", _ALL_REGIONS),
    "09015": ("Windham County", _ALL_REGIONS),
    "12025": ("Dade County", ("12086",)),
    "30113": ("Yellowstone National Park", ("30031", "30067")),
    "46113": ("Shannon County", ("46102",)),
    "51515": ("Bedford city", ("51019",)),
    "51560": ("Clifton Forge city", ("51005",)),
    "51780": ("South Boston city", ("51083",)),
}
RETIRED_COUNTIES: dict[str, tuple[str, ...]] = {code: successors for code, (_, successors) in _RETIRED.items()}
# Of those that a release may not have.
COUNTY_NAMES: dict[str, str] = {code: name for code, (name, _) in (_RETIRED | _REGIONS).items()}


def related_counties(code: str) -> list[str]:
    """Returns the counties that have the area of this one in earlier or later releases, the largest part first."""
    if code in _REGIONS:
        return list(_REGIONS[code][1])
    regions = sorted((parts.index(code), region) for region, (_, parts) in _REGIONS.items() if code in parts)
    before = [retired for retired, successors in RETIRED_COUNTIES.items() if code in successors]
    return [region for _, region in regions] or [*RETIRED_COUNTIES.get(code, ()), *before]
