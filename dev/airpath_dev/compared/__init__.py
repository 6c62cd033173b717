"""Captures as read by airpath, tshark and tcptrace: `make captures-compared`."""
