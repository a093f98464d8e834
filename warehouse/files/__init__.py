"""Files of the data folder: whole or not at all, read without surprises, never waited for without end."""
