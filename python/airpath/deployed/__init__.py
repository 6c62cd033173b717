"""Scenarios from the configuration files of a network as it is deployed.

One module per file format yields typed settings with their lines. One module per program
(srsRAN Project, srsRAN 4G, OpenAirInterface, Open5GS) has the table from its settings to keys of a
scenario, with the program's defaults. Start reading at ``convert.py``.
"""
