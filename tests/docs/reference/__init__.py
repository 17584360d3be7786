"""Pages of reference, made of the code: commands, settings, reasons of events."""
