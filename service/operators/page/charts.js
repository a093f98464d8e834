// The history as charts, each with its table. Without the library only the tables are shown.

import { byId, fillRow, make, say } from "./dom.js";
import { NOTHING, bytes, clock, count, percent, rate, took } from "./format.js";
import { Plot, load } from "./plot.js";

// The bands of the heat map: each sums up two buckets of `times`.
const BANDS = ["0.25 ms", "1 ms", "5 ms", "25 ms", "100 ms", "500 ms", "2.5 s", "longer"];
const partOf = (part, ...all) => { const sum = all.reduce((a, b) => a + b, 0); return sum ? part / sum : null; };
const ofTier = (tier) => (point) => partOf(point[tier], point.near, point.shared, point.warehouse);
const ofBand = (at) => ({ times }) => partOf(times[2 * at] + times[2 * at + 1], ...times);
const ofEarlier = ({ releases }, current) => {
  const [newest] = Object.keys(releases).filter((name) => name !== current).sort().reverse();
  return releases[newest] ?? null;
};

const FIGURES = [
  { id: "tiers", title: "Answers a second", format: rate, stacked: true, series: [
    { name: "near", tone: "near", of: (point) => point.near },
    { name: "Redis", tone: "shared", of: (point) => point.shared },
    { name: "DuckDB", tone: "warehouse", of: (point) => point.warehouse },
    { name: "404", tone: "unknown", of: (point) => point.not_found },
  ] },
  { id: "rate", title: "Hit rate by tier", format: percent, share: true, stacked: true, series: [
    { name: "near", tone: "near", of: ofTier("near") },
    { name: "Redis", tone: "shared", of: ofTier("shared") },
    { name: "DuckDB (missed)", tone: "warehouse", of: ofTier("warehouse") },
  ] },
  { id: "releases-rate", title: "Hit rate by release", format: percent, share: true, series: [
    { name: "current release", tone: "near", of: ({ releases }, current) => releases[current] ?? null },
    { name: "earlier", tone: "warehouse", dash: [6, 4], of: ofEarlier },
  ] },
  { id: "refusals", title: "Refused and failed a second", format: rate, series: [
    { name: "refused (4xx)", tone: "refused", dash: [6, 4], of: (point) => point.refused },
    { name: "failed (5xx)", tone: "failed", of: (point) => point.failed },
  ] },
  { id: "latency", title: "Time to answer", format: took, log: true, series: [
    { name: "median", tone: "near", of: (point) => point.p50 },
    { name: "p99", tone: "warehouse", dash: [6, 4], of: (point) => point.p99 },
    { name: "p99.9", tone: "failed", dash: [2, 3], of: (point) => point.p999 },
  ] },
  { id: "heat", title: "Requests by time to answer", format: percent, bands: BANDS,
    series: BANDS.map((name, at) => ({ name: at < 7 ? `≤${name}` : name, tone: "near", of: ofBand(at) })) },
  { id: "evictions", title: "Evictions a second", format: rate, series: [
    { name: "evicted", tone: "warehouse", of: (point) => point.evictions },
  ] },
  { id: "cache", title: "Cache memory", format: bytes, series: [
    { name: "used", tone: "shared", of: (point) => point.cache_bytes },
  ] },
  { id: "connections", title: "Connections", format: count, whole: true, series: [
    { name: "open", tone: "near", of: (point) => point.connections },
  ] },
];

const SHORTEST = 60; // s: the shortest time axis, for a young instance

/** All charts of the history. Call `begin` once, then `show` for each update. */
export class Charts {
  constructor() {
    this.figures = FIGURES.map((figure) => new Figure(figure));
    byId("charts").append(...this.figures.map(({ node }) => node));
  }

  /** Loads the library. Without it, the tables are open and a sentence says why. */
  async begin() {
    const loaded = await load();
    this.figures.forEach((figure) => (loaded ? figure.plot() : figure.withoutPlot()));
    byId("charts-by").hidden = !loaded;
    byId("charts-missing").hidden = loaded;
  }

  /** `span` is [seconds, name]; `marks` are the times of release switches. */
  show(known, { span: [seconds, name], end, marks, current }) {
    const { points, step } = known;
    const first = Math.min(points[0]?.at ?? end, end - SHORTEST);
    const shown = { rows: withGaps(points, step), from: Math.max(end - seconds, first), end, marks, name, known, current };
    this.figures.forEach((figure) => figure.show(shown));
  }
}

/** Adds a row without values where steps are absent, so that no line crosses the gap. */
function withGaps(points, step) {
  const rows = [];
  for (const point of points) {
    const last = rows.at(-1);
    if (last && point.at - last.at > step * 2.5) rows.push({ at: last.at + step, gap: true });
    rows.push(point);
  }
  return rows;
}

const lookOf = ({ stacked }, { dash }) => (stacked ? "area" : !dash ? "solid" : dash[0] > 3 ? "dashed" : "dotted");

/** One chart with its legend and its table. */
class Figure {
  constructor(figure) {
    this.figure = figure;
    this.shown = null;
    this.filled = -Infinity; // the time of the newest row in the table
    this.values = figure.series.map(() => make("b"));
    this.place = make("div", { class: "plot", role: "img", "aria-label": "No values yet." });
    this.body = make("tbody");
    this.details = this.#table();
    const legend = make("ul", { class: "legend" }, ...figure.series.map((series, at) =>
      make("li", { class: `key ${series.tone} ${lookOf(figure, series)}` }, `${series.name} `, this.values[at])));
    this.node = make("figure", { "aria-labelledby": `${figure.id}-title` },
      make("figcaption", {}, make("h3", { id: `${figure.id}-title` }, figure.title), figure.bands ? "" : legend), this.place, this.details);
  }

  #table() {
    const { title, series } = this.figure;
    const heads = series.map(({ name }) => make("th", { scope: "col", class: "number" }, name));
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Until"), ...heads));
    const region = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Table: ${title}` },
      make("table", {}, head, this.body));
    const details = make("details", {}, make("summary", {}, `Table: ${title.toLowerCase()}`), region);
    details.addEventListener("toggle", () => this.#fill());
    return details;
  }

  plot() {
    this.drawn = new Plot(this.figure, this.place, () => this.#fillLegend());
    if (this.shown) this.show(this.shown);
  }

  withoutPlot() {
    this.place.hidden = true;
    this.details.open = true;
  }

  show(shown) {
    this.shown = shown;
    this.columns = this.figure.series.map(({ of }) => shown.rows.map((row) => (row.gap ? null : of(row, shown.current))));
    this.place.setAttribute("aria-label", this.#summary());
    this.drawn?.draw(shown.rows.map(({ at }) => at), this.columns, shown);
    this.#fillLegend();
    this.#fill();
  }

  /** Shows values in the legend: those at the pointer, or else the newest. */
  #fillLegend() {
    if (!this.shown) return;
    const row = this.drawn?.pointed ?? this.shown.rows.length - 1;
    this.values.forEach((value, at) => say(value, this.figure.format(this.columns[at][row])));
  }

  #summary() {
    const { series, format } = this.figure;
    const ranges = series.map(({ name }, at) => {
      const known = this.columns[at].filter((value) => value !== null);
      if (!known.length) return `${name}: no values yet`;
      const low = known.reduce((a, b) => Math.min(a, b));
      const high = known.reduce((a, b) => Math.max(a, b));
      return `${name}: now ${format(known.at(-1))}, from ${format(low)} to ${format(high)}`;
    });
    return `Chart of the last ${this.shown.name}. ${ranges.join("; ")}. The table below has every value.`;
  }

  /**
   * Fills the table, newest first, while it is open. New rows are inserted above the old ones, which stay unchanged: the
   * reader keeps the place, and the browser does not update thousands of cells each second.
   */
  #fill() {
    if (!this.details.open || !this.shown) return;
    const { rows, end, known } = this.shown;
    const added = rows.filter(({ at }) => at > this.filled).length;
    for (let n = 0; n < added; n += 1) this.body.insertRow(0);
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    const first = known === this.known ? rows.length - added : 0; // after another fetch, any value may differ
    this.known = known;
    this.filled = rows.at(-1)?.at ?? -Infinity;
    rows.slice(first).reverse().forEach(({ at, gap }, row) => fillRow(this.body.rows[row] ?? this.body.insertRow(), [
      clock(at, end),
      ...this.columns.map((column) => (gap ? NOTHING : this.figure.format(column[rows.length - 1 - row]))),
    ]));
  }
}
