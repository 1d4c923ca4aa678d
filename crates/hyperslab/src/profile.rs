//! The profile of the machine at hand: where it is, what is wrong with it, and what holds without.
//!
//! A model is only as good as its numbers, and bad numbers must not make a transfer fail. So whatever is wrong with a
//! profile is a warning, and where it cannot be used, a stated default takes its place.

pub use hyperslab_plan::profile::BUILT_IN as DEFAULT;
use hyperslab_plan::profile::{Identity, Profile, parse};
use hyperslab_real::calibration::{HostIdentity, host_identity};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Environment variable with the path of the profile. Empty or `none`: there is none.
pub const VARIABLE: &str = "HYPERSLAB_PROFILE";

/// What messages call it.
const DEFAULT_NAME: &str = "the built-in profile";
/// Where the profile lies below the directory of configurations.
const BELOW: &str = "hyperslab/machine.toml";
/// Longest profile that is read \[B\].
const BYTES_MAX: u64 = 1 << 20;
/// Lines that a profile of `hyperslab calibrate` ends with.
const END: &str = "# end of profile";
const HINT: &str = "'hyperslab calibrate' measures this machine again";

/// A profile, and what is wrong with the one that was looked for.
#[derive(Clone, Debug)]
pub struct Found {
    /// The profile that holds.
    pub profile: Arc<Profile>,
    /// Whether it is the built-in one.
    pub is_default: bool,
    /// What the user should know, each a message with a hint.
    pub warnings: Vec<String>,
}

/// Where the profile of this process is looked for: `HYPERSLAB_PROFILE`, or else `hyperslab/machine.toml` below
/// `XDG_CONFIG_HOME`, or else below `.config` in the home directory. `None` where there shall be none, or no such place.
pub fn path() -> Option<PathBuf> {
    place(env::var_os(VARIABLE).as_deref(), env::var_os("XDG_CONFIG_HOME").as_deref(), env::home_dir())
}

fn place(named: Option<&OsStr>, config: Option<&OsStr>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(named) = named {
        return (!named.is_empty() && named != "none").then(|| named.into());
    }
    // As the specification of these directories has it, a relative one is passed over.
    let config = config.map(PathBuf::from).filter(|config| config.is_absolute());
    let config = config.or_else(|| Some(home.filter(|home| home.is_absolute())?.join(".config")));
    config.map(|config| config.join(BELOW))
}

/// Looks for the profile and reads it. Never fails.
pub fn load() -> Found {
    let named = env::var_os(VARIABLE).is_some();
    path().map_or_else(|| built_in(Vec::new()), |path| load_from(&path, named, &host_identity()))
}

/// Reads the profile at `path`, of the machine `here`. Nothing there is worth a warning if somebody named it.
fn load_from(path: &Path, named: bool, here: &HostIdentity) -> Found {
    let file = path.display().to_string();
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !named => return built_in(Vec::new()),
        Err(error) => {
            let hint = format!("{HINT}; {VARIABLE}=none does without a profile");
            return built_in(vec![instead(&format!("{file}: the profile cannot be read: {error}"), &hint)]);
        }
    };
    let profile = match parse(&file, &text, &[]) {
        Ok(profile) => profile,
        Err(error) => {
            let told = error.to_string();
            if text.starts_with(BEGIN) && !text.trim_end().ends_with(END) {
                let what = format!("{file}: the profile was cut off after {} B", text.len());
                return built_in(vec![instead(&what, HINT)]);
            }
            let (what, hint) = told
                .split_once("\n  hint: ")
                .map_or((&*told, HINT.into()), |(what, hint)| (what, format!("{hint}; {HINT}")));
            return built_in(vec![instead(what, &hint)]);
        }
    };
    let differences = profile.measured.as_ref().map_or(Vec::new(), |it| differences(&profile, &it.identity, here));
    let told = || format!("{file}: the profile was measured {}", differences.join(", "));
    match &differences[..] {
        [] => Found { profile: Arc::new(profile), is_default: false, warnings: Vec::new() },
        // A home directory may be that of several machines; who names a profile means it.
        _ if other_machine(&profile, here) && !named => {
            let hint = format!("{HINT}; {VARIABLE} names a profile that is used all the same");
            built_in(vec![instead(&told(), &hint)])
        }
        _ => {
            let warning = format!("{}; it is used all the same, but choices may be worse than they could be", told());
            Found {
                profile: Arc::new(profile),
                is_default: false,
                warnings: vec![format!("{warning}\n  hint: {HINT}")],
            }
        }
    }
}

/// The first words of a profile of `hyperslab calibrate`.
const BEGIN: &str = "# Measured by hyperslab calibrate";

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
    Found { profile: Arc::new(profile), is_default: true, warnings }
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

/// The profile of this process, found when first asked for, and what is wrong with it.
pub fn at_hand() -> (Arc<Profile>, Vec<String>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.get_or_insert_with(load);
    (found.profile.clone(), found.warnings.clone())
}

/// Forgets the profile, so that it is looked for again.
pub fn forget() {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

static KNOWN: Mutex<Option<Found>> = Mutex::new(None);
