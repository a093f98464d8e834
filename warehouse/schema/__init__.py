"""Tables and their columns, the vocabulary, findings, comparisons, errors."""
