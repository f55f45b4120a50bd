"""What several tests share: plain twins of the fast code, and strategies that make inputs."""
