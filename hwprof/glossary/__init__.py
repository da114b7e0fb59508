"""What the words of reports mean: data, look-up, and the page of the documentation that is made of it."""
