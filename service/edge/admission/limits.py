"""How large and how slow a request may be (docs/design.md, "Limits on a connection")."""

MOST_URL_BYTES = 8 * 1024
MOST_HEADER_BYTES = 16 * 1024
MOST_HEADERS = 100
# Buffered before a complete header line is seen; large enough that url and headers meet their own limits first.
MOST_HEAD_BYTES = MOST_URL_BYTES + 2 * MOST_HEADER_BYTES
HEAD_SECONDS = 10.0
# How long one connection may keep the others waiting at a time: what one read brings can be the work of half a second.
TURN_SECONDS = 0.001
# A reader that takes nothing off a full buffer for so long has gone, or holds what it holds on purpose.
READ_SECONDS = 30.0
# Connections over the limit that are kept until they have asked, to be told so. Each holds an open file, and what
# files there are is for others too: the next one is reset at once.
MOST_TURNED_AWAY = 200
