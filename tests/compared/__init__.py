"""Captures as airpath, tshark and tcptrace have them: `make captures-compared`."""
