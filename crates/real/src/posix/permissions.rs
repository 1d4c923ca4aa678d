//! Objects that take the place of others have their permissions ([`Likeness`]). Most have those that the system gives by itself:
//! once that is known, an object costs no more than a look at the one that it replaces.

use crate::below::Spot;
use crate::likeness::{Likeness, rights};
use rustix::fs::{FileType, Mode, Stat};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// What any program asks for.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// What is known of files that are made.
#[derive(Default)]
pub(super) struct Permissions(VecDeque<Usual>);

/// What a file becomes by itself that is made in a directory.
struct Usual {
    /// The opening that asks, since programs may change what they let others do.
    opening: u64,
    directory: PathBuf,
    owner: u32,
    group: u32,
    /// Modes that were asked for, and those that came of them.
    modes: Vec<(u32, u32)>,
    /// Whether lists of others are given to it, or were to one that was replaced.
    lists: bool,
}

/// What an object shall be like.
pub(super) enum Like<'a> {
    /// The one whose place it takes, if one is there.
    Replaced(&'a Spot),
    /// This.
    Known(&'a Likeness),
}

impl Like<'_> {
    /// Owner, group and mode.
    fn look(&self) -> io::Result<Option<(u32, u32, u32)>> {
        match self {
            Like::Known(like) => Ok(Some((like.owner, like.group, like.mode))),
            Like::Replaced(spot) => match spot.stat() {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                stat => stat.map(|stat| is_file(&stat).then_some((stat.st_uid, stat.st_gid, rights(stat.st_mode)))),
            },
        }
    }

    fn whole(&self) -> io::Result<Option<Likeness>> {
        match self {
            Like::Known(like) => Ok(Some((*like).clone())),
            Like::Replaced(spot) => spot.likeness(),
        }
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl Permissions {
    /// Makes a file that is never open to more users than what it is like; an older one goes. It lies in this directory, and
    /// belongs to this opening.
    pub(super) fn create(&mut self, spot: &Spot, like: &Like, at: (u64, &Path)) -> io::Result<File> {
        let Some((owner, group, mode)) = like.look()? else { return spot.create_anew(FILE_MODE) };
        let (opening, directory) = at;
        let usual = self.0.iter_mut().find(|usual| usual.opening == opening && usual.directory == directory);
        let Some(usual) = usual else {
            let Some(like) = like.whole()? else { return spot.create_anew(FILE_MODE) };
            return self.learn(spot, &like, at);
        };
        if usual.lists || (usual.owner, usual.group) != (owner, group) {
            return spot.create_like(like.whole()?.as_ref());
        }
        let file = spot.create_anew(Mode::from_raw_mode(mode))?;
        let got = match usual.modes.iter().find(|known| known.0 == mode) {
            Some(known) => known.1,
            None => {
                let got = rights(rustix::fs::fstat(&file)?.st_mode);
                usual.modes.push((mode, got));
                got
            }
        };
        if got != mode {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        }
        Ok(file)
    }

    /// Makes a file in a directory of which nothing is known yet.
    fn learn(&mut self, spot: &Spot, like: &Likeness, (opening, directory): (u64, &Path)) -> io::Result<File> {
        let file = spot.create_anew(like.first_mode())?;
        let made = rustix::fs::fstat(&file)?;
        let lists = like.has_list() || spot.inherits_list();
        if let Err(error) = like.give(file.as_fd()) {
            let _ = spot.unlink();
            return Err(error);
        }
        let (owner, group) = (made.st_uid, made.st_gid);
        // Who works in more directories than that learns again.
        self.0.truncate(15);
        self.0.push_front(Usual { opening, directory: directory.into(), owner, group, modes: Vec::new(), lists });
        Ok(file)
    }
}
