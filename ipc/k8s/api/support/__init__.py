"""Support of fields: the table of those that are acted on, and how; its page, and findings about one object."""
