"""What to change first: rules, a module each, that find causes of lost time in what a run measured.

A rule is a function ``find(facts)``: pure, and silent where its cause is not there. ``rules.RULES`` has them all.
"""
