"""What one lesson needs besides its subject, such as drawing, taking turns and waiting: a file for one lesson each."""
