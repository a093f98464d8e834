// Formats numbers and times for people. null means "not known yet".

export const NOTHING = "–";

const known = (show) => (value) => (value === null || value === undefined ? NOTHING : show(value));
const fixed = [0, 1, 2].map((digits) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

export const count = known((value) => fixed[0].format(value));

/** A rate per second; larger values have fewer decimals. */
export const rate = known((value) => {
  if (value === 0) return "0";
  if (value < 0.01) return "<0.01";
  return fixed[value < 10 ? 2 : value < 100 ? 1 : 0].format(value);
});

/** A share, rounded down, but never to 0 %: so one miss is never shown as a hit rate of 100 %. */
export const percent = known((share) => {
  if (share === 0 || share === 1) return `${share * 100} %`;
  if (share < 0.001) return "<0.1 %";
  return `${fixed[1].format(Math.floor(share * 1000) / 10)} %`;
});

/** How long an answer took. */
export const took = known((seconds) => {
  const ms = seconds * 1000;
  if (ms >= 1000) return `${fixed[2].format(seconds)} s`;
  return `${fixed[ms < 1 ? 2 : ms < 10 ? 1 : 0].format(ms)} ms`;
});

/** An age, in its two largest units. */
export const age = known((seconds) => {
  const s = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (days) return hours ? `${days} d ${hours} h` : `${days} d`;
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  return minutes ? `${minutes} min` : `${s} s`;
});

export const bytes = known((value) => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${fixed[unit > 1 && value < 10 ? 1 : 0].format(value)} ${units[unit]}`;
});

const two = (number) => String(number).padStart(2, "0");

/** The time of day, with the date if it is not the day of `now`. */
export function clock(seconds, now = Date.now() / 1000) {
  const date = new Date(seconds * 1000);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) return time;
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${date.toLocaleString("en", { month: "short" })}${year} ${time}`;
}

/** A time of the API, in UTC; at midnight only the day, as `forecast keys` shows ends. */
export const utc = known((time) => new Date(time).toISOString().slice(0, 16).replace("T", " ").replace(" 00:00", ""));

/** The name of a span that covers `seconds`. */
export function spanOf(seconds, whole, name) {
  return seconds >= whole * 0.98 ? `Last ${name}` : `Last ${age(seconds)}`;
}
