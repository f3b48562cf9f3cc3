"""Who calls the admin listener: signing in to the console, its sessions, and the guard of every route."""
