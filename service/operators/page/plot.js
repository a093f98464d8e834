// One figure drawn by uPlot. Colours come from the style sheet, so that they fit both colour schemes.

const HEIGHT = 176;
const FONT = "12px system-ui, sans-serif";

const WHOLE = [1, 2, 5].flatMap((step) => [0, 1, 2, 3, 4, 5].map((power) => step * 10 ** power)).sort((a, b) => a - b);

/** Loads the library. Resolves to whether it was loaded. */
export function load() {
  const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "page/uplot/uPlot.min.css" });
  const script = Object.assign(document.createElement("script"), { src: "page/uplot/uPlot.iife.min.js" });
  return new Promise((resolve) => {
    script.addEventListener("load", () => resolve(true));
    script.addEventListener("error", () => resolve(false));
    document.head.append(style, script);
  });
}

/** The plot of `figure` in `place`. `pointed` is called as the pointer moves. */
export class Plot {
  constructor(figure, place, pointed) {
    this.figure = figure;
    this.marks = [];
    const series = this.#order(figure.series);
    this.plot = new window.uPlot(this.#options(series, place, pointed), [[], ...series.map(() => [])], place);
    new ResizeObserver(() => this.plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  /** The row at the pointer; null if the pointer is elsewhere. */
  get pointed() {
    return this.plot.cursor.idx ?? null;
  }

  draw(times, columns, { from, end, marks, known }) {
    this.marks = marks;
    this.step = known.step;
    const drawn = this.#order(this.figure.stacked ? stacked(columns) : columns);
    this.plot.batch(() => {
      this.plot.setData([times, ...drawn], false);
      this.plot.setScale("x", { min: from, max: end });
    });
  }

  /** Returns the series in drawing order: in a stack, the largest sum comes first. */
  #order(series) {
    return this.figure.stacked ? [...series].reverse() : series;
  }

  #options(series, place, pointed) {
    const axis = { stroke: () => colour("quiet"), font: FONT, grid: { stroke: () => colour("hair"), width: 1 }, ticks: { show: false } };
    return {
      width: place.clientWidth,
      height: HEIGHT,
      padding: [18, 30, 0, 0], // room for the labels of marks, and for half of the last time
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: "history" }, points: { show: false } },
      scales: { y: { range: rangeOf(this.figure), distr: this.figure.log ? 3 : 1 } },
      axes: [
        { ...axis, size: 26, space: 64, values: (_, splits, axis, space, step) => splits.map((at) => timeOfDay(at, step)) },
        { ...axis, size: 58, space: 28, ...this.#yAxis() },
      ],
      series: [{}, ...series.map(({ tone, dash }) => ({
        stroke: this.figure.bands ? undefined : () => colour(tone),
        fill: this.figure.stacked ? () => `${colour(tone)}8c` : undefined,
        width: 1.5,
        dash,
        points: { show: !this.figure.bands, size: 4, filter: alone },
      }))],
      bands: this.figure.stacked ? series.slice(1).map((_, at) => ({ series: [at + 1, at + 2] })) : [],
      hooks: { setCursor: [pointed], draw: [(plot) => this.#heat(plot), (plot) => this.#mark(plot)] },
    };
  }

  #yAxis() {
    const { bands, log, whole, format } = this.figure;
    if (bands) return { space: 0, splits: () => bands.slice(0, -1).map((_, at) => at + 1), values: () => bands.slice(0, -1) };
    return { ...(whole ? { incrs: WHOLE } : {}), ...(log ? { splits: powersOfTen } : {}), values: (_, splits) => splits.map((v) => (v === null ? "" : format(v))) };
  }

  /** Draws the cells of a heat map: the darker, the larger the share of the band in its step. */
  #heat(plot) {
    if (!this.figure.bands) return;
    const { ctx, bbox, data: [times, ...bands] } = plot;
    const x = (time) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(time, "x", true)));
    ctx.save();
    ctx.fillStyle = colour("near");
    bands.forEach((shares, at) => shares.forEach((share, row) => {
      const left = x(times[row] - this.step);
      ctx.globalAlpha = Math.sqrt(share ?? 0);
      ctx.fillRect(left, bbox.top + bbox.height * (1 - (at + 1) / bands.length), x(times[row]) - left + 0.5, bbox.height / bands.length);
    }));
    ctx.restore();
  }

  /** Draws a vertical line at each release switch. */
  #mark(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("quiet");
    ctx.setLineDash([3, 3]);
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    let labelled = -Infinity;
    for (const time of [...this.marks].sort((one, other) => one - other)) {
      const x = Math.round(plot.valToPos(time, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (x - labelled < 60 * devicePixelRatio) continue; // the label would overlap the previous one
      labelled = x;
      const right = x + 60 * devicePixelRatio > bbox.left + bbox.width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText("release", x + (right ? 2 : -2) * devicePixelRatio, bbox.top - 5 * devicePixelRatio);
    }
    ctx.restore();
  }
}

const colour = (tone) => getComputedStyle(document.documentElement).getPropertyValue(`--${tone}`).trim();

/** Formats to the minute, or to the second if labels are less than a minute apart. */
function timeOfDay(seconds, step) {
  const date = new Date(seconds * 1000);
  const parts = [date.getHours(), date.getMinutes(), ...(step < 60 ? [date.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

/** Returns the indexes of values between two gaps, which no line would show. */
function alone(plot, series) {
  const values = plot.data[series];
  const isAlone = (at) => values[at] != null && values[at - 1] == null && values[at + 1] == null;
  return [...values.keys()].filter(isAlone);
}

/** Returns the columns stacked, each on top of those before it. */
function stacked(columns) {
  const sums = [];
  columns.forEach((column, at) => {
    sums.push(column.map((value, row) => (value === null ? null : value + (at ? sums[at - 1][row] : 0))));
  });
  return sums;
}

function powersOfTen(plot, axis, low, high) {
  const powers = [];
  for (let at = Math.round(Math.log10(low)); at <= Math.round(Math.log10(high)); at += 1) powers.push(10 ** at);
  return powers;
}

function rangeOf({ share, log, bands }) {
  if (share || bands) return () => [0, bands?.length ?? 1];
  if (!log) return (_, low, high) => [0, high ? high * 1.1 : 1];
  return (_, low, high) => (low === null || low <= 0
    ? [1e-4, 1]
    : [10 ** Math.floor(Math.log10(low)), 10 ** Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1)]);
}
