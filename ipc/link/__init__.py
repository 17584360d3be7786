"""How processes of the agent speak to one another: messages, frames, shared memory, the event loop."""
