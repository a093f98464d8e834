"""Below everything else of the service: messages between processes, telemetry, terms of keys, logs, sockets."""
