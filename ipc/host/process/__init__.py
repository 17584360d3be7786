"""The process that runs this: its entry, interrupts, limits and memory, and programs that it asks."""
