//! Removing where there is no room for a record: nothing is written before something has gone.
//!
//! Usually what is removed goes to the root first, by which the next opening finds it. A root needs room. Without, the thing
//! gets a hidden name beside the store, which [`clean`](super::clean) knows, and which no reader looks at. That is one rename.
//!
//! Groups above may hold consolidated metadata that tell of it, and must not any more before its chunks go. The new metadata of
//! such a group need a file. There is one that has its block and its inode: the metadata of what is removed. That gets a hidden
//! name, so that the thing is out of sight, then other content, in its own block, and then it takes the place of the group's.
//! Who still looks at the old ones reads the chunks, which are there until then.

use super::opening::Opening;
use hyperslab_world::{Fault, Locked, RoomLeft};

/// What a small file of this name and with these bytes becomes.
type Less<'a> = &'a dyn Fn(&str, &[u8]) -> Result<Option<Vec<u8>>, Fault>;

/// Replaces a small file by these bytes.
type Replace<'a> = &'a dyn Fn(&str, &[u8]) -> Result<(), Fault>;

/// Something that goes.
pub struct Removed<'a> {
    /// Its name below the home.
    pub name: &'a str,
    /// Its name in the store, for people.
    pub of: &'a str,
    /// What its metadata are called, in it.
    pub key: &'a str,
    /// Its marker, where it may be changed in place.
    pub marker: Option<&'a str>,
    /// Small files that may tell of it.
    pub telling: &'a [String],
    /// What such a file of these bytes becomes, so that it does not; nothing if it does not already.
    pub less: Less<'a>,
    /// Whether it shall be durable that it is gone.
    pub sync: bool,
}

/// Above a name.
fn above(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(above, _)| above)
}

impl Opening {
    /// Removes something without room for a record. What is there afterwards is as if it had gone the usual way.
    ///
    /// # Errors
    /// When another program changes it in place, or the storage refuses; the error says what is left.
    pub fn remove_without_room(&self, removed: &Removed) -> Result<(), Fault> {
        self.check_still_there()?;
        self.check_unmarked(removed)?;
        let names = self.names();
        let own = format!("{}/{}", removed.name, removed.key);
        let hidden = self.home.gone(&names.token());
        let hide = || names.rename(removed.name, &hidden);
        let written = |name: &str, bytes: &[u8]| names.write(name, bytes, removed.sync);
        let hid = self.tell_of_less(removed, &written).and_then(|()| hide());
        let hid = match hid {
            Err(fault) if fault.room == RoomLeft::Full => {
                self.tell_of_less(removed, &|name, bytes| self.written_over(&own, name, bytes, removed.sync))?;
                hide()
            }
            hid => hid,
        };
        match hid {
            Ok(()) => self.end_removed(removed, &hidden),
            Err(fault) if fault.room == RoomLeft::Full => {
                // Without metadata, nobody finds it by its name.
                names.remove(&own)?;
                self.end_removed(removed, removed.name)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Replaces what tells of it, by this.
    fn tell_of_less(&self, removed: &Removed, replace: Replace) -> Result<(), Fault> {
        let names = self.names();
        for name in removed.telling {
            let less = || names.read(name)?.map_or(Ok(None), |bytes| (removed.less)(name, &bytes));
            if less()?.is_none() {
                continue;
            }
            let mut change = || less()?.map_or(Ok(()), |bytes| replace(name, &bytes));
            // To have the list of owners to oneself takes an inode, too, as long as it lasts.
            match self.home.alone(&mut change) {
                Err(fault) if fault.lacks_room() => change()?,
                changed => changed?,
            }
        }
        Ok(())
    }

    /// Replaces a small file by one that is there, `from`, which gets these bytes under a hidden name. Where that cannot be,
    /// both are as they were.
    fn written_over(&self, from: &str, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        let names = self.names();
        let Some(before) = names.read(from)? else { return names.write(name, bytes, sync) };
        let last = name.rsplit('/').next().unwrap_or(name);
        let between = if above(name).is_empty() { String::new() } else { format!("{}/", above(name)) };
        let hidden = format!("{between}.{last}.hyperslab-{}", names.token());
        names.rename(from, &hidden)?;
        let put = |bytes: &[u8]| {
            names.overwrite(&hidden, bytes, sync)?;
            names.resize(&hidden, bytes.len() as u64)
        };
        let replaced = put(bytes).and_then(|()| if sync { names.sync_content(&hidden) } else { Ok(()) });
        replaced.and_then(|()| names.rename(&hidden, name)).map_err(|fault| {
            match put(&before).and_then(|()| names.rename(&hidden, from)) {
                Ok(()) => fault,
                Err(why) => fault.also(format!("'{}' is left behind: {}", names.full(&hidden), why.text())),
            }
        })?;
        if sync { names.sync(above(name)) } else { Ok(()) }
    }

    /// It is out of sight.
    fn end_removed(&self, removed: &Removed, hidden: &str) -> Result<(), Fault> {
        // What is removed before its name is gone for good would be missed after a loss of power.
        let synced = if removed.sync { self.sync_published(above(removed.name), removed.name) } else { Ok(()) };
        let gone = self.names().remove(hidden).map_err(|fault| self.left_behind(hidden, fault));
        synced.and(gone)
    }

    /// Refuses to remove what another program changes in place at this moment. Who begins to later does so in what is gone.
    fn check_unmarked(&self, removed: &Removed) -> Result<(), Fault> {
        let Some(marker) = removed.marker.filter(|_| !self.names().is_link(removed.name)) else { return Ok(()) };
        let what = format!("'{}' of '{}'", removed.of, self.home.shown());
        let note = || self.names().note(marker).map(Option::unwrap_or_default);
        match self.names().lock(marker)? {
            Locked::Absent => Ok(()),
            Locked::Busy => Err(self.is_being_changed(&note()?, &what)),
            Locked::Ours(lock) => self.take_over(&note()?, &*lock, marker, &what),
        }
    }
}
