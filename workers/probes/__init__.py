"""One attempt of a probe, by kind of handler: what is asked, and what counts as an answer."""
