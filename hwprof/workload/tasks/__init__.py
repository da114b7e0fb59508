"""What is made of a model's output: a module a task, behind one protocol."""
