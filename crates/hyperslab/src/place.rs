//! Where something is, as users of every language write it.

use crate::error::Error;
use hyperslab_world::Location;
use std::path::PathBuf;

/// The place that a text names: a path, or the URL of a file.
///
/// # Errors
/// When it is empty, or the URL of something else.
pub fn place_named(text: &str) -> Result<Location, Error> {
    if text.is_empty() {
        return Err(Error::invalid("the path is empty").with_hint("give '.' for this directory"));
    }
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return Ok(Location::Path(PathBuf::from(text)));
    };
    if !scheme.eq_ignore_ascii_case("file") {
        let text = format!("'{text}' is a URL of {scheme}://, which this version cannot open");
        let hint = "give a path or file:///path: copy it to a file system that all ranks see, or mount it there";
        return Err(Error::unsupported(text).with_hint(hint));
    }
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(Error::invalid(format!("'{text}' is no URL of a file here"))
            .with_hint("write an absolute path with three slashes, file:///path"));
    }
    let decoded = decoded(path).ok_or_else(|| Error::invalid(format!("'{text}' is no URL: it has a wrong %-code")))?;
    Ok(Location::Path(PathBuf::from(decoded)))
}

fn is_scheme(text: &str) -> bool {
    let later = |letter: char| letter.is_ascii_alphanumeric() || "+.-".contains(letter);
    text.len() > 1 && text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(later)
}

/// A path with its codes (`%20`) made characters; `None` where one is wrong, or what comes out is no text.
fn decoded(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_and_urls_of_files() {
        let path = |text: &str| place_named(text).unwrap().to_string();
        assert_eq!(path("run.zarr"), "run.zarr");
        assert_eq!(path("a:/b"), "a:/b");
        assert_eq!(path("file:///data/a%20b.nc"), "/data/a b.nc");
        assert_eq!(path("FILE://localhost/a"), "/a");
        for wrong in ["", "file://host/a", "file://", "file:///a%2", "file:///a%zz", "file:///a%00"] {
            assert!(place_named(wrong).unwrap_err().is_invalid(), "{wrong}");
        }
        assert!(place_named("s3://bucket/a").unwrap_err().is_unsupported());
    }
}
