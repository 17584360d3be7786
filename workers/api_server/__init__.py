"""HTTP on the admin socket: answers from its informer's copy, so that a read never costs the master a turn."""
