"""Observes what Podman runs: relists, events; publishes each pod's status on the board."""
