"""The table of all kinds of objects: names, URLs, fields that select, columns of its table; times for people. Pure."""
