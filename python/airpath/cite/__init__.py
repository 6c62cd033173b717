"""How to cite airpath and its results, and archives that run them again."""
