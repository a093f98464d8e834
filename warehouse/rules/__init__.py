"""Every rule for drops: name, severity, limit, message, remedy."""
