"""Tables, their columns and words, findings and errors."""
