"""Commands about Rootlet itself: version, configuration."""
