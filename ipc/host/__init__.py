"""This host: directories, file systems, clock, process settings, atomic files."""
