"""What a bench compares, keeps and shows."""
