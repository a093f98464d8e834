"""A Redis Cluster as the shared cache: which node has which name, and how to query it."""
