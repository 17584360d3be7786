"""The command line: `rootlet run`, and everything that asks a running agent over its admin socket."""
