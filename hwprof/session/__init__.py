"""How a run is carried out: plan, supervisor (parent), worker (child), clocks."""
