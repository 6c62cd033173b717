"""What other tools printed, read: ping and iperf3.

Each reader takes text, says what the text tells and what it lacks, and refuses what it is not.
"""
