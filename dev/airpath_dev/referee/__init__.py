"""The referee: the host kernel's TCP against the simulated one, over the same path.

A row is a twin of one scenario, ``path.toml``, with stricter bounds on what the machine did than
other twins have.
"""
