// The page for keys: asks for the token, searches and issues keys. The view of a key has its id after the #.

import { byId, fillOr, keepRoles, make, say } from "./dom.js";
import { NOTHING, utc } from "./format.js";
import { TONES, handOver, leaveKey, showKey } from "./key.js";
import { SENDABLE } from "./live.js";
import { offerPlans, showNamed } from "./named.js";
import { actor, askFor, call, endIn, limitsIn, onSubmit, token } from "./orders.js";

const ID = /^[0-9A-Za-z]{12}$/;
const WHOLE = /phf_(?:live|test)_([0-9A-Za-z]{12})_/;
const LISTED = 50;
const MOST_LISTED = 1000;

const problem = byId("search").querySelector("[role=alert]");
let filter = []; // of the last search
let keys = []; // those that are listed
let next = null; // where the list goes on
let last = null; // the view that is shown: the id of a key, or "" for the list
const partners = new Set(); // all that were listed, for suggestions

/** Reads keys: more of them, or the same search from the start. */
async function find(more = false) {
  const limit = more ? LISTED : Math.min(MOST_LISTED, Math.max(LISTED, keys.length));
  const { body } = await call("GET", `keys?${new URLSearchParams([...filter, ["limit", limit], ...(more ? [["cursor", next]] : [])])}`);
  keys = more ? [...keys, ...body.keys] : body.keys;
  next = body.next_cursor;
  byId("more").hidden = next === null;
  say(byId("found"), keys.length < body.total ? `${keys.length} of ${body.total} shown` : `${body.total} found`);
  say(byId("damaged"), body.damaged.map(({ key_id: id, reason }) => `${id}: ${reason}.`).join(" "));
  const rows = byId("keys").tBodies[0];
  fillOr(rows, keys.map((key) => [
    key.key_id, key.partner, key.label || NOTHING, key.plan ?? NOTHING,
    { text: key.test ? `${key.status}, test` : key.status, tone: TONES[key.status] },
    utc(key.last_used), key.expires_at ? utc(key.expires_at) : "never",
  ]), "No key matches.");
  keys.forEach(({ key_id: id, partner }, at) => {
    rows.rows[at].cells[0].replaceChildren(make("a", { href: `#${id}` }, id));
    partners.add(partner);
  });
  byId("partner-names").replaceChildren(...[...partners].map((value) => make("option", { value })));
}

/** Shows the view that the address names. */
async function route() {
  const name = location.hash.slice(1);
  const id = ID.test(name) ? name : "";
  if (name !== id && last !== null) return; // a link within the page
  leaveKey(id);
  if (token.get() === null) {
    wantToken({});
    return;
  }
  byId("token").hidden = true;
  byId("forget").hidden = false;
  byId("list").hidden = id !== "";
  byId("one").hidden = id === "";
  [problem, byId("key-problem")].forEach((node) => say(node, ""));
  const before = last;
  last = id;
  try {
    await (id ? showKey(id) : showList(before));
  } catch (error) {
    if (error.status === 401 || error.status === 403 || error.code === "not_found") wantToken(error);
    else if (!id) say(problem, error.message);
  }
}

async function showList(before) {
  document.title = "API keys · forecast";
  await find();
  // the browser takes the focus from a hidden link only when it next renders
  const lost = document.activeElement === document.body || byId("one").contains(document.activeElement);
  if (before && lost) (byId("keys").querySelector(`a[href="#${before}"]`) ?? byId("keys-title")).focus();
  await showNamed();
}

function wantToken({ code, message = "" }) {
  say(byId("token-problem"), code === "not_found" ? "This instance has no keys token. Set FORECAST_OPERATOR_KEYS_TOKEN and restart it." : message);
  token.forget();
  last = null;
  byId("list").hidden = byId("one").hidden = byId("forget").hidden = true;
  byId("token").hidden = false;
  byId("token-field").focus();
}

onSubmit(byId("token-form"), async () => {
  const entered = byId("token-field").value.trim();
  byId("token-field").value = "";
  if (!SENDABLE.test(entered)) throw new Error("This token is not accepted here. It was not stored.");
  token.keep(entered);
  await route();
});

onSubmit(byId("search"), async (fields) => {
  const entered = [...new FormData(byId("search"))].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value);
  const text = entered.flat().join(" ");
  const id = WHOLE.exec(text)?.[1] ?? fields.id.value.trim();
  if (id || text.includes("phf_")) byId("search").reset(); // a key must not get into an address
  if (id && !ID.test(id)) throw new Error("This is not the id of a key, which has 12 letters and digits.");
  if (!id && text.includes("phf_")) throw new Error("This is a part of a key. Search by the id of the key.");
  [filter, keys] = [id ? [] : entered, []];
  if (id) location.hash = id;
  else await find();
});

byId("more").addEventListener("click", async () => {
  const shown = keys.length;
  await find(true).catch((error) => say(problem, error.message));
  byId("keys").tBodies[0].rows[shown]?.querySelector("a").focus();
});

byId("issue-key").addEventListener("click", () => askFor("issue", {
  fill: ({ partner, plan }) => {
    partner.value = byId("search").elements.partner.value;
    offerPlans(plan);
  },
  orderOf: (fields) => ["POST", "keys", { once: true, order: {
    partner: fields.partner.value, label: fields.label.value, plan: fields.plan.value || null, terms: limitsIn(fields),
    expires_at: endIn(fields), test: fields.test.checked, deliver: fields.deliver.value,
  } }],
  done: handOver,
}));

byId("forget").addEventListener("click", () => {
  token.forget();
  location.reload();
});

byId("actor").value = actor.get() ?? "";
byId("actor").addEventListener("change", ({ target }) => target.reportValidity() && actor.keep(target.value));
window.addEventListener("hashchange", route);
document.querySelectorAll(".stack").forEach(keepRoles);
route();
