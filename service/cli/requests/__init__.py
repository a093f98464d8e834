"""forecast requests: what the request log knows."""
