"""Every rule that drops are checked against: name, severity, limit, message, remedy."""
