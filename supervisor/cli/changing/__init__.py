"""Changes of applied objects as commands make them: which are meant, what is asked, what is told."""
