"""What every room may use: quantities as text, TOML files, children of ``fork()``."""
