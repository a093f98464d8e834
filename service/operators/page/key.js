// One key: its terms, quota, usage and errors, and what can be done with it.

import { byId, fillOr, fillRows, fillTerms, make, say } from "./dom.js";
import { NOTHING, count, utc } from "./format.js";
import { named, offerPlans, showNamed } from "./named.js";
import { areasOf, askFor, call, endIn, fillLimits, limitsIn, quotaOf, rateOf } from "./orders.js";

export const TONES = { suspended: "warn", expired: "warn", revoked: "bad", void: "bad" };
const DAYS = 30;
const DAY = 86_400_000; // ms
const ACTIONS = {
  suspend: { done: "The key is suspended.", body: ({ reason }) => ({ reason: reason.value }) },
  resume: { done: "The key works again." },
  rotate: { once: true, body: ({ days, deliver }) => ({ overlap_seconds: days.value * 86_400, deliver: deliver.value }) },
  change: {
    done: "The key is changed.",
    fill: (fields) => {
      offerPlans(fields.plan, key.plan ?? "");
      fields.end.defaultValue = key.expires_at ? utc(key.expires_at).slice(0, 10) : "";
      fillLimits(fields, key.terms);
    },
    body: (fields) => ({
      plan: fields.plan.value || null,
      terms: limitsIn(fields),
      ...(fields.end.value !== fields.end.defaultValue && { expires_at: endIn(fields) }), // a suspended key refuses an end
    }),
  },
  revoke: {
    done: "The key is revoked.",
    fill: ({ typed }) => {
      typed.pattern = key.key_id.slice(-4);
      say(byId("order").querySelector("code"), typed.pattern);
    },
  },
};

let wanted = ""; // the id of the key to show
let key = null; // the key that is shown
let tag = null; // its ETag
let handed = null; // the key that was issued last, while it is shown

/** Shows the key `id` and moves the focus there. If it cannot be read, it shows and throws the error. */
export async function showKey(id, { done = "", problem = "" } = {}) {
  say(byId("key-title"), `Key ${id}`);
  document.title = `${id} · API keys`;
  wanted = id;
  const [found] = await Promise.all([call("GET", `keys/${id}`), showNamed()]).catch((error) => {
    if (wanted === id) say(byId("key-problem"), error.message);
    throw error;
  });
  if (wanted !== id) return; // the view was left meanwhile
  [key, tag] = [found.body, found.tag];
  showFacts();
  for (const button of byId("actions").children) button.hidden = !button.dataset.if.includes(key.status);
  byId("details").hidden = false;
  say(byId("key-done"), done);
  say(byId("key-problem"), problem);
  byId(handed && !done ? "handed-title" : "key-title").focus();
  const since = new Date(Date.now() - (DAYS - 1) * DAY).toISOString().slice(0, 10);
  await Promise.all([show("usage", `usage?from=${since}`, showUsage), show("errors", "errors", showErrors)]);
}

/** Takes the key out of the page, and what is handed over unless it is of the key `next`. */
export function leaveKey(next) {
  [wanted, key] = [next, null];
  if (handed?.key_id !== next) handed = null;
  byId("details").hidden = true;
  say(byId("key-done"), "");
  showHanded();
}

/** Opens the view of a new key, with its link or secret. */
export function handOver(issued) {
  handed = issued;
  location.hash = issued.key_id;
}

function showHanded() {
  const { partner, link, link_ends_at: ends, key: secret, old } = handed ?? {};
  byId("handed").hidden = handed === null;
  say(byId("handed-title"), link ? `Send this link to ${partner}` : `The new key of ${partner}`);
  say(byId("handed-value"), link ?? secret ?? "");
  say(byId("handed-note"), (link ? `It shows the key once, until ${utc(ends)} UTC. The first person who opens it gets the key.`
    : "Copy it now: it is not shown again.") + (old ? ` The old key works until ${utc(old.expires_at)} UTC.` : ""));
  say(byId("copied"), "");
}

function showFacts() {
  const { suspended, revoked_at: revoked, rotated_from: from, rotated_to: to } = key;
  const { rate, quota } = named.partners.get(key.partner)?.terms ?? {};
  const why = suspended ? ` since ${utc(suspended.at)} by ${suspended.by}: ${suspended.reason}` : "";
  say(byId("key-title"), [key.partner, key.label, key.key_id].filter(Boolean).join(" · "));
  fillTerms(byId("facts"), [
    ["Status", `${key.status}${revoked ? ` since ${utc(revoked)}` : why}`, TONES[key.status]],
    ["Last used", utc(key.last_used)],
    ["Works from", key.not_before && utc(key.not_before)],
    ["Ends", key.expires_at ? utc(key.expires_at) : "never"],
    ["Issued", `${utc(key.created_at)}${key.test ? ", as a test key" : ""}`],
    ["Replaces", from],
    ["Replaced by", to],
    ["Plan", key.plan ?? "none"],
    ["Rate", termOf("rate", rateOf) ?? "no limit"],
    ["Quota", termOf("quota", quotaOf) ?? "no limit"],
    ["Areas", termOf("areas", areasOf) ?? "all"],
    ["Rate of all keys of the partner", rate && rateOf(rate)],
    ["Quota of all keys of the partner", quota && quotaOf(quota)],
  ].filter(([, value]) => value));
  for (const node of byId("facts").querySelectorAll("dd")) {
    if ([from, to].includes(node.textContent)) node.replaceChildren(make("a", { href: `#${node.textContent}` }, node.textContent));
  }
}

/** Describes a term that is in force, and the plan's. */
function termOf(term, format) {
  const [own, plan] = [key.terms[term], named.plans.get(key.plan)?.terms[term]];
  if (!own) return plan && `${format(plan)}, as in the plan`;
  return format(own) + (plan ? `; in the plan: ${format(plan)}` : "");
}

async function show(kind, path, fill) {
  const { key_id: id } = key;
  byId(kind).hidden = true;
  say(byId(`${kind}-problem`), "");
  try {
    const { body } = await call("GET", `keys/${id}/${path}`);
    if (key?.key_id !== id) return;
    fill(body);
    byId(kind).hidden = false;
  } catch (error) {
    say(byId(`${kind}-problem`), error.message);
  }
}

function showUsage({ limits, shared_limits: shared, period, days }) {
  const quotas = [["Quota", limits], ["Quota of all keys of the partner", shared]]
    .filter(([, holder]) => holder?.quota)
    .map(([name, { quota, remaining }]) => ({ name, remaining, whole: quota.split("/")[0], span: quota.split("/")[1] }));
  say(byId("quota"), quotas.map(({ name, remaining, whole, span }) =>
    `${name}: ${count(remaining)} of ${count(whole)} left this ${span}`).join(". ") || "Quota: no limit");
  const [{ whole, remaining } = {}] = quotas.toSorted((one, other) => one.remaining - other.remaining);
  Object.assign(byId("quota-left"), { hidden: !whole, max: whole ?? 1, low: whole / 5 || 0, value: remaining ?? 0 });
  const sums = new Map(Array.from({ length: DAYS }, (_, at) => [utc(Date.parse(period.from) + at * DAY), [0, 0]]));
  for (const { date, answered, not_modified: unchanged, not_found: missing, rejected } of days) {
    const sum = sums.get(date) ?? [0, 0]; // of a day that has begun meanwhile
    sum[0] += answered + unchanged;
    sum[1] += missing + rejected;
  }
  const rows = [...sums];
  const total = (at) => count(rows.reduce((all, [, sum]) => all + sum[at], 0));
  const most = Math.max(...rows.map(([, [billable, other]]) => billable + other));
  say(byId("total"), `${total(0)} billable and ${total(1)} other requests, at most ${count(most)} in a day.`);
  byId("bars").setAttribute("aria-label", `Chart: ${byId("total").textContent} The table below has every day.`);
  byId("bars").replaceChildren(...rows.flatMap(([, [billable, other]], at) => {
    const [low, high] = [billable, other].map((number) => (100 * number) / (most || 1));
    return [bar("near", at, 100 - low, low), bar("refused", at, 100 - low - high, high)];
  }));
  [rows[0], rows.at(-1)].forEach(([date], at) => say(byId("axis").children[at], date));
  fillRows(byId("days").tBodies[0], rows.reverse().map(([date, sum]) => [date, ...sum.map(count)]));
}

function bar(tone, at, y, height) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ class: tone, x: at * 10 + 1, y, width: 8, height }).forEach(([name, value]) => node.setAttribute(name, value));
  return node;
}

function showErrors({ errors }) {
  fillOr(byId("errors").querySelector("tbody"), errors.map(({ time, status, code, method, target, request_id: request }) => [
    time.slice(0, 19).replace("T", " "), `${status} ${code}`, `${method} ${target}`, request,
  ]), "None in the last 7 days.");
}

byId("actions").addEventListener("click", ({ target: { dataset: { action } } }) => {
  if (!action) return;
  const { done, once, fill, body } = ACTIONS[action];
  const [{ key_id: id }, match] = [key, tag];
  askFor(action, {
    fill,
    orderOf: (fields) => [...(action === "change" ? ["PATCH", `keys/${id}`] : ["POST", `keys/${id}/${action}`]), { order: body?.(fields), once, match }],
    done: (answer) => (done ? showKey(id, { done }) : handOver(answer)),
    outdated: () => showKey(id, { problem: "Somebody else changed this key meanwhile, and your change was not made. The page shows the key as it is now." }),
  });
});

byId("copy").addEventListener("click", () => {
  getSelection().selectAllChildren(byId("handed-value"));
  say(byId("copied"), document.execCommand("copy") ? "Copied." : "Selected: press Ctrl+C."); // navigator.clipboard needs TLS
});

window.addEventListener("pagehide", () => { // the browser may keep the page
  handed = null;
  showHanded();
});
