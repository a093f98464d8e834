// The points of the chosen span: fetched once, then extended by each overview, or fetched again.

import { byId, say } from "./dom.js";
import { ask } from "./live.js";

const SPANS = { "10m": [600, "10 minutes"], "2h": [7200, "2 hours"], "24h": [86400, "24 hours"] };
const LIVE_STEP = 1.5; // s: with steps up to this, an overview's newest point is the history's next one
const YOUNG = 1200; // s: up to this age of the instance, the page starts with ten minutes, not two hours

export class History {
  constructor(charts) {
    this.charts = charts;
    this.span = null;
    this.known = null; // the answer of /history for the span
    this.asking = null;
    for (const field of document.getElementsByName("span")) {
      field.addEventListener("change", () => this.#choose(field.value));
    }
  }

  /** Adds the new points of `overview`, and shows the history. */
  use(overview) {
    this.overview = overview;
    if (this.span === null) {
      const young = overview.at - overview.instance.started_at < YOUNG;
      this.#choose(young ? "10m" : "2h");
    } else if (this.known === null || this.#isLate(overview.at)) {
      this.#fetch();
    } else if (this.known.step <= LIVE_STEP) {
      this.#append(overview.latest);
    }
    this.#show();
  }

  /** Discards the points after a lost connection, as some are missing. */
  forget() {
    this.known = null;
  }

  #choose(span) {
    this.span = span;
    this.known = null;
    document.querySelector(`input[name=span][value="${span}"]`).checked = true;
    this.#fetch();
  }

  #isLate(now) {
    const last = this.known.points.at(-1)?.at ?? this.fetchedAt;
    return this.known.step > LIVE_STEP && now - Math.max(last, this.fetchedAt) >= this.known.step;
  }

  #append(latest) {
    const { points } = this.known;
    if (points.length && latest.at - points.at(-1).at < this.known.step / 2) return;
    points.push(latest);
    while (points[0].at < latest.at - SPANS[this.span][0]) points.shift();
  }

  async #fetch() {
    const span = this.span;
    if (this.asking === span) return;
    this.asking = span;
    try {
      const known = await (await ask(`history?span=${span}`)).json();
      if (span !== this.span) return;
      this.known = known;
      this.fetchedAt = this.overview.at;
      this.#show();
      say(byId("history-problem"), "");
    } catch {
      say(byId("history-problem"), "The history cannot be read now. This page keeps trying."); // with each overview
    } finally {
      if (this.asking === span) this.asking = null;
    }
  }

  #show() {
    if (this.known === null) return;
    const { switch: last, events } = this.overview;
    const marks = events.filter(({ kind }) => kind === "release" || kind === "rollback").map(({ at }) => at);
    if (last !== null && !marks.some((at) => Math.abs(at - last.at) < 5)) marks.push(last.at); // `events` has the newest only
    const current = this.overview.releases.find((release) => release.current)?.id;
    this.charts.show(this.known, { span: SPANS[this.span], end: this.overview.at, marks, current });
  }
}
