"""The child's side: the template that forks workers, and the loop in which a worker answers."""
