"""Commands that change what pods are wanted, or the objects beside them."""
