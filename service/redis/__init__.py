"""Redis clients with budgets, a circuit breaker, and the listener for pushed invalidations."""
