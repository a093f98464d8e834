"""Answers of the forecast area in the OpenAPI description. Test keys get the same."""

from warehouse.areas.forecast import ForecastBody, ForecastEntry, Housing, Location, PopulationYear

DICKINSON = ForecastEntry(
    Location("36436", "Clarke County", "01025", "Dickinson, AL", "AL", 31.7061, -87.9999),
    (PopulationYear(2023, 783),),
    Housing(216, 333, 334, 281, 467),
)
MILITARY = ForecastEntry(
    Location("09001", None, None, "APO, AE", "AE", None, None),
    (),
    Housing(None, None, None, None, None),
)
EXAMPLE = ForecastBody(1, (DICKINSON,))
# Its name beside the other.
WITHOUT_FIGURES = "without_figures"
EXAMPLE_WITHOUT_FIGURES = ForecastBody(1, (MILITARY,))
