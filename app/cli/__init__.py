"""The command line: `sluice` and its subcommands."""
