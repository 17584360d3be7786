"""Which fields are acted on, and how: the table, its page, and findings about one object."""
