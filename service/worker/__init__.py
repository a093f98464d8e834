"""One worker: a process that serves partners."""
