"""The usage of the request's key by day and by hour, and its last errors."""
