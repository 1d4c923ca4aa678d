//! Which names dimensions, variables and attributes may have.

use super::policy::NAME_BYTES_MAX;
use crate::error::{Context, Error, excerpt};

/// The attribute that says what elements are that nobody wrote.
pub(crate) const FILL_VALUE: &str = "_FillValue";

/// Refuses a name that other tools would not read: it begins with a letter, a digit or `_`, or any character beyond ASCII, has no
/// `/` and no control character, and does not end with a blank.
///
/// # Errors
/// When it is no such name.
pub fn check_name(name: &str) -> Result<(), Error> {
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
    let odd = name.chars().any(|c| c == '/' || c.is_ascii_control());
    if begins && !odd && !name.ends_with(char::is_whitespace) && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let expected = format!(
        "a name of at most {NAME_BYTES_MAX} B that begins with a letter, a digit or '_', has no '/' and does not end with a blank"
    );
    Err(Context::new("use the NetCDF name", &excerpt(name)).invalid(expected, format!("{:?}", excerpt(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_other_tools() {
        for name in ["rho", "_FillValue", "2m temperature", "größe", "a.b-c+d@e", "x"] {
            check_name(name).unwrap();
        }
        for name in ["", " x", "x ", "a/b", "a\nb", "-x", &"x".repeat(257)] {
            assert!(check_name(name).unwrap_err().is_invalid(), "{name:?}");
        }
    }
}
