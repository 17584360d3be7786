"""Which metrics there are, and where in shared memory each is counted. Pure: `ipc.shm.metric_cells` has the memory."""
