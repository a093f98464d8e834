"""The registry of data areas, in the order in which the index lists them: a new one needs a module and a line here."""

from service.http import forecast, projects
from service.http.area import PartnerArea
from service.http.query import LOCATION_PARAMETERS

AREAS: tuple[PartnerArea, ...] = (forecast.AREA, projects.AREA)
_OPERATIONS = [endpoint.operation for area in AREAS for endpoint in area.endpoints]
# Names of all their parameters.
PARAMETERS = (*LOCATION_PARAMETERS, *dict.fromkeys(one.name for each in _OPERATIONS for one in each.parameters))
