"""Every rule that a drop is held to: name, severity, limit, what it says, what to do."""
