"""The referee: the host kernel's TCP against the simulated one, over the same path.

Both sides take the same scenario, ``path.toml``, the same settings and the same seed. The kernel's
packets pass the path model on the real clock, between two network namespaces; the simulation runs
on its virtual one. ``python -m referee --help`` (with ``tests`` on the module path) says how.
"""
