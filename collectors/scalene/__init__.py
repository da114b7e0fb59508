"""Scalene: what each line of Python takes, in Python, in native code and in the kernel, and its memory."""
