// The connection to the instance. EventSource cannot send a header, so the stream is read with fetch.

const SILENCE = 6000; // ms without an overview until the connection counts as lost; one is due every second
const PAUSES = [500, 1000, 2000, 3000]; // ms between tries

/** A value in this tab's storage only; null if there is none. */
export const keptInTab = (name) => ({
  get: () => sessionStorage.getItem(name),
  keep: (value) => sessionStorage.setItem(name, value),
  forget: () => sessionStorage.removeItem(name),
});

export const SENDABLE = /^[\x21-\x7e]+$/; // tokens that a header may contain
export const token = keptInTab("forecast.token");

/** The instance requires a token, or rejected the one that was sent. */
export class TokenWanted extends Error {}

/** Fetches `path`. Throws TokenWanted, or an Error with the instance's message. */
export async function ask(path, signal) {
  const held = token.get();
  const headers = held === null ? {} : { Authorization: `Bearer ${held}` };
  const response = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit" });
  if (response.status === 401 || response.status === 403) throw new TokenWanted();
  if (!response.ok) throw new Error(await problemOf(response));
  return response;
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  return `${response.status}: ${body.detail ?? response.statusText}`;
}

/**
 * Follows the instance while the page is open, and reconnects by itself. `handlers` has `overview(overview)`,
 * `lost(problem)` and `wanted()`, which resolves once there is a token to try.
 */
export async function follow(handlers) {
  for (let failed = 0; ; failed += 1) {
    try {
      await stream((overview) => {
        failed = 0;
        handlers.overview(overview);
      });
    } catch (error) {
      if (error instanceof TokenWanted) {
        await handlers.wanted();
        failed = -1;
        continue;
      }
      handlers.lost(error.message);
    }
    await pause(PAUSES[Math.min(failed, PAUSES.length - 1)]);
  }
}

/** Calls `use` with each overview. Throws when the stream ends or falls silent. */
async function stream(use) {
  const abort = new AbortController();
  let watch = 0;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => abort.abort(new Error("the instance sends no figures")), SILENCE);
  };
  try {
    alive();
    const response = await reached(ask("events", abort.signal));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reached(reader.read());
      if (done) throw new Error("the instance closed the connection");
      const events = (rest + value).replaceAll("\r", "").split("\n\n");
      rest = events.pop();
      events.forEach((event) => handle(event, (overview) => {
        alive();
        use(overview);
      }));
    }
  } finally {
    clearTimeout(watch);
    abort.abort();
  }
}

/** Rewords network failures: browsers report each as a TypeError with their own message. */
export async function reached(asked) {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof TypeError ? new Error("the instance is unreachable") : error;
  }
}

function handle(event, use) {
  const lines = event.split("\n");
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
  if (data.length && lines.some((line) => /^event: ?overview$/.test(line))) use(JSON.parse(data.join("\n")));
}

/** Waits for `ms`, or less if the network or the reader comes back. */
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
