"""Steps that run in Podman's user and mount namespace, in a program of their own; and the ids that there are in it."""
