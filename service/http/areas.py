"""The registry of data areas, in the order in which the index lists them: a new one needs a module and a line here."""

from service.http import forecast, projects
from service.http.area import PartnerArea
from service.http.query import LOCATION_PARAMETERS

AREAS: tuple[PartnerArea, ...] = (forecast.AREA, projects.AREA)
_ENDPOINTS = [endpoint for area in AREAS for endpoint in area.endpoints]
PARAMETERS = (*LOCATION_PARAMETERS, *(one.name for endpoint in _ENDPOINTS for one in endpoint.operation.parameters))
