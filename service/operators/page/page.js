// The operators' page: follows one instance, and shows when the connection is lost.

import { Charts } from "./charts.js";
import { byId, keepRoles, make, say } from "./dom.js";
import { age, clock } from "./format.js";
import { History } from "./history.js";
import { SENDABLE, follow, token } from "./live.js";
import {
  showAnswers, showEvents, showGist, showPartners, showRankings, showReleases, showRest, showStores, showWorkers,
} from "./sections.js";

const SECTIONS = [showGist, showAnswers, showReleases, showEvents, showPartners, showRankings, showWorkers, showStores, showRest];
const MARKS = { ok: "✓", degraded: "!", unavailable: "✕", lost: "?", unknown: "…" };
const TITLES = { ok: "OK", degraded: "Degraded", unavailable: "Unavailable", lost: "No connection", unknown: "Connecting" };

const charts = new Charts();
const history = new History(charts);
let newest = null; // the last overview
let heardAt = null; // when it arrived, by this device's clock, in seconds
let lostAt = null; // when the connection was lost
let paused = false;

const now = () => Date.now() / 1000;

function onOverview(overview) {
  if (newest !== null && overview.instance.version !== newest.instance.version) location.reload(); // the new version has another page
  const back = lostAt !== null || newest === null;
  newest = overview;
  heardAt = now();
  lostAt = null;
  if (back) history.forget();
  byId("token").hidden = true;
  say(byId("token-problem"), "");
  byId("forget").hidden = token.get() === null;
  byId("figures").hidden = byId("pause").hidden = false;
  document.body.classList.remove("old");
  showVerdict(overview);
  if (!paused) showFigures(overview);
}

function showFigures(overview) {
  say(byId("instance"), `${overview.instance.host}, version ${overview.instance.version}`);
  SECTIONS.forEach((show) => show(overview));
  history.use(overview);
  say(byId("updated"), `Live, ${clock(overview.at, overview.at)}`);
}

function showVerdict({ at, verdict }) {
  headline(verdict.level, verdict.sentence);
  const several = verdict.reasons.length > 1; // the sentence contains a single one
  sayReasons(verdict.reasons.map((reason) => ({ ...reason, words: several ? wordsOf(reason, at) : "" })));
  say(byId("since"), `Since ${clock(verdict.since, at)}, for ${age(at - verdict.since)}.`);
}

function headline(level, sentence) {
  byId("verdict").dataset.level = level;
  say(byId("mark"), MARKS[level]);
  say(byId("sentence"), sentence);
  const host = newest?.instance.host ?? "forecast";
  if (document.title !== `${TITLES[level]} · ${host}`) document.title = `${TITLES[level]} · ${host}`;
}

const wordsOf = ({ text, since, ended }, at) =>
  `${text} (since ${clock(since, at)}${ended === null ? "" : `, ended ${clock(ended, at)}`})`;

/** Updates the list only if the reasons changed, as screen readers announce each update. */
function sayReasons(reasons) {
  const list = byId("reasons");
  const said = JSON.stringify(reasons.map(({ words, next }) => [words, next]));
  if (said === list.dataset.said) return;
  list.dataset.said = said;
  list.replaceChildren(...reasons.map(({ words, next }) => make("li", {}, words, ...(next ? [stepOf(next)] : []))));
}

/** The next step of a reason: the command to begin with, and the runbook. */
function stepOf({ command, runbook }) {
  const begin = command === null ? [] : ["Begin with ", make("code", {}, command), " · "];
  return make("p", { class: "step" }, ...begin, make("a", { href: runbook, target: "_blank", rel: "noopener" }, "Runbook"));
}

function onLost(problem) {
  lostAt ??= heardAt ?? now();
  document.body.classList.add("old");
  headline("lost", newest === null
    ? "No connection to the instance"
    : `No connection to the instance since ${clock(lostAt)}. The figures below are old.`);
  sayReasons([{ words: `Last attempt: ${problem}. This page keeps trying.` }]);
  showLoss();
}

/** Updates texts that change without a connection; screen readers do not announce them. */
function showLoss() {
  if (lostAt === null) return;
  const last = newest === null ? "" : ` Last verdict: ${newest.verdict.sentence}`;
  say(byId("since"), `For ${age(now() - lostAt)}.${last}`);
  if (newest !== null) say(byId("updated"), `Old figures, from ${clock(newest.at)}`);
}

/** Shows the token form. Resolves once a token is entered. */
function onWanted() {
  const tried = token.get() !== null;
  token.forget();
  newest = lostAt = null;
  byId("figures").hidden = byId("pause").hidden = byId("forget").hidden = true;
  byId("token").hidden = false;
  sayReasons([]);
  say(byId("gist"), "");
  say(byId("since"), "");
  say(byId("updated"), "Not connected");
  headline("unknown", "Enter a token to see the figures");
  const field = byId("token-field");
  if (tried) refuse(field);
  field.focus();
  return new Promise((resolve) => {
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      const entered = field.value.trim();
      field.value = "";
      if (!SENDABLE.test(entered)) return refuse(field);
      token.keep(entered);
      return resolve();
    };
  });
}

function refuse(field) {
  field.setAttribute("aria-invalid", "true");
  say(byId("token-problem"), "This token is not accepted here. It was not stored.");
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (newest === null) return;
  if (paused) say(byId("updated"), `Paused at ${clock(newest.at)}`);
  else showFigures(newest);
});

byId("partners-filter").addEventListener("input", () => newest !== null && showPartners(newest));

byId("forget").addEventListener("click", () => {
  token.forget();
  location.reload();
});

document.querySelectorAll(".stack").forEach(keepRoles);
say(byId("zone"), Intl.DateTimeFormat().resolvedOptions().timeZone);
setInterval(showLoss, 1000);
charts.begin();
follow({ overview: onOverview, lost: onLost, wanted: onWanted });
