"""Files in the data folder: written atomically, read safely, every wait limited."""
