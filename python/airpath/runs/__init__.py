"""What a run leaves behind: directories, tables, summary, provenance, and ``Run`` to read them."""
