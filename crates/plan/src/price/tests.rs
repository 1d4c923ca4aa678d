//! Checks of the model.
