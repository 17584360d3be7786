"""Tables of objects, made where the objects are: cells as upstream's printers make them. Pure."""
