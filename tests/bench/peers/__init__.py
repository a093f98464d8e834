"""What the benchmark compares with: configurations and small applications, each as good as we know how to make it."""
