"""The registry of data areas. A new area needs its module and a line here."""

from warehouse.areas import forecast, projects
from warehouse.areas.data_area import DataArea

DATA_AREAS: tuple[DataArea, ...] = (forecast.FORECAST_AREA, projects.PROJECTS_AREA)
