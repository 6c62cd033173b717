"""The laboratory in a browser: ``airpath explore``."""
