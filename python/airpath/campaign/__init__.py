"""Campaigns: many runs over the keys of scenarios, here or on a cluster, and what they say.

``definition`` reads the file, ``sampling`` chooses the points, ``plan`` numbers the runs, ``sweep``
runs them on an engine (``local``, ``dask``) and keeps them in a ``store``; ``results`` reads them.
"""
