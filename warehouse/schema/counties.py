"""Counties that the Census Bureau retired, and their successors.

Source: "Substantial Changes to Counties and County Equivalent Entities: 1970-Present"
(https://www.census.gov/programs-surveys/geography/technical-documentation/county-changes.html).
"""

# Connecticut's counties, and the nine planning regions that replaced them in 2022; each with the counties of its towns.
_CONNECTICUT = {
    "09001": "Fairfield County", "09003": "Hartford County", "09005": "Litchfield County", "09007": "Middlesex County",
    "09009": "New Haven County", "09011": "New London County", "09013": "Tolland County", "09015": "Windham County",
}  # fmt: skip
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
# By code: the codes that have its area now. A successor may be older than the county that it took in.
RETIRED_COUNTIES: dict[str, tuple[str, ...]] = {
    "02201": ("02198",),
    "02232": ("02105", "02230"),
    "02261": ("02063", "02066"),
    "02270": ("02158",),
    "02280": ("02195", "02275"),
    "12025": ("12086",),
    "30113": ("30031", "30067"),
    "46113": ("46102",),
    "51515": ("51019",),
    "51560": ("51005",),
    "51780": ("51083",),
    **dict.fromkeys(_CONNECTICUT, tuple(_REGIONS)),
}
# Of retired counties and their successors, also of those that a release does not have.
COUNTY_NAMES: dict[str, str] = {
    "02063": "Chugach Census Area", "02066": "Copper River Census Area", "02105": "Hoonah-Angoon Census Area",
    "02158": "Kusilvak Census Area", "02195": "Petersburg Borough", "02198": "Prince of Wales-Hyder Census Area",
    "02201": "Prince of Wales-Outer Ketchikan Census Area", "02230": "Skagway Municipality",
    "02232": "Skagway-Hoonah-Angoon Census Area", "02261": "Valdez-Cordova Census Area",
    "02270": "Wade Hampton Census Area", "02275": "Wrangell City and Borough",
    "02280": "Wrangell-Petersburg Census Area", "12025": "Dade County", "12086": "Miami-Dade County",
    "30031": "Gallatin County", "30067": "Park County", "30113": "Yellowstone National Park",
    "46102": "Oglala Lakota County", "46113": "Shannon County", "51005": "Alleghany County",
    "51019": "Bedford County", "51083": "Halifax County", "51515": "Bedford city", "51560": "Clifton Forge city",
    "51780": "South Boston city", **_CONNECTICUT, **{code: name for code, (name, _) in _REGIONS.items()},
}  # fmt: skip


def related_counties(code: str) -> list[str]:
    """Returns the counties that have the area of this one in earlier or later releases, the largest part first."""
    if code in _REGIONS:
        return list(_REGIONS[code][1])
    if code in _CONNECTICUT:
        regions = [(parts.index(code), region) for region, (_, parts) in _REGIONS.items() if code in parts]
        return [region for _, region in sorted(regions)]
    before = [retired for retired, successors in RETIRED_COUNTIES.items() if code in successors]
    return [*RETIRED_COUNTIES.get(code, ()), *before]
