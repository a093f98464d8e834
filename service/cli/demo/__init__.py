"""forecast demo: its site and its command."""
