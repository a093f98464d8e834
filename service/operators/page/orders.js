// Calls the endpoints for keys. The page's one dialog asks for what a change needs, and stays until it is accepted.

import { byId, say } from "./dom.js";
import { NOTHING, count } from "./format.js";
import { keptInTab, reached } from "./live.js";

const UNITS = { 1: "second", 60: "minute", 3600: "hour" };

export const token = keptInTab("forecast.keys-token");
export const actor = keptInTab("forecast.actor");

export const rateOf = (rate) => (rate ? `${count(rate.requests)} a ${UNITS[rate.seconds] ?? `${rate.seconds} s`}, ${count(rate.burst)} at once` : NOTHING);
export const quotaOf = (quota) => (quota ? `${count(quota.requests)} a ${quota.period}` : NOTHING);
export const areasOf = (areas) => areas?.join(", ") ?? NOTHING;

const words = new Map(); // the Idempotency-Key of each request that has not succeeded yet, by path and body
let current = null; // what the dialog is for

/**
 * Calls an endpoint. Returns its `body`, and its ETag as `tag`. The call changes the revision `match` only, or with `absent`
 * creates something new. With `once`, a retry makes no second key. Throws an Error with the instance's message; if the
 * instance answered, it has `status` and `code`.
 */
export async function call(method, path, { order, match, absent, once } = {}) {
  const body = order && JSON.stringify(order);
  const sent = `${path} ${body}`;
  if (once && !words.has(sent)) words.set(sent, crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const headers = Object.entries({
    Authorization: token.get() && `Bearer ${token.get()}`,
    "Content-Type": body && "application/json",
    "X-Actor": actor.get(),
    "If-Match": match,
    "If-None-Match": absent && "*",
    "Idempotency-Key": once && words.get(sent),
  }).filter(([, value]) => value);
  const response = await reached(fetch(`../${path}`, { method, headers, body, cache: "no-store", credentials: "omit" }));
  if (!response.ok) {
    const { code, detail = `The instance answered ${response.status}.` } = await response.json().catch(() => ({}));
    throw Object.assign(new Error(detail), { status: response.status, code });
  }
  const answer = { body: await reached(response.json()), tag: response.headers.get("ETag") };
  words.delete(sent);
  return answer;
}

/** Calls `act` with the fields of `form` when it is submitted, once at a time, and shows in the form why it failed. */
export function onSubmit(form, act) {
  const problem = form.querySelector("[role=alert]");
  let busy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    say(problem, "");
    await act(form.elements).catch((error) => say(problem, error.message));
    busy = false;
  });
}

/**
 * Opens the dialog with the fields of the template `name`. `fill` fills them, and `orderOf` returns the arguments of the call
 * that they order. `done` gets the answer; `outdated` is called instead if somebody else was faster.
 */
export function askFor(name, order) {
  const template = byId(name);
  const fields = byId("order-fields");
  fields.replaceChildren(template.content.cloneNode(true));
  fields.querySelectorAll("slot").forEach((slot) => slot.replaceWith(byId(slot.name).content.cloneNode(true)));
  say(byId("dialog-title"), order.title ?? template.dataset.title);
  say(byId("confirm"), template.dataset.confirm);
  say(byId("order").querySelector("[role=alert]"), "");
  order.fill?.(byId("order").elements);
  current = order;
  byId("dialog").showModal();
}

onSubmit(byId("order"), async (fields) => {
  const { orderOf, done, outdated } = current;
  let finish = outdated;
  try {
    const { body } = await call(...orderOf(fields));
    finish = () => done(body);
  } catch (error) {
    if (error.status !== 412) throw error;
  }
  byId("dialog").close();
  await finish();
});
byId("cancel").addEventListener("click", () => byId("dialog").close());
byId("dialog").addEventListener("close", ({ target }) => { // sent later: the dialog may be open again by now
  if (!target.open) byId("order-fields").replaceChildren();
});

export function fillLimits(fields, { rate, quota, areas }) {
  if (rate) [fields.rate.value, fields.seconds.value, fields.burst.value] = [rate.requests, rate.seconds, rate.burst];
  if (quota) [fields.quota.value, fields.period.value] = [quota.requests, quota.period];
  if (quota?.warn_at) fields.warn.value = Math.round(quota.warn_at * 1e4) / 100;
  if (areas) fields.areas.value = areas.join(", ");
}

/** Returns the terms in the fields; null for each that is empty. The limits of a partner have no areas. */
export function limitsIn({ rate, seconds, burst, quota, period, warn, areas }) {
  const names = areas?.value.split(",").map((name) => name.trim()).filter(Boolean);
  return {
    rate: rate.value ? { requests: Number(rate.value), seconds: Number(seconds.value), burst: Number(burst.value) || null } : null,
    quota: quota.value ? { requests: Number(quota.value), period: period.value, warn_at: Number(warn.value) / 100 } : null,
    ...(names && { areas: names.length ? names : null }),
  };
}

export const endIn = ({ end }) => (end.value ? `${end.value}T00:00:00Z` : null);
