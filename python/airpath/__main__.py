"""``python -m airpath``."""

from airpath.cli import main

main()
