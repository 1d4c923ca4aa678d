//! Checks of the planner.
