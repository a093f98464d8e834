// Plans, and the limits that all keys of a partner share: their tables, and the dialog that sets them.

import { byId, fillOr, make, say } from "./dom.js";
import { count } from "./format.js";
import { areasOf, askFor, call, fillLimits, limitsIn, quotaOf, rateOf } from "./orders.js";

const KINDS = { plans: "Set a plan", partners: "Set the limits of a partner" };

/** What was read last, by name. */
export const named = { plans: new Map(), partners: new Map() };

/** Reads plans and partners, and shows them. */
export const showNamed = () => Promise.all(Object.keys(KINDS).map((kind) => show(kind)));

async function show(kind, problem = "") {
  try {
    const { body } = await call("GET", kind);
    named[kind] = new Map(body[kind].map((one) => [one.name, one]));
    problem ||= body.damaged.map(({ key_id: name, reason }) => `${name}: ${reason}.`).join(" ");
  } catch (error) {
    problem ||= error.message;
  }
  say(byId(`${kind}-problem`), problem);
  const all = [...named[kind].values()];
  const rows = byId(kind).tBodies[0];
  fillOr(rows, all.map(({ name, terms: { rate, quota, areas }, contact, keys }) => [name, rateOf(rate), quotaOf(quota), contact ?? areasOf(areas), count(keys)]), "None.");
  all.forEach((one, at) => {
    const button = make("button", { type: "button", class: "link", "aria-label": `${one.name}: change` }, one.name);
    button.addEventListener("click", () => set(kind, one));
    rows.rows[at].cells[0].replaceChildren(button);
  });
  document.querySelectorAll("select[name=plan]").forEach((list) => offerPlans(list)); // an open dialog may have one
}

/** Puts the plans into a list to choose from. */
export function offerPlans(list, chosen = list.value) {
  const names = new Set([...named.plans.keys(), ...(chosen ? [chosen] : [])]);
  list.replaceChildren(list.options[0], ...[...names].map((value) => make("option", { value }, value)));
  list.value = chosen;
}

function set(kind, one) {
  const again = (problem) => show(kind, problem).then(() => byId(`${kind}-title`).focus());
  askFor("named", {
    title: KINDS[kind],
    fill: (fields) => {
      fields[kind === "plans" ? "contact" : "areas"].parentNode.remove();
      if (!one) return;
      [fields.name.value, fields.name.readOnly] = [one.name, true];
      if (fields.contact) fields.contact.value = one.contact;
      fillLimits(fields, one.terms);
    },
    orderOf: (fields) => ["PUT", `${kind}/${encodeURIComponent(fields.name.value.trim())}`, {
      order: { terms: limitsIn(fields), ...(fields.contact && { contact: fields.contact.value }) },
      ...(one ? { match: `"${one.revision}"` } : { absent: true }),
    }],
    done: () => again(),
    outdated: () => again(one ? "Somebody else changed it meanwhile, and your change was not made. The table shows it as it is now."
      : "It exists already, and was not changed. Choose it in the table to change it."),
  });
}

for (const kind of Object.keys(KINDS)) byId(`add-${kind}`).addEventListener("click", () => set(kind));
