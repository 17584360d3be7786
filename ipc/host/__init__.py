"""This host: directories, file systems, clock, logging, process settings, atomic files."""
