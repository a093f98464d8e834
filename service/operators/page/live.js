// The connection to the instance. EventSource cannot send a header, so the stream is read with fetch.

const SILENCE = 6000; // ms without an overview, after which a connection counts as lost: one should come every second
const PAUSES = [500, 1000, 2000, 3000]; // ms between tries
const STORED = "forecast.token";

/** The token, in this tab's storage only; null if there is none. */
export const token = {
  get: () => sessionStorage.getItem(STORED),
  keep: (value) => sessionStorage.setItem(STORED, value),
  forget: () => sessionStorage.removeItem(STORED),
};

/** The instance wants a token, or another one. */
export class TokenWanted extends Error {}

/** Asks for `path`. Throws TokenWanted, or an Error that says what the instance said. */
export async function ask(path, signal) {
  const held = token.get();
  const headers = held === null ? {} : { Authorization: `Bearer ${held}` };
  const response = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit" });
  if (response.status === 401) throw new TokenWanted();
  if (!response.ok) throw new Error(await problemOf(response));
  return response;
}

async function problemOf(response) {
  const said = await response.json().catch(() => ({}));
  return `${response.status}: ${said.detail ?? response.statusText}`;
}

/**
 * Follows the instance for as long as the page is open, and connects again by itself. `told` has `overview(overview)`,
 * `lost(problem)` and `wanted()`, which resolves once there is a token to try.
 */
export async function follow(told) {
  for (let failed = 0; ; failed += 1) {
    try {
      await stream((overview) => {
        failed = 0;
        told.overview(overview);
      });
    } catch (error) {
      if (error instanceof TokenWanted) {
        await told.wanted();
        failed = -1;
        continue;
      }
      told.lost(error.message);
    }
    await pause(PAUSES[Math.min(failed, PAUSES.length - 1)]);
  }
}

/** Hands over each overview; throws when the stream ends or falls silent. */
async function stream(use) {
  const given = new AbortController();
  let watch = 0;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => given.abort(new Error("it sends no figures")), SILENCE);
  };
  try {
    alive();
    const response = await reached(ask("events", given.signal));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reached(reader.read());
      if (done) throw new Error("it closed the connection");
      const events = (rest + value).replaceAll("\r", "").split("\n\n");
      rest = events.pop();
      events.forEach((event) => handle(event, (overview) => {
        alive();
        use(overview);
      }));
    }
  } finally {
    clearTimeout(watch);
    given.abort();
  }
}

/** Browsers report every failure of the network as a TypeError, each in words of its own. */
async function reached(asked) {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof TypeError ? new Error("it cannot be reached") : error;
  }
}

function handle(event, use) {
  const lines = event.split("\n");
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
  if (data.length && lines.some((line) => /^event: ?overview$/.test(line))) use(JSON.parse(data.join("\n")));
}

/** Waits, or less long if the network or the reader comes back. */
function pause(ms) {
  return new Promise((resolve) => {
    const stop = new AbortController();
    const end = () => { stop.abort(); resolve(); };
    const timer = setTimeout(end, ms);
    stop.signal.addEventListener("abort", () => clearTimeout(timer));
    window.addEventListener("online", end, { signal: stop.signal });
    document.addEventListener("visibilitychange", end, { signal: stop.signal });
  });
}
