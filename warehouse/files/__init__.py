"""Files in the data folder: written atomically, read safely, never waited for without a limit."""
