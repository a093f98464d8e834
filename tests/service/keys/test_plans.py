"""Plans: terms that many keys share, in every look-up, in the trail and in backups."""

from datetime import timedelta

import pytest

from service.base.terms import PARTNER_USAGE, Terms, parse_quota, parse_rate
from service.keys import audit, changes, named
from service.keys.errors import KeyStoreError
from service.keys.record import NO_TERMS, ApiKey, MoreOfKey, Partner, Plan
from service.keys.verdict import Verified
from service.quota.report import UsageReport
from tests.support.key_store import HeldKeyStore, dumped, found, imported
from tests.support.verifying import Scene

BASIC = Terms(areas=("forecast",), rate=parse_rate("50/s"), quota=parse_quota("1000/day"))
LARGER = Terms(rate=parse_rate("500/s"), quota=parse_quota("9000/day"))


async def issue(store: HeldKeyStore, plan: str | None, terms: Terms = NO_TERMS) -> tuple[str, ApiKey]:
    return await changes.issue(store, "acme", "", None, terms, test=False, more=MoreOfKey(plan=plan))


@pytest.fixture
async def planned(store: HeldKeyStore) -> Scene:
    """A key with the plan `basic`."""
    await named.set_plan(store, "basic", BASIC)
    return Scene(store, *await issue(store, "basic"))


def terms_kept(scene: Scene) -> Terms:
    known = scene.verifier.recall(scene.presented)
    assert isinstance(known, Verified)
    return known.key.terms


async def test_a_key_has_the_terms_of_its_plan_but_for_its_own(store: HeldKeyStore) -> None:
    await named.set_plan(store, "basic", BASIC)
    own = Terms(quota=parse_quota("5000/day"))
    _, key = await issue(store, "basic", own)
    assert (await found(store, key.key_id)).terms == Terms(BASIC.areas, BASIC.rate, own.quota)
    assert (await store.read(key.key_id))[1].terms == own
    _, new, _ = await changes.rotate(store, key.key_id, timedelta(0))
    assert (await found(store, new.key_id)).terms == Terms(BASIC.areas, BASIC.rate, own.quota)
    await changes.change_terms(store, key.key_id, lambda terms: terms, None)
    assert (await found(store, key.key_id)).terms == own


@pytest.mark.parametrize("pushed", [True, False])
async def test_a_changed_plan_reaches_a_worker_with_a_push_or_within_five_seconds(planned: Scene, pushed: bool) -> None:
    await planned.verified()
    assert terms_kept(planned) == BASIC
    await named.set_plan(planned.store, "basic", LARGER)
    if pushed:
        planned.verifier.invalidate(Plan.record_name("basic"))
    else:
        planned.clock.now += 5
    await planned.outcome()
    await planned.settle()
    assert terms_kept(planned) == LARGER


async def test_a_key_whose_plan_is_missing_or_damaged_is_unknown_and_never_unlimited(planned: Scene) -> None:
    for damage in (b"{", b"\xff", None):
        if damage is None:
            await planned.store.client.delete(Plan.record_name("basic"))
        else:
            await planned.store.client.set(Plan.record_name("basic"), damage)
        assert await planned.outcome() == "unknown"
    await named.set_plan(planned.store, "basic", BASIC)
    assert await planned.outcome() == "accepted"


async def test_only_a_plan_without_keys_can_be_removed(planned: Scene) -> None:
    store = planned.store
    with pytest.raises(KeyStoreError, match="1 key uses plan basic"):
        await named.remove_plan(store, "basic")
    await store.revoke(planned.key.key_id)
    assert (await named.remove_plan(store, "basic")).removed
    for refused in (named.remove_plan(store, "basic"), issue(store, "basic"), issue(store, "unknown")):
        with pytest.raises(KeyStoreError, match="no plan"):
            await refused
    _, again = await named.set_plan(store, "basic", LARGER)
    assert (again.revision, again.removed) == (3, False)


async def test_a_key_issued_while_its_plan_is_removed_keeps_it(
    store: HeldKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await named.set_plan(store, "basic", BASIC)
    guards = [await named.guard_of_plan(store, "basic")]
    refuse_used = named._refuse_used

    async def then_issued(store: HeldKeyStore, name: str) -> None:
        await refuse_used(store, name)
        monkeypatch.setattr(named, "_refuse_used", refuse_used)
        await store.issue("acme", "", None, more=MoreOfKey(plan=name), guards=guards)

    monkeypatch.setattr(named, "_refuse_used", then_issued)
    with pytest.raises(KeyStoreError, match="1 key uses"):
        await named.remove_plan(store.acting_for("maria", {1}), "basic")  # as If-Match does
    assert (await named.plan_of(store, "basic"))[1].terms == BASIC


async def test_no_key_gets_a_plan_that_was_changed_meanwhile(store: HeldKeyStore) -> None:
    await named.set_plan(store, "basic", BASIC)
    guards = [await named.guard_of_plan(store, "basic")]
    await named.remove_plan(store, "basic")
    with pytest.raises(KeyStoreError, match="nothing was issued"):
        await store.issue("acme", "", None, more=MoreOfKey(plan="basic"), guards=guards)


async def test_the_trail_has_each_version(store: HeldKeyStore) -> None:
    for terms in (BASIC, LARGER, LARGER):
        await named.set_plan(store, "basic", terms)
    await named.remove_plan(store, "basic")
    lines = [line.change async for line in audit.oldest_first(store.redis) if line.change]
    assert [(line.what, line.plan, line.after and line.after.terms) for line in lines] == [
        ("plan-set", "basic", BASIC),
        ("plan-set", "basic", LARGER),
        ("plan-removed", "basic", LARGER),
    ]
    assert audit.describe_change(lines[0]) == f"plan basic was set by {lines[0].by}"


async def test_a_backup_restores_plans_and_newer_ones_stay(planned: Scene) -> None:
    store = planned.store
    before, lines = await found(store, planned.key.key_id), await dumped(store)
    await named.set_plan(store, "basic", LARGER)
    assert (await imported(store, lines)).plans == 0
    assert (await named.plan_of(store, "basic"))[1].terms == LARGER
    await store.client.set(Plan.record_name("basic"), b"{")
    assert (await imported(store, lines)).plans == 1
    await store.client.flushall()
    assert (await imported(store, lines)).plans == 1
    assert await found(store, planned.key.key_id) == before


async def test_a_partner_s_limits_reach_its_keys_trail_and_backups(planned: Scene) -> None:
    store, shared = planned.store, Terms(rate=parse_rate("100/s"), quota=parse_quota("9000/day"))
    await planned.verified()
    await named.set_partner(store, "acme", shared, "data@acme.example")
    planned.verifier.invalidate(Partner.record_name("acme"))
    await planned.outcome()
    await planned.settle()
    known = planned.verifier.recall(planned.presented)
    assert isinstance(known, Verified)
    assert known.key.shared is not None
    assert (known.key.shared.terms, known.key.terms) == (shared, BASIC)
    lines = await dumped(store)
    await store.client.flushall()
    assert (await imported(store, lines)).partners == 1
    assert (await found(store, planned.key.key_id)).shared == known.key.shared
    trail = [line.change async for line in audit.oldest_first(store.redis) if line.change]
    assert [line.partner for line in trail if line.what == "partner-set"] == ["acme"]


async def test_a_test_key_has_no_part_in_what_live_keys_share(store: HeldKeyStore) -> None:
    await named.set_partner(store, "acme", Terms(quota=parse_quota("100/month")), "")
    found = [await store.find((await store.issue("acme", "", None, test=test))[1].key_id) for test in (False, True)]
    assert [one.key is not None and one.key.shared is not None for one in found] == [True, False]


async def test_a_limit_of_a_partner_below_that_of_its_key_is_refused_both_ways(store: HeldKeyStore) -> None:
    _, key = await issue(store, None, Terms(rate=parse_rate("50/s"), quota=parse_quota("100/day")))
    for lower in (Terms(rate=parse_rate("10/s")), Terms(quota=parse_quota("99/day"))):
        with pytest.raises(KeyStoreError, match=f"key {key.key_id} has a"):
            await named.set_partner(store, "acme", lower, "")
    await named.set_partner(store, "acme", Terms(rate=parse_rate("50/s"), quota=parse_quota("100/month")), "")
    with pytest.raises(KeyStoreError, match="above the 50/s"):
        await issue(store, None, Terms(rate=parse_rate("51/s")))
    with pytest.raises(KeyStoreError, match="above the 50/s"):
        await changes.change_terms(store, key.key_id, lambda _: Terms(rate=parse_rate("51/s")))


async def listed(store: HeldKeyStore) -> set[str]:
    return await UsageReport(store.redis).listed(named.list_of_keys("acme"))


async def test_the_list_of_a_partner_s_keys_has_each_of_them(store: HeldKeyStore) -> None:
    _, before = await store.issue("acme", "", None)  # as by an earlier version
    _, revoked = await store.issue("acme", "", None)
    await store.revoke(revoked.key_id)
    await store.issue("other", "", None)
    await named.set_partner(store, "acme", NO_TERMS, "")
    _, issued = await issue(store, None)
    _, rotated, _ = await changes.rotate(store, issued.key_id, timedelta(0))
    ours = {before.key_id, revoked.key_id, issued.key_id, rotated.key_id}
    assert await listed(store) == ours
    lines = await dumped(store)
    await store.client.flushall()
    await imported(store, lines, dry_run=True)
    assert await listed(store) == set()
    await imported(store, lines)
    assert await listed(store) == ours


async def test_a_key_is_issued_even_if_the_list_of_its_partner_s_keys_is_damaged(store: HeldKeyStore) -> None:
    await store.client.set(named.list_of_keys("acme"), "damaged")
    _, key = await issue(store, None)
    assert await found(store, key.key_id) == key


async def test_partner_usage_needs_a_partner(store: HeldKeyStore) -> None:
    terms = Terms(areas=(PARTNER_USAGE,))
    _, key = await issue(store, None)
    for refused in (issue(store, None, terms), changes.change_terms(store, key.key_id, lambda _: terms)):
        with pytest.raises(
            KeyStoreError, match="partner-usage needs a partner: run `forecast partners set acme` first"
        ):
            await refused
    await named.set_partner(store, "acme", NO_TERMS, "")
    await issue(store, None, terms)
