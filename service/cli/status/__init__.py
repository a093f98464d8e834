"""forecast status and forecast top: what operators see of running instances, in a terminal."""
