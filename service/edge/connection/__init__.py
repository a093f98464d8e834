"""A partner's connection: the protocol, its limits and deadlines."""
