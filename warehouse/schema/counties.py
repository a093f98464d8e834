"""Counties that the Census Bureau retired, and their successors.

Source: "Substantial Changes to Counties and County Equivalent Entities: 1970-Present"
(https://www.census.gov/programs-surveys/geography/technical-documentation/county-changes.html).
"""

# By code: the codes that have its area now. A successor may be older than the county that it took in.
RETIRED_COUNTIES: dict[str, tuple[str, ...]] = {
    "02201": ("02198",),  # Prince of Wales-Outer Ketchikan
    "02232": ("02105", "02230"),  # Skagway-Hoonah-Angoon
    "02261": ("02063", "02066"),  # Valdez-Cordova
    "02270": ("02158",),  # Wade Hampton
    "02280": ("02195", "02275"),  # Wrangell-Petersburg
    "12025": ("12086",),  # Dade
    "30113": ("30031", "30067"),  # Yellowstone National Park
    "46113": ("46102",),  # Shannon
    "51515": ("51019",),  # Bedford city
    "51560": ("51005",),  # Clifton Forge city
    "51780": ("51083",),  # South Boston city
    # Connecticut's counties, which nine planning regions replaced in 2022.
    **dict.fromkeys(
        ("09001", "09003", "09005", "09007", "09009", "09011", "09013", "09015"),
        ("09110", "09120", "09130", "09140", "09150", "09160", "09170", "09180", "09190"),
    ),
}
