"""Settings, shipped configuration (Redis, container, monitoring), and small modules for service and warehouse."""
