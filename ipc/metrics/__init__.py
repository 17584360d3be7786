"""Metrics of the agent, and the place of each in shared memory. Pure: `ipc.shm.metric_cells` has the memory."""
