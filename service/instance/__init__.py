"""One `serve`: its supervisor, the processes it starts, and how they stop."""
