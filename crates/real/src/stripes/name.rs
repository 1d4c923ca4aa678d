//! Stripes as the beginning of absolute names, so that a name alone says where all parts of an object lie.
//!
//! ```text
//! striped://65536[/disks/a][/disks/b]/dump.raw     64 KiB in each of two directories in turn, in files dump.raw
//! ```
//!
//! Bytes of a path that would end it (`]`), are no text, or would not be seen (control characters) are written as `%` and
//! two hexadecimal digits, and so is `%`. Thus any paths have a name, and no two sets of stripes the same one.

use super::Stripes;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What absolute names of striped objects begin with. No name in a file system does, nor a relative name, since none has
/// an empty part.
const SCHEME: &str = "striped://";

impl Stripes {
    /// The absolute name of what these directories share; those of objects are this, `/`, and the name of the files.
    pub fn name(&self) -> String {
        let mut name = format!("{SCHEME}{}", self.unit_bytes);
        for directory in &self.directories {
            name.push('[');
            push_escaped(&mut name, directory);
            name.push(']');
        }
        name
    }

    /// The stripes that an absolute name begins with, and the rest of it, which is empty for the name of the stripes
    /// themselves; `None` when it is no such name.
    pub fn named(absolute: &str) -> Option<(Stripes, &str)> {
        let text = absolute.strip_prefix(SCHEME)?;
        let (unit, mut rest) = text.split_at(text.find('[')?);
        let mut directories = Vec::new();
        while let Some(path) = rest.strip_prefix('[') {
            let (path, after) = path.split_once(']')?;
            directories.push(unescaped(path)?);
            rest = after;
        }
        let unit_bytes = unit.parse().ok().filter(|_| !unit.starts_with('+'))?;
        let stripes = Stripes { directories, unit_bytes };
        stripes.check_numbers().ok()?;
        if rest.is_empty() {
            return Some((stripes, rest));
        }
        Some((stripes, rest.strip_prefix('/')?))
    }
}

fn push_escaped(name: &mut String, path: &Path) {
    let push_bytes = |name: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| write!(name, "%{byte:02x}").expect("a text takes any characters"));
    };
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if matches!(character, '%' | '[' | ']') || character.is_control() {
                push_bytes(name, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                name.push(character);
            }
        }
        push_bytes(name, chunk.invalid());
    }
}

fn unescaped(text: &str) -> Option<PathBuf> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, plain) = part.split_at_checked(2)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_number)?);
        bytes.extend(plain.as_bytes());
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripes(directories: &[&[u8]], unit_bytes: u64) -> Stripes {
        Stripes {
            directories: directories.iter().map(|path| OsString::from_vec(path.to_vec()).into()).collect(),
            unit_bytes,
        }
    }

    #[test]
    fn a_name_reads_well() {
        let name = stripes(&[b"/disks/a", "/disks/b c/\u{e9}".as_bytes()], 65536).name();
        assert_eq!(name, "striped://65536[/disks/a][/disks/b c/\u{e9}]");
    }

    #[test]
    fn any_paths_come_back_from_their_name() {
        let all: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').collect();
        let sets = [
            stripes(&[b"/a"], 1),
            stripes(&[b"/a", b"/b", b"relative/c"], 1 << 40),
            stripes(&[b"/a][/b", b"/a]/f", b"[", b"/%5d", b"%", b""], 7),
            stripes(&[b"/line\nbreak", b"/\xff\xfe", b"/caf\xc3", "/\u{85}".as_bytes()], 7),
            stripes(&[&all, b"/"], 512),
        ];
        let mut names = Vec::new();
        for set in sets {
            let name = set.name();
            assert!(!name.chars().any(char::is_control), "{name}");
            assert_eq!(Stripes::named(&name), Some((set.clone(), "")));
            for file in ["f", "d/f", "[f]", "striped://1[/a]/f"] {
                assert_eq!(Stripes::named(&format!("{name}/{file}")), Some((set.clone(), file)));
            }
            names.push(name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 5);
    }

    #[test]
    fn what_is_no_name_of_stripes_gives_none() {
        let none = ["", "f", "/striped://1[/a]", "memory://1/f", "striped://", "striped://1", "striped://1/f"];
        let broken =
            ["striped://1[/a", "striped://1[/a]f", "striped://1[/a]x[/b]", "striped://[/a]", "striped://-1[/a]"];
        let senseless = ["striped://0[/a]/f", "striped://1099511627777[/a]/f", "striped://1[/%]", "striped://1[/%4]"];
        let digits = ["striped://1[/%g0]", "striped://1[/%\u{e9}]", "striped://1[/%+1]", "striped://+1[/a]"];
        for name in none.iter().chain(&broken).chain(&senseless).chain(&digits) {
            assert_eq!(Stripes::named(name), None, "{name}");
        }
    }
}
