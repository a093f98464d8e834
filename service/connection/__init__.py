"""A connection: the HTTP/1.1 protocol with its limits, deadlines and pipelining, and the direct answer on it."""
