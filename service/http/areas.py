"""The registry of data areas, in the order in which the index lists them: a new one needs a module and a line here."""

from service.http import forecast, projects
from service.http.area import PartnerArea

AREAS: tuple[PartnerArea, ...] = (forecast.AREA, projects.AREA)
