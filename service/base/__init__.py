"""Shared foundations of the service: messages between processes, telemetry, terms of keys, logs, sockets."""
