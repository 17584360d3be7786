"""Objects in the form that a client wants: as they are, or as tables with cells as upstream's printers make them."""
