"""``make twin``: scenarios both ways, as a page of the reference."""
