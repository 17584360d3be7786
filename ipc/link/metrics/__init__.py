"""Metrics of the agent, and the place of each in shared memory. Pure: `ipc.link.shm.metric_cells` has the memory."""
