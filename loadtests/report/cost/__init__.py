"""What the measured load costs a month on each store, by prices that the user gives."""
