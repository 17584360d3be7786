"""Commands of users to the agent, and the state that they change: configuration, log levels, the node's shutdown."""
