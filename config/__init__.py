"""Settings, what ships beside them (Redis, container, monitoring), and small parts that service and warehouse share."""
