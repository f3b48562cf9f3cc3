"""Load tests from the console: `sluice bench` in a process of its own, its progress, reports and history."""
