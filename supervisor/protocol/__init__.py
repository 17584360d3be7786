"""Values that parts of the master hand to one another: manifests, source updates, events up, commands down."""
