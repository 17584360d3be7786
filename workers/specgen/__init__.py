"""Makes libpod's SpecGenerator of a container or sandbox. Pure, but for what is asked of an image's users."""
