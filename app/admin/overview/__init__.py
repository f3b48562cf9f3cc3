"""The console's overview: requests as they are answered, and what needs attention."""
