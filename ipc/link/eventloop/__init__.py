"""Work in an event loop: background tasks, bursts, look-ups, back-off, and the loop's clock."""
