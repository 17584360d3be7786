"""Handlers of what concerns the node: pressure, shutdown, garbage, slices, addresses, the agent's own processes."""
