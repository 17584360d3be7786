"""The Node object: its content, registration, status and lease. Decisions are pure."""
