"""forecast status and forecast top: the state of running instances in a terminal."""
