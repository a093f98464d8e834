"""The endpoints for plans, and for the limits that all keys of a partner share."""

import msgspec
from litestar import Controller, Response, delete, put, route
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody

from service.keys import named
from service.keys.errors import NoSuchPlanError
from service.keys.listing import NamedView, named_views, view_of
from service.keys.record import DamagedKey, Partner, Plan, PlanName
from service.keys.store import KeyStore
from service.operators.access import Right
from service.operators.guards import READ, needing
from service.operators.keys.backend import Acting, Backend, Listed
from service.operators.keys.controller import CHANGING, READING, TAGGED, answer
from service.operators.keys.orders import PartnerOrder, PlanOrder, checked
from service.request.errors import ApiError


class Plans(msgspec.Struct, frozen=True):
    """All plans, by name."""

    plans: list[NamedView]
    damaged: list[DamagedKey]


class Partners(msgspec.Struct, frozen=True):
    """All partners with limits or a contact, by name."""

    partners: list[NamedView]
    damaged: list[DamagedKey]


class PlansController(Controller):
    """Plans: terms that many keys share."""

    path = "/plans"
    guards = (needing(Right.KEYS),)
    tags = ("keys",)

    @route("/", http_method=READ, responses=READING)
    async def plans(self, listed: Listed) -> Plans:
        """List plans, with the number of their keys."""
        return Plans(*await named_views(listed, Plan))

    @route("/{name:str}", http_method=READ, responses=READING, response_headers=TAGGED)
    async def plan(self, name: FromPath[str], listed: Listed) -> Response[NamedView]:
        """Show a plan. The ETag names its revision, for If-Match."""
        view = await view_of(listed, await _plan(listed, name))
        return answer(view, view.revision)

    @put("/{name:str}", responses=CHANGING | {201: ResponseSpec(NamedView)}, response_headers=TAGGED)
    async def set_plan(
        self, name: FromPath[str], data: JSONBody[PlanOrder], acting: Acting, backend: Backend
    ) -> Response[NamedView]:
        """Create a plan, or replace all of its terms. Its keys have them within 5 s."""
        name = checked("name", name, code="invalid_parameter")
        try:
            msgspec.convert(name, PlanName)
        except msgspec.ValidationError:
            detail = "The name of a plan has letters, digits, ., _ and -, at most 64."
            raise ApiError("invalid_parameter", detail) from None
        before, plan = await named.set_plan(acting, name, data.terms.terms())
        async with backend.listing:
            view = await view_of(acting, plan)
        return answer(view, view.revision, 201 if before is None or before.removed else 200)

    @delete("/{name:str}", responses=CHANGING)
    async def remove_plan(self, name: FromPath[str], acting: Acting, backend: Backend) -> None:
        """Remove a plan that no key uses."""
        async with backend.listing:
            await _plan(acting, name)  # a missing plan is a 404
            await named.remove_plan(acting, name)


class PartnersController(Controller):
    """Limits that all keys of a partner share, and its contact."""

    path = "/partners"
    guards = (needing(Right.KEYS),)
    tags = ("keys",)

    @route("/", http_method=READ, responses=READING)
    async def partners(self, listed: Listed) -> Partners:
        """List partners with limits or a contact, with the number of their keys."""
        return Partners(*await named_views(listed, Partner))

    @route("/{name:str}", http_method=READ, responses=READING, response_headers=TAGGED)
    async def partner(self, name: FromPath[str], listed: Listed) -> Response[NamedView]:
        """Show the limits and the contact of a partner. The ETag names their revision, for If-Match."""
        view = await view_of(listed, await named.partner_of(listed, _partner_name(name)))
        return answer(view, view.revision)

    @put("/{name:str}", responses=CHANGING | {201: ResponseSpec(NamedView)}, response_headers=TAGGED)
    async def set_partner(
        self, name: FromPath[str], data: JSONBody[PartnerOrder], acting: Acting, backend: Backend
    ) -> Response[NamedView]:
        """Set, or replace, the limits and the contact of a partner. Its keys have them within 5 s."""
        name = _partner_name(name)
        contact = checked("contact", data.contact, can_be_empty=True)
        async with backend.listing:
            before, partner = await named.set_partner(acting, name, data.terms.terms(), contact)
            view = await view_of(acting, partner)
        return answer(view, view.revision, 201 if before is None else 200)


async def _plan(store: KeyStore, name: str) -> Plan:
    try:
        return (await named.plan_of(store, name))[1]
    except NoSuchPlanError as error:
        raise ApiError("no_such_plan", f"{error}.") from None


def _partner_name(segment: str) -> str:
    """Returns the name in a path, in which an encoded slash stays encoded (`decode_path`). Raises ApiError."""
    return checked("name", segment.replace("%2F", "/"), code="invalid_parameter")
