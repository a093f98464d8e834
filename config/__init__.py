"""Settings, what ships beside them (Redis, container), and small parts that service and warehouse share."""
