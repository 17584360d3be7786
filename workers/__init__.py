"""What runs in the forked children."""
