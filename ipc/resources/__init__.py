"""What each kind of object is: names, URLs, fields that select, columns of its table; times for people. Pure."""
