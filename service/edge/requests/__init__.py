"""What is told of single requests: the sample behind the rankings, and the request log."""
