"""Commands of the node and its agent: start, stop, garbage, diagnosis, load."""
