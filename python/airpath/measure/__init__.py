"""``airpath measure`` and ``airpath serve``: active measurements of a path between two hosts."""
