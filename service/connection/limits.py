"""How large and how slow a request may be (docs/reference/connections.md)."""

MOST_URL_BYTES = 8 * 1024
MOST_HEADER_BYTES = 16 * 1024
MOST_HEADERS = 100
# Limit of an incomplete head. It is large enough that URL and headers meet their own limits first.
MOST_HEAD_BYTES = MOST_URL_BYTES + 2 * MOST_HEADER_BYTES
# Limit of trailers, and other parts of an empty chunked body.
MOST_TRAILER_BYTES = 64 * 1024
# Time for a whole request, from its first byte; for the first one, from the start of the connection.
HEAD_SECONDS = 10.0
# How long one connection may delay the others at a time. A single read can bring half a second of work.
TURN_SECONDS = 0.001
# Connections over the limit that are kept until their first request, which gets a 503. Each needs an open file, so any
# further one is reset at once.
MOST_OVER_LIMIT = 200
