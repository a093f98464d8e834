"""The partners' endpoints: one module per data area, errors, response headers, OpenAPI."""
