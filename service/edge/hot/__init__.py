"""The direct answer: a hot request is answered at the end of its head, before the router."""
