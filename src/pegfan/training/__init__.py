"""Training: the paper's protocol, on any device, and fast on CPUs."""
