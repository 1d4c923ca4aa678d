//! The profile of this machine: where it is, what is wrong with it, and what holds without.
//!
//! A model is only as good as its numbers, and bad numbers must not make a transfer fail. So whatever is wrong with a
//! profile is a warning, and where it cannot be used, a stated default takes its place.

use crate::environment::{self, PROFILE};
use crate::stderr;
use hyperslab_plan::Machine;
pub use hyperslab_plan::profile::BUILT_IN as DEFAULT;
use hyperslab_plan::profile::{Identity, Profile, parse};
use hyperslab_real::calibration::{HostIdentity, host_identity};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What messages call it.
const DEFAULT_NAME: &str = "the built-in profile";
/// Longest profile that is read \[B\].
const BYTES_MAX: u64 = 1 << 20;
/// The first words and the last line of a profile that `hyperslab calibrate` wrote.
const BEGIN: &str = "# Measured by hyperslab calibrate";
const END: &str = "# end of profile";
const HINT: &str = "'hyperslab calibrate' measures this machine again";

/// A profile, and what is wrong with the one that was looked for.
#[derive(Clone, Debug)]
pub struct Found {
    /// The profile that holds.
    pub profile: Arc<Profile>,
    /// What it was read from: TOML.
    pub text: Arc<str>,
    /// Whether it is the built-in one.
    pub is_default: bool,
    /// What the user should know, each a message with a hint.
    pub warnings: Vec<String>,
}

/// Where the profile of this process is looked for: `HYPERSLAB_PROFILE`, or else `hyperslab/machine.toml` below
/// `XDG_CONFIG_HOME`, or else below `.config` in the home directory. `None` where there shall be none, or no such place.
pub fn path() -> Option<PathBuf> {
    environment::profile().1
}

/// Looks for the profile and reads it. Never fails.
pub fn load() -> Found {
    let (named, path) = environment::profile();
    path.map_or_else(|| built_in(Vec::new()), |path| load_from(&path, named, host_identity))
}

/// Reads the profile at `path`; where there is one, `here` tells which machine this is. Nothing there is worth a warning if somebody
/// named it.
fn load_from(path: &Path, named: bool, here: fn() -> HostIdentity) -> Found {
    let file = path.display().to_string();
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !named => return built_in(Vec::new()),
        Err(error) => {
            let hint = format!("{HINT}; {PROFILE}=none does without a profile");
            return built_in(vec![instead(&format!("{file}: the profile cannot be read: {error}"), &hint)]);
        }
    };
    // One that was cut off between two sections may still make sense to the parser.
    if text.starts_with(BEGIN) && !text.lines().any(|line| line == END) {
        return built_in(vec![instead(&format!("{file}: the profile was cut off after {} B", text.len()), HINT)]);
    }
    let profile = match parse(&file, &text, &[]) {
        Ok(profile) => profile,
        Err(error) => {
            let told = error.to_string();
            let (what, hint) = told
                .split_once("\n  hint: ")
                .map_or((&*told, HINT.into()), |(what, hint)| (what, format!("{hint}; {HINT}")));
            return built_in(vec![instead(what, &hint)]);
        }
    };
    let here = &here();
    let differences = profile.measured.as_ref().map_or(Vec::new(), |it| differences(&profile, &it.identity, here));
    let told = || format!("{file}: the profile was measured {}", differences.join(", "));
    match &differences[..] {
        [] => measured(profile, text, Vec::new()),
        // A home directory may be that of several machines; who names a profile means it.
        _ if other_machine(&profile, here) && !named => {
            let hint = format!("{HINT}; {PROFILE} names a profile that is used all the same");
            built_in(vec![instead(&told(), &hint)])
        }
        _ => {
            let warning = format!("{}; it is used all the same, but choices may be worse than they could be", told());
            measured(profile, text, vec![format!("{warning}\n  hint: {HINT}")])
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for somebody who writes.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than the {BYTES_MAX} B that a profile may have")));
    }
    Ok(text)
}

fn built_in(warnings: Vec<String>) -> Found {
    let profile = parse(DEFAULT_NAME, DEFAULT, &[]).expect("the built-in profile is tested");
    Found { profile: Arc::new(profile), text: DEFAULT.into(), is_default: true, warnings }
}

fn measured(profile: Profile, text: String, warnings: Vec<String>) -> Found {
    Found { profile: Arc::new(profile), text: text.into(), is_default: false, warnings }
}

fn instead(what: &str, hint: &str) -> String {
    format!("{what}; {DEFAULT_NAME} is used instead\n  hint: {hint}")
}

/// Whether a profile is of a machine with another processor. Names of hosts do not tell: the nodes of a cluster are
/// alike, and one is measured for all.
fn other_machine(profile: &Profile, here: &HostIdentity) -> bool {
    let then = profile.measured.as_ref().map(|measured| &measured.identity.processor);
    then.is_some_and(|then| *then != here.processor) || profile.nodes.cores_per_node > here.processors
}

/// What is not as it was when the profile was measured.
fn differences(profile: &Profile, then: &Identity, here: &HostIdentity) -> Vec<String> {
    let mut differences = Vec::new();
    if other_machine(profile, here) {
        let cores = profile.nodes.cores_per_node;
        let (then, now) = (format!("{} ({cores} cores)", then.processor), &here.processor);
        differences.push(format!("on another machine, {then}, this is {now} ({} cores)", here.processors));
    }
    if then.library != env!("CARGO_PKG_VERSION") {
        differences.push(format!("by version {}, this is {}", then.library, env!("CARGO_PKG_VERSION")));
    }
    differences
}

/// The profile of this process, found when first asked for; what is wrong with it is told then.
pub fn at_hand() -> Arc<Profile> {
    in_use().0
}

/// Nodes with so many ranks and cores each. Reads of files copy out of mappings where those that were measured are on them.
pub fn machine(profile: &Profile, (ranks_per_node, cores_per_node): (u32, u32)) -> Machine {
    let file_system = profile.measured.as_ref().map(|measured| &measured.identity.file_system);
    let is_here = file_system.is_some_and(|kind| hyperslab_real::is_of_one_host(kind));
    let maps_files = is_here && hyperslab_real::maps_files();
    Machine { ranks_per_node, cores_per_node, maps_files }
}

/// What the [profile of this process](at_hand) was read from: TOML.
pub fn text_at_hand() -> Arc<str> {
    in_use().1
}

fn in_use() -> (Arc<Profile>, Arc<str>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.get_or_insert_with(|| {
        let found = load();
        stderr::warn(&found.warnings);
        found
    });
    (found.profile.clone(), found.text.clone())
}

/// Forgets the profile, so that it is looked for again.
pub fn forget() {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

static KNOWN: Mutex<Option<Found>> = Mutex::new(None);

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, gone at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("hyperslab-profile-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Place(path)
        }

        fn file(&self, text: &[u8]) -> PathBuf {
            let path = self.0.join("machine.toml");
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn here() -> HostIdentity {
        HostIdentity {
            host: "node-7".into(),
            processor: "EPYC 9".into(),
            system: "Linux 7.0".into(),
            cores: 1,
            processors: 64,
        }
    }

    /// A profile of a machine like this one, as it is written.
    fn measured() -> String {
        let version = format!("library = \"{}\"", env!("CARGO_PKG_VERSION"));
        let own = DEFAULT
            .replace("name = \"default\"", "name = \"own\"")
            .replace("processor = \"AMD EPYC\"", "processor = \"EPYC 9\"")
            .replace("library = \"0.1.0\"", &version);
        format!("{BEGIN} {}\n{own}\n{END}\n", env!("CARGO_PKG_VERSION"))
    }

    /// Reads this text as the profile; gives whether the default holds, and the warnings as one text.
    fn of(name: &str, text: &[u8], named: bool) -> (bool, String) {
        let place = Place::new(name);
        let found = load_from(&place.file(text), named, here);
        assert_eq!(found.profile.name, if found.is_default { "default" } else { "own" });
        assert!(
            found.warnings.iter().all(|warning| warning.contains("machine.toml") && warning.contains("\n  hint: "))
        );
        (found.is_default, found.warnings.join("\n"))
    }

    #[test]
    fn the_built_in_profile_can_be_read_and_says_where_numbers_come_from() {
        let found = built_in(Vec::new());
        assert!(found.is_default && found.profile.measured.is_some());
        let constants = hyperslab_plan::profile::constants("default", DEFAULT).unwrap();
        assert!(constants.len() > 60 && constants.iter().all(|constant| !constant.source.is_empty()));
    }

    #[test]
    fn a_profile_of_this_machine_is_used_without_a_word() {
        assert_eq!(of("good", measured().as_bytes(), true), (false, String::new()));
        assert_eq!(of("found", measured().as_bytes(), false), (false, String::new()));
        let another_node = measured().replace("host = \"unknown\"", "host = \"node-8\"");
        assert_eq!(of("node", another_node.as_bytes(), false), (false, String::new()));
        let without = &DEFAULT[..DEFAULT.find("[measured]").unwrap()].replace("name = \"default\"", "name = \"own\"");
        assert_eq!(of("unmeasured", without.as_bytes(), true), (false, String::new()), "one written by hand");
    }

    #[test]
    fn nothing_there_is_told_only_to_who_named_it() {
        let path = Path::new("/nowhere/machine.toml");
        let silent = load_from(path, false, here);
        assert!(silent.is_default && silent.warnings.is_empty());
        let told = load_from(path, true, here);
        assert!(told.is_default && told.warnings.len() == 1);
        assert!(told.warnings[0].starts_with("/nowhere/machine.toml: the profile cannot be read: "), "{told:?}");
        assert!(told.warnings[0].contains("the built-in profile is used instead\n  hint: "), "{told:?}");
    }

    #[test]
    fn what_cannot_be_read_gives_way_to_the_default() {
        let whole = measured();
        for cut in [&whole[..whole.len() * 2 / 3], &whole[..whole.find("[measured]").unwrap()]] {
            let (default, told) = of("cut", cut.as_bytes(), true);
            assert!(default && told.contains(&format!("was cut off after {} B", cut.len())), "{told}");
        }
        let (default, told) = of("garbage", b"\xff\x00\x17", true);
        assert!(default && told.contains("cannot be read: stream did not contain valid UTF-8"), "{told}");
        let (default, told) = of("words", b"these are = words of = nobody", true);
        assert!(default && told.contains("not TOML") && told.contains("(line 1)"), "{told}");
        let (default, told) = of("empty", b"", true);
        assert!(default && told.contains("name"), "{told}");
        let (default, told) = of("unit", whole.replace("\"3 us\"", "\"3 MB\"").as_bytes(), true);
        assert!(default && told.contains("measured.files.read: expected a time"), "{told}");
        assert!(told.contains("which is a size (line ") && told.contains("hyperslab calibrate"), "{told}");
        let (default, told) = of("long", &vec![b'#'; 2 << 20], true);
        assert!(default && told.contains("longer than the 1048576 B"), "{told}");
    }

    #[test]
    fn a_directory_or_a_pipe_is_no_profile() {
        let place = Place::new("directory");
        let found = load_from(&place.0, true, here);
        assert!(found.is_default && found.warnings[0].contains("it is not a file"), "{found:?}");
        let found = load_from(Path::new("/dev/zero"), true, here);
        assert!(found.is_default && found.warnings[0].contains("it is not a file"), "{found:?}");
    }

    #[test]
    fn another_machine_is_told_and_holds_only_where_it_was_named() {
        let other = measured().replace("EPYC 9", "Xeon 6");
        let (default, told) = of("other", other.as_bytes(), false);
        assert!(default && told.contains("another machine, Xeon 6 (2 cores), this is EPYC 9 (64 cores)"), "{told}");
        assert!(told.contains("the built-in profile is used instead"), "{told}");
        let (default, told) = of("named", other.as_bytes(), true);
        assert!(!default && told.contains("it is used all the same"), "{told}");
        let wider = measured().replace("cores_per_node = { is = 2", "cores_per_node = { is = 65");
        let (default, told) = of("wider", wider.as_bytes(), false);
        assert!(default && told.contains("(65 cores), this is EPYC 9 (64 cores)"), "{told}");
    }

    #[test]
    fn an_old_version_is_told() {
        let old = measured().replace(&format!("library = \"{}\"", env!("CARGO_PKG_VERSION")), "library = \"0.0.1\"");
        let (default, told) = of("old", old.as_bytes(), false);
        assert!(!default && told.contains("measured by version 0.0.1, this is"), "{told}");
    }

    #[test]
    fn it_is_looked_for_once() {
        forget();
        let (first, second) = (at_hand(), at_hand());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(parse("text", &text_at_hand(), &[]).unwrap().name, first.name);
    }
}
