"""The endpoints for plans, and for the limits that all keys of a partner share."""

import msgspec
from litestar import Controller, Response, delete, put, route
from litestar.params import FromPath, JSONBody

from service.keys import named
from service.keys.errors import NoSuchPlanError
from service.keys.listing import (
    PartnerView,
    PlanView,
    partner_view,
    partner_views,
    plan_view,
    plan_views,
    view_of_partner,
    view_of_plan,
)
from service.keys.record import DamagedKey, PlanName
from service.keys.store import KeyStore
from service.operators.access import Right
from service.operators.guards import AnyRequest, needing
from service.operators.keys.backend import Backend, api_errors
from service.operators.keys.controller import CHANGING, READ, READING, answer
from service.operators.keys.orders import PartnerOrder, PlanOrder, checked
from service.request.errors import ApiError


class Plans(msgspec.Struct, frozen=True):
    """All plans, by name."""

    plans: list[PlanView]
    damaged: list[DamagedKey]


class Partners(msgspec.Struct, frozen=True):
    """All partners with limits or a contact, by name."""

    partners: list[PartnerView]
    damaged: list[DamagedKey]


class PlansController(Controller):
    """Plans: terms that many keys share."""

    path = "/plans"
    guards = (needing(Right.KEYS),)
    tags = ("keys",)

    @route("/", http_method=READ, responses=READING)
    async def plans(self, backend: Backend) -> Plans:
        """List plans, with the number of their keys."""
        with api_errors():
            store = await backend.owned()
            async with backend.listing:
                return Plans(*await plan_views(store))

    @route("/{name:str}", http_method=READ, responses=READING)
    async def plan(self, name: FromPath[str], backend: Backend) -> Response[PlanView]:
        """Show a plan. The ETag names its revision, for If-Match."""
        with api_errors():
            store = await backend.owned()
            async with backend.listing:
                view = await _plan(store, name)
        return answer(view, view.revision)

    @put("/{name:str}", responses=CHANGING)
    async def set_plan(
        self, request: AnyRequest, name: FromPath[str], data: JSONBody[PlanOrder], backend: Backend
    ) -> Response[PlanView]:
        """Create a plan, or replace all of its terms. Its keys have them within 5 s."""
        name = checked("name", name, code="invalid_parameter")
        try:
            msgspec.convert(name, PlanName)
        except msgspec.ValidationError:
            detail = "The name of a plan has letters, digits, ., _ and -, at most 64."
            raise ApiError("invalid_parameter", detail) from None
        with api_errors():
            store = await backend.acting(request)
            before, plan = await named.set_plan(store, name, data.terms.terms())
            async with backend.listing:
                view = await view_of_plan(store, plan)
        return answer(view, view.revision, 201 if before is None or before.removed else 200)

    @delete("/{name:str}", responses=CHANGING)
    async def remove_plan(self, request: AnyRequest, name: FromPath[str], backend: Backend) -> None:
        """Remove a plan that no key uses."""
        with api_errors():
            store = await backend.acting(request)
            async with backend.listing:
                await _plan(store, name)  # a missing plan is a 404
                await named.remove_plan(store, name)


class PartnersController(Controller):
    """Limits that all keys of a partner share."""

    path = "/partners"
    guards = (needing(Right.KEYS),)
    tags = ("keys",)

    @route("/", http_method=READ, responses=READING)
    async def partners(self, backend: Backend) -> Partners:
        """List partners with limits or a contact, with the number of their keys."""
        with api_errors():
            store = await backend.owned()
            async with backend.listing:
                return Partners(*await partner_views(store))

    @route("/{name:str}", http_method=READ, responses=READING)
    async def partner(self, name: FromPath[str], backend: Backend) -> Response[PartnerView]:
        """Show the limits and the contact of a partner. The ETag names their revision, for If-Match."""
        with api_errors():
            store = await backend.owned()
            async with backend.listing:
                view = await partner_view(store, _partner_name(name))
        return answer(view, view.revision)

    @put("/{name:str}", responses=CHANGING)
    async def set_partner(
        self, request: AnyRequest, name: FromPath[str], data: JSONBody[PartnerOrder], backend: Backend
    ) -> Response[PartnerView]:
        """Set, or replace, the limits and the contact of a partner. Its keys have them within 5 s."""
        name = checked("name", _partner_name(name), code="invalid_parameter")
        contact = checked("contact", data.contact, can_be_empty=True)
        with api_errors():
            store = await backend.acting(request)
            async with backend.listing:
                before, partner = await named.set_partner(store, name, data.terms.terms(), contact)
                view = await view_of_partner(store, partner)
        return answer(view, view.revision, 201 if before is None else 200)


async def _plan(store: KeyStore, name: str) -> PlanView:
    try:
        return await plan_view(store, name)
    except NoSuchPlanError as error:
        raise ApiError("no_such_plan", f"{error}.") from None


def _partner_name(segment: str) -> str:
    """Returns the name in a path, in which an encoded slash stays encoded (`decode_path`)."""
    return segment.replace("%2F", "/")
