// Fills every section of the page except the charts from one overview.

import { byId, fillOr, fillRows, fillTerms, make, say, sayLive } from "./dom.js";
import { NOTHING, age, bytes, clock, count, percent, rate, spanOf, took } from "./format.js";

const MEANS = {
  200: "found", 304: "not modified", 400: "bad request", 401: "no valid key", 403: "not entitled", 404: "not found",
  405: "wrong method", 406: "not acceptable", 408: "request timeout", 413: "too large", 414: "too long",
  429: "over a limit", 431: "headers too large", 500: "internal error", 503: "unavailable",
};

const answered = (hits) => hits.near + hits.shared + hits.warehouse;
const ratio = (part, whole) => (whole ? part / whole : null);

/** Shows the summary: request rate, errors, hit rates, latency and the current release. */
export function showGist(overview) {
  const { traffic_now: traffic, hit_rate_now: hits } = overview;
  const current = overview.releases.find((release) => release.current);
  const release = current ? releaseOf(current, overview.at) : "No release is current.";
  sayLive(byId("gist"), traffic.requests === 0
    ? `No requests in the last ${age(traffic.seconds)}. ${release}`
    : `${rate(traffic.requests)} requests a second, ${errorsOf(traffic)}. ${tiersOf(hits)} ${timesOf(traffic)} ${release}`);
}

function releaseOf({ id, illustrative, published_at: published }, at) {
  return `Release ${id}${illustrative ? " (made-up figures)" : ""}${published ? `, ${age(at - published)} old` : ""}.`;
}

const errorsOf = (traffic) => (traffic.errors
  ? `${percent(traffic.errors / traffic.requests)} of them failed (5xx)`
  : "none failed");

function tiersOf(hits) {
  const all = answered(hits);
  if (!all) return "No request was answered with figures.";
  return `${percent(hits.near / all)} of answers come from near caches, ${percent(hits.shared / all)} from Redis, `
    + `${percent(hits.warehouse / all)} from DuckDB.`;
}

const timesOf = ({ p50, p99 }) => (p50 === null ? "" : `Half take at most ${took(p50)}, 99 % at most ${took(p99)}.`);

export function showAnswers({ traffic_now: now, traffic_hour: hour, hit_rate_now: hits, hit_rate_hour: hourly }) {
  say(byId("span-now"), spanOf(now.seconds, 60, "minute"));
  say(byId("span-hour"), spanOf(hour.seconds, 3600, "hour"));
  const pair = (name, of, show) => [name, show(of[0]), show(of[1])];
  const bad = (row, ...values) => [row[0], ...row.slice(1).map((text, at) => ({ text, tone: values[at] ? "bad" : "" }))];
  const share = (tier) => [ratio(hits[tier], answered(hits)), ratio(hourly[tier], answered(hourly))];
  fillRows(byId("requests"), [
    pair("Requests a second", [now.requests, hour.requests], rate),
    bad(pair("failed (5xx) a second", [now.errors, hour.errors], rate), now.errors, hour.errors),
  ]);
  fillRows(byId("hits"), [
    pair("Hit rate", [hits.rate, hourly.rate], percent),
    pair("from near caches", share("near"), percent),
    pair("from Redis", share("shared"), percent),
    pair("from DuckDB (missed)", share("warehouse"), percent),
    ...(hits.previous || hourly.previous
      ? [bad(pair("of the previous release", [hits.previous, hourly.previous], count), hits.previous, hourly.previous)] : []),
    pair("unknown names a second", [hits, hourly].map((span) => ratio(span.not_found, span.seconds)), rate),
  ]);
  fillRows(byId("times"), [
    pair("Median time", [now.p50, hour.p50], took),
    pair("p99", [now.p99, hour.p99], took),
    pair("p99.9", [now.p999, hour.p999], took),
  ]);
  const statuses = Object.keys({ ...now.by_status, ...hour.by_status }).sort();
  fillRows(byId("statuses"), [["Status, a second", "", ""], ...statuses.map((status) => {
    const values = [now.by_status[status] ?? 0, hour.by_status[status] ?? 0];
    const row = pair(`${status} ${MEANS[status] ?? ""}`, values, rate);
    return status >= "500" ? bad(row, ...values) : row;
  })]);
}

export function showReleases({ at, releases, switch: last }) {
  fillOr(byId("releases").tBodies[0], releases.map((release) => [
    release.id,
    [release.current ? "current" : "earlier", release.illustrative ? "made-up figures" : ""].filter(Boolean).join(", "),
    release.published_at ? clock(release.published_at, at) : NOTHING,
    release.published_at ? age(at - release.published_at) : NOTHING,
  ]), "No release has been published.");
  sayLive(byId("switch"), last ? switchOf(last, at) : "No switch since the instance started.");
}

function switchOf({ at, before, after, rate_before: earlier, rate_after: later }, now) {
  const rateOf = (share) => (share === null ? "no requests" : percent(share));
  return `Last switch at ${clock(at, now)}, ${age(now - at)} ago, from ${before} to ${after}. `
    + `Hit rate in the 5 minutes before: ${rateOf(earlier)}; ${now - at < 300 ? "since then" : "in the 5 minutes after"}: `
    + `${rateOf(later)}.`;
}

export function showEvents({ at, events }) {
  fillOr(byId("events").tBodies[0], events.map((event) => [clock(event.at, at), event.kind, event.text]),
    "No events since the instance started.");
}

export function showPartners({ at, partners, rankings }) {
  say(byId("partners-span"), `${aboutSpan(rankings)}; the busiest 100`);
  const wanted = byId("partners-filter").value.trim().toLowerCase();
  const row = (one) => [one.name, count(one.requests), rate(one.per_second),
    Object.entries(one.statuses).map(([status, number]) => `${status}: ${count(number)}`).join(", "),
    took(one.p50), took(one.p99), percent(one.hit_rate), limitOf(one.quota_used),
    limitOf(one.rate === null ? null : one.per_second / one.rate), errorOf(one.last_error, at)];
  const rows = partners.map(row).filter((cells) => [cells[0], cells[3], cells[9]].join(" ").toLowerCase().includes(wanted));
  fillOr(byId("partners").tBodies[0], rows, wanted ? "No partner matches the filter." : "No requests.");
}

const limitOf = (share) => ({ text: share === null ? NOTHING : percent(Math.min(share, 1)), tone: share >= 0.8 ? "warn" : "" });

function errorOf(text, at) {
  const [time, status, code] = text.split(" ");
  return text ? `${clock(Date.parse(time) / 1000, at)} ${status} ${code}` : "none";
}

const aboutSpan = ({ seconds }) => `in about ${spanOf(seconds, 3600, "hour").replace("Last", "the last")}, counts are estimates`;

const RANKINGS = [
  ["queries", "Most frequent queries", "Query", "No queries."],
  ["missed", "Most cache misses", "Query", "No cache misses."],
  ["unknown", "Unknown names (404)", "Query", "No unknown names."],
  ["keys", "Most active keys", "Key", "No requests."],
  ["limited", "Over a limit (429)", "Key", "No key."],
  ["refused", "Refused (401)", "From", "No requests."],
];
const SHOWN = 8;

export function showRankings({ rankings }) {
  say(byId("rankings-span"), aboutSpan(rankings));
  for (const [field, title, what, nothing] of RANKINGS) {
    const table = byId(`ranking-${field}`) ?? makeRanking(field, title, what);
    fillOr(table.tBodies[0], rankings[field].slice(0, SHOWN).map((line) => [
      line.detail ? `${line.name} · ${line.detail}` : line.name,
      line.error ? `${count(line.count - line.error)} to ${count(line.count)}` : count(line.count),
    ]), nothing);
  }
}

function makeRanking(field, title, what) {
  const head = make("thead", {}, make("tr", {},
    make("th", { scope: "col" }, what), make("th", { scope: "col", class: "number" }, "Count")));
  const table = make("table", { id: `ranking-${field}`, "aria-labelledby": `${field}-title` }, head, make("tbody"));
  byId("rankings").append(make("div", {}, make("h3", { id: `${field}-title` }, title), table));
  return table;
}

const TONES = { serving: "", starting: "warn", leaving: "warn", hanging: "bad" };

export function showWorkers({ at, workers, instance }) {
  say(byId("restarts"), `${instance.restarts ? count(instance.restarts) : "none"} replaced since the start`);
  fillOr(byId("workers").tBodies[0], workers.map((worker) => [
    String(worker.pid),
    { text: worker.state, tone: TONES[worker.state] },
    worker.release ?? NOTHING,
    rate(worker.requests),
    took(worker.p99),
    count(worker.connections),
    bytes(worker.memory),
    worker.near_entries ? `${count(worker.near_entries)} in ${bytes(worker.near_bytes)}` : "empty",
    age(at - worker.started_at),
  ]), "No worker runs.");
}

export function showStores({ stores, workers }) {
  const pushes = (store) => {
    if (store.pushed === null) return { text: NOTHING };
    return { text: `to ${store.pushed} of ${workers.length} workers`, tone: store.pushed < workers.length ? "warn" : "" };
  };
  fillOr(byId("stores").tBodies[0], stores.map((store) => [
    store.name,
    store.up ? { text: "up" } : { text: "unreachable", tone: "bad" },
    store.memory_limit ? `${bytes(store.memory)} of ${bytes(store.memory_limit)}` : bytes(store.memory),
    count(store.evicted),
    took(store.latency),
    pushes(store),
  ]), "Not known yet.");
}

export function showRest({ at, warehouse, inbox, keys, instance }) {
  fillTerms(byId("warehouse"), [
    ["Waiting look-ups", count(warehouse.waiting), warehouse.waiting ? "warn" : ""],
    ["Look-ups a second", rate(warehouse.queries)],
    ["Median time", took(warehouse.p50)],
    ["p99", took(warehouse.p99)],
  ]);
  const bad = (number) => (number ? "bad" : "");
  fillTerms(byId("inbox"), [
    ["Watched here", inbox.watched ? "yes" : "no"],
    ["Published", count(inbox.published)],
    ["Waiting", count(inbox.waiting)],
    ["Not a drop", count(inbox.ignored), inbox.ignored ? "warn" : ""],
    ["Held for approval", count(inbox.held), inbox.held ? "warn" : ""],
    ["Refused", count(inbox.refused)],
    ["Failing", count(inbox.failing), bad(inbox.failing)],
    ["Last drop", inbox.last_drop_at === null ? NOTHING : `${age(at - inbox.last_drop_at)} ago`],
    ["Next drop", inbox.overdue ? `overdue by ${age(inbox.overdue)}` : "not overdue", inbox.overdue ? "warn" : ""],
  ]);
  fillTerms(byId("keys"), [
    ["Expire within 7 days", count(keys.expire_within_7_days), keys.expire_within_7_days ? "warn" : ""],
    ["Expire within 30 days", count(keys.expire_within_30_days)],
  ]);
  const free = instance.disk_free;
  fillTerms(byId("machine"), [
    ["Host", instance.host],
    ["Instance", instance.id],
    ["Process", String(instance.pid)],
    ["Version", instance.version],
    ["Running for", age(at - instance.started_at)],
    ["Open connections", count(instance.connections)],
    ["Data folder", instance.data_folder],
    ["Free disk", instance.disk_size ? `${bytes(free)} of ${bytes(instance.disk_size)}` : bytes(free),
      free !== null && instance.disk_size && free < instance.disk_size * 0.1 ? "warn" : ""],
  ]);
}
