"""The command line: commands, the work behind them, and what they show and write."""
