"""Work in an event loop: background tasks, bursts, periods, permits by key, and the loop's clock."""
