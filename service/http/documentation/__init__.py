"""The documentation on the partners' listener: the guide, the reference, and the OpenAPI description without a key."""
