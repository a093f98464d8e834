// Bun with two Maps, of answers and of keys, filled before the first request: nothing is looked up, counted or limited.
// From the environment: PORT, ANSWERS and KEYS, which are files as starting.py writes them. ANSWERS has for each answer
// a line with the target, a line per header, an empty line, and the body, which is one line. KEYS: one a line.
const { PORT, ANSWERS, KEYS } = process.env;
const answers = new Map();
const keys = new Map((await Bun.file(KEYS).text()).split("\n").map((key) => [key, true]));

const lines = (await Bun.file(ANSWERS).text()).split("\n");
for (let at = 0; lines[at]; at++) {
  const target = lines[at++];
  const headers = {};
  for (; lines[at]; at++) {
    const colon = lines[at].indexOf(": ");
    headers[lines[at].slice(0, colon)] = lines[at].slice(colon + 2);
  }
  answers.set(target, { headers, body: new TextEncoder().encode(lines[++at]) });
}

const origin = `http://127.0.0.1:${PORT}`.length;
Bun.serve({
  hostname: "127.0.0.1",
  port: PORT,
  idleTimeout: 255,
  fetch(request) {
    if (!keys.has(request.headers.get("x-api-key"))) return new Response(null, { status: 401 });
    const answer = answers.get(request.url.slice(origin));
    if (answer === undefined) return new Response(null, { status: 404 });
    const id = request.headers.get("x-request-id");
    const headers = id === null ? answer.headers : { ...answer.headers, "x-request-id": id };
    return new Response(answer.body, { headers });
  },
});
