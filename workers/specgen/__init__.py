"""Makes libpod's SpecGenerator of a container or sandbox, and verifies it against image and host. Pure."""
