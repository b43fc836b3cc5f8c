"""Events of platforms: taken in, answered in order, and cancelled."""
