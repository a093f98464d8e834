"""The fast door: a connection with its limits, deadlines and pipelining, whose plain requests the pipeline answers."""
