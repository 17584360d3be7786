"""Work in an event loop: background tasks, bursts, permits by key, and the loop's clock."""
