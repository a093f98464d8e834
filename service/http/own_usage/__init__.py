"""What the key that asks did: its usage by day and by hour, and its last errors."""
