"""Observes what Podman runs: relists, events, exits of processes; publishes each pod's status on the board."""
