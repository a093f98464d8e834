"""Settings and what ships beside them: Redis configuration, the container's build file."""
