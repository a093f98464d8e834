"""One `forecast serve`: its supervisor, the processes that it starts, and how they stop."""
