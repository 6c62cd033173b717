"""What other tools wrote, read: ping and iperf3; captures, by the compiled part.

Each reader of text says what the text tells and what it lacks, and refuses what it is not.
"""
