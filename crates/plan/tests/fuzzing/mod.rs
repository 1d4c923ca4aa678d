//! What must hold of a machine profile whatever its text is: the body of a target in `fuzz/`, which an ordinary test carries
//! out with the cases that were saved.

use hyperslab_plan::profile::{constants, parse};

/// A target, and what is asserted of any input.
pub(crate) type FuzzTarget = (&'static str, fn(&[u8]));

/// The targets, by the names of their folders.
pub(crate) const TARGETS: &[FuzzTarget] = &[("profile", check)];

fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = parse("f", &text, &[]);
    let numbers = constants("f", &text);
    assert_eq!(found.is_ok(), numbers.is_ok());
    // Errors name a place, and can be shown.
    if let Err(error) = &found {
        assert!(!error.to_string().is_empty());
    }
    for (key, factor) in [("network.latency", 1e-30), ("nodes.ranks_per_node", 1e30)] {
        let _ = parse("f", &text, &[(key.to_string(), factor)]);
    }
}
