"""How large and how slow a request may be (docs/design.md, "Limits on a connection")."""

MOST_URL_BYTES = 8 * 1024
MOST_HEADER_BYTES = 16 * 1024
MOST_HEADERS = 100
# Of a head that is not complete. It leaves room enough for URL and headers to meet their own limits first.
MOST_HEAD_BYTES = MOST_URL_BYTES + 2 * MOST_HEADER_BYTES
# Of trailers, and what else comes with a chunked body that is empty.
MOST_TRAILER_BYTES = 64 * 1024
# For a whole request, from its first byte on; for the first one, from the beginning of the connection.
HEAD_SECONDS = 10.0
# How long one connection may keep the others waiting at a time. A single read can bring the work of half a second.
TURN_SECONDS = 0.001
# Connections over the limit that are kept until their first request, which is answered with a 503. Each holds an open
# file, so any further one is reset at once.
MOST_TURNED_AWAY = 200
