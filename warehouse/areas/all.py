"""The registry of data areas: a new one is its module and a line here."""

from warehouse.areas import forecast, projects
from warehouse.areas.area import Area

AREAS: tuple[Area, ...] = (forecast.AREA, projects.AREA)
