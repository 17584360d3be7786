"""Code that runs in the forked children."""
