"""Values that parts of the master hand to one another: manifests, loop events, loop commands. No behaviour."""
