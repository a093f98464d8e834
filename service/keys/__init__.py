"""API keys: their form, their records in Redis, and the verified ones kept in the process."""
