"""The kernel's TCP over a scenario's network: running it, who watches it, what it takes."""
