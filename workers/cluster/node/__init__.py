"""The Node object: what it says, its registration, its status and its lease. Decisions are pure, I/O stands around."""
