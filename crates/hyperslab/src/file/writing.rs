//! Writing arrays of a file.

use super::disk::{self, follow_disk, marker};
use super::form::{ChangeFile, FileChange, FileSize, NewPlaces};
use super::{Contained, File, FileArray};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::said::quoted;
use crate::selection::Sections;
use crate::zarr::{ArrayWrite, Mode, completed, named, write_requests};
use hyperslab_collective::attempts::{Change, Marker};
use hyperslab_collective::{Arguments, Compared, Decision, LocalArray, Ownership, Report, Target, check_cast};
use hyperslab_layout::{Casting, Durability, ElementType, Holes, Policies, Section, Stored, Triplet, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Transfer};
use hyperslab_walk::PlacedChunk;
use hyperslab_world::{Fault, FaultKind, Proof, Root};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Rank 0's side of a write.
struct Putting {
    file: File,
    stored: Vec<Stored>,
    /// Number of each array in the file, and what is written of it.
    numbers: Vec<usize>,
    sections: Sections,
    /// Whether arrays become longer.
    lengthens: bool,
    /// Where units lie that got room, and where that ends; of a file that exists, how long it was before.
    placed: Option<(NewPlaces, u64)>,
    length: Option<u64>,
    /// Whether all units got room, so that nothing is lost of what was there.
    spares: bool,
    /// What was in place before, where something of it was changed.
    replaced: Vec<(u64, Vec<u8>)>,
    /// How far the file went before.
    before: FileSize,
    /// What it began with before, where that may change when it grows.
    beginning: Option<Vec<u8>>,
    /// Where the last ends now \[B\].
    end: u64,
    /// Whether nothing stays of what the file had.
    whole: bool,
    marker: Option<Marker>,
    /// Whether it made the new file.
    made: bool,
    /// Whether readers may have been told how far it goes now.
    told: bool,
}

impl Putting {
    fn new(file: File, before: FileSize, beginning: Option<Vec<u8>>) -> Putting {
        Putting {
            file,
            stored: Vec::new(),
            numbers: Vec::new(),
            sections: Sections::Whole,
            lengthens: false,
            placed: None,
            length: None,
            spares: false,
            replaced: Vec::new(),
            end: before.bytes,
            before,
            beginning,
            whole: false,
            marker: None,
            made: false,
            told: false,
        }
    }

    /// Tells readers how far the file goes, by what it begins with.
    fn tell(&self, beginning: &[u8]) -> Result<(), Fault> {
        let file = &self.file;
        let changing = file.inside().form.lasting().map_or(beginning.len(), |(from, _)| from as usize);
        file.directory.overwrite(&file.name, &beginning[..changing], file.options.durable)
    }

    /// Tells them again how far it went. Gives whether they know.
    fn untell(&self) -> bool {
        if !self.replaced.is_empty() {
            let back = |(at, bytes): &(u64, Vec<u8>)| self.file.directory.overwrite_part(&self.file.name, *at, bytes);
            return self.replaced.iter().rev().all(|one| back(one).is_ok()) && self.synced().is_ok();
        }
        !self.told || self.beginning.as_ref().is_some_and(|before| self.tell(before).is_ok())
    }

    fn synced(&self) -> Result<(), Fault> {
        let File { directory, name, options, .. } = &self.file;
        if options.durable { directory.sync_files(std::slice::from_ref(name)) } else { Ok(()) }
    }

    /// Lets a file that exists say where units lie now: first what is behind all else, then what leads there.
    fn change(&mut self, change: ChangeFile) -> Result<(), Fault> {
        let (directory, name) = (self.file.directory.clone(), self.file.name.clone());
        let FileChange { at, behind, in_place, before } = change(&*directory, &name)?;
        let end = at + behind.len() as u64;
        // How long it is tells how far a program that died may write: where nothing is added, that stays.
        if !behind.is_empty() {
            directory.resize(&name, end)?;
            directory.overwrite_part(&name, at, &behind)?;
            self.synced()?;
        }
        for ((at, bytes), before) in in_place.iter().zip(before) {
            self.replaced.push(before);
            self.told = true;
            directory.overwrite_part(&name, *at, bytes)?;
        }
        self.synced()?;
        let bytes = self.beginning.as_ref().map_or(0, |beginning| beginning.len() as u64);
        let beginning = directory.read_prefix(&name, bytes)?.unwrap_or_default();
        self.file.inside().form.has_changed(end, beginning);
        Ok(())
    }

    /// Makes sure that the file still begins as it did when it was opened, or last grew.
    fn check_beginning(&self) -> Result<(), Fault> {
        let Some(beginning) = &self.beginning else { return Ok(()) };
        let (directory, name) = (&self.file.directory, &self.file.name);
        if directory.read_prefix(name, beginning.len() as u64)?.as_ref() == Some(beginning) {
            return Ok(());
        }
        let path = directory.full(name);
        let text = format!("'{path}' has another header than when it was opened: somebody else has changed it");
        Err(Fault::new(FaultKind::Busy, text).about(path).hint("open it again, to see what it holds now"))
    }

    /// Whether arrays grow.
    fn grows(&self) -> bool {
        self.end != self.before.bytes
    }

    /// Makes a file that exists so long that all chunks have room that get some. So whoever comes next knows how far a rank of
    /// this program may write that was stopped and comes back, and writes nothing there.
    fn make_room(&mut self, transfer: &Transfer) {
        let from = transfer.asks.iter().find_map(|ask| ask.stored.allotted_from());
        let Some(from) = from else { return };
        let most = transfer.asks.iter().map(|ask| ask.stored.room_bytes_max(&ask.section)).fold(0, u64::saturating_add);
        let (directory, name) = (&self.file.directory, &self.file.name);
        self.length = directory.length(name);
        if directory.is_plain() {
            // What is asked for ahead, and not used, is less than as much again. Where files cannot be as long, or have no
            // holes, it goes without.
            let _ = directory.resize(name, from.saturating_add(most.saturating_mul(2)));
        }
    }

    /// Makes a file that exists as long as it shall be. What lay behind its end, as after an append that was cut short, must
    /// not be seen between what is written now.
    fn lengthen(&self) -> Result<(), Fault> {
        let (directory, name) = (&self.file.directory, &self.file.name);
        if !self.grows() {
            return Ok(());
        }
        if directory.length(name).is_some_and(|length| length > self.before.bytes) {
            directory.resize(name, self.before.bytes)?;
        }
        directory.resize(name, self.end)
    }

    /// Makes it as long as it was, unless somebody else has changed that.
    fn shorten(&self) {
        let (directory, name) = (&self.file.directory, &self.file.name);
        if self.grows() && directory.length(name) == Some(self.end) {
            let _ = directory.resize(name, self.before.bytes);
        }
        // What got room lies behind it, and nobody is led there.
        if let Some(length) = self.length {
            let _ = directory.resize(name, length);
        }
    }
}

impl Target for Putting {
    fn look(&mut self, _laid: &[Option<MemoryLayout>]) -> Result<Vec<Stored>, Fault> {
        let places_are_known = {
            let inside = self.file.inside();
            self.numbers.iter().all(|number| inside.form.lookup(*number).is_none())
        };
        if places_are_known {
            return Ok(std::mem::take(&mut self.stored));
        }
        let File { directory, name, mode, .. } = &self.file;
        // Behind its end may lie what ranks of a program that died still write.
        let length = if mode.writes_new() { None } else { directory.length(name) };
        let room = self.end.max(length.unwrap_or(0));
        self.file.located(std::mem::take(&mut self.stored), &self.numbers, &self.sections, Some(room))
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        self.file.decided(transfer, laid)
    }

    fn begin(
        &mut self,
        stored: &mut [Stored],
        transfer: &Arc<Transfer>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        let (file, end) = (self.file.clone(), self.end);
        let (directory, attempts) = (&*file.directory, &file.attempts);
        let proof = if file.mode.writes_new() {
            if file.inside().begun.is_none() {
                let beginning = file.inside().form.beginning();
                attempts.make_file(&beginning, end)?;
                file.inside().begun = Some(beginning);
                self.made = true;
            } else {
                directory.resize(&file.hidden, end)?;
            }
            follow_disk(parameters, transfer, directory, (&file.hidden, end))?;
            Proof::File(directory.full(&file.hidden).into())
        } else {
            let marked = attempts.mark(&marker(&file.name), &file.name, &Change::Torn(None))?;
            // From now on nobody replaces it; somebody may have, until now.
            let still = attempts.check_still_there().and_then(|()| self.check_beginning());
            if let Err(fault) = still.and_then(|()| self.lengthen()) {
                attempts.withdraw(marked);
                return Err(fault);
            }
            self.make_room(transfer);
            self.spares = stored.iter().all(|stored| stored.allotted_from().is_some());
            let proof = marked.proof(directory);
            follow_disk(parameters, transfer, directory, (&file.name, 0))?;
            self.marker = Some(marked);
            proof
        };
        Ok(vec![self.file.root(vec![proof])])
    }

    fn placed(&mut self, chunks: Vec<PlacedChunk>, end: u64) -> Result<(), Fault> {
        let mut places = NewPlaces::new();
        for placed in chunks {
            let number = self
                .numbers
                .get(placed.chunk.array as usize)
                .ok_or_else(|| Fault::new(FaultKind::Peer, "a rank told of chunks of an array that is not written"))?;
            places.entry(*number).or_default().push(placed);
        }
        self.placed = Some((places, end));
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        // What took its place may have parts of this update: the marker stays, without an owner.
        self.file.attempts.check_still_there()?;
        let placed = self.placed.take().or_else(|| self.lengthens.then(|| (NewPlaces::new(), self.end)));
        if let Some((mut places, end)) = placed {
            // Of those, the new length is told, wherever what is new lies.
            for number in self.numbers.iter().filter(|_| self.lengthens) {
                places.entry(*number).or_default();
            }
            let change = self.file.inside().form.put_in_room(places, end)?;
            change.map_or(Ok(()), |change| self.change(change))?;
        }
        if self.marker.is_some() && self.grows() {
            // How far it goes is the last thing that changes.
            let beginning = self.file.inside().form.beginning();
            self.told = true;
            self.tell(&beginning)?;
        }
        let Some(marker) = self.marker.take() else { return Ok(()) };
        // Only writing all of the file ends an earlier update that did not end.
        let stays = marker.was_there() && !self.whole;
        let unmarked = self.file.attempts.unmark(marker, stays);
        // It has grown, and readers know: to do it again would append the same twice.
        unmarked.map_err(|fault| match self.told {
            true => self.file.attempts.left_behind(&disk::marker(&self.file.name), fault),
            false => fault,
        })
    }

    fn undo(&mut self, moved: bool) {
        // As long as readers may know of more, it stays.
        let back = self.marker.is_none() || self.untell();
        if self.marker.is_some() && back {
            self.shorten();
        }
        match self.marker.take() {
            // What lies behind the end that its header names nobody reads.
            Some(marker) if back && (!moved || self.grows() || self.spares) => self.file.attempts.withdraw(marker),
            // It stays beside the file, without an owner.
            Some(_) => {}
            None if !self.file.mode.writes_new() => {}
            None if self.made => {
                self.file.inside().begun = None;
                drop(self.file.attempts.end());
            }
            // Nothing was begun.
            None if self.file.inside().begun.is_none() => {}
            // What was written before stays; the file must not be longer than that.
            None => drop(self.file.directory.resize(&self.file.hidden, self.before.bytes)),
        }
    }

    fn abandon(&mut self) {
        self.marker = None;
    }
}

/// What a write does, once it is clear what is asked.
#[derive(Default)]
struct Prepared {
    asks: Vec<ArrayWrite>,
    sections: Sections,
    /// Number of each array in the file.
    numbers: Vec<usize>,
    /// Whether they become longer.
    lengthens: bool,
}

impl File {
    /// Writes arrays: after the ones that are there, in a new file; over the ones of the same names, in a file open for
    /// update. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn write(&self, asks: &[ArrayWrite], options: &WriteOptions) -> Result<Report, Error> {
        if self.comm.goes_on_alone() {
            return Ok(self.write_later(asks.to_vec(), options.clone(), false).wait()?.1);
        }
        self.put("write", asks, options, |asks| {
            if self.mode.writes_new() {
                return self.add(asks, options);
            }
            let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
            options.section.check(asks.len())?;
            WriteOptions { element: None, ..options.clone() }.check_for_existing()?;
            let numbers = self.numbers(&names)?;
            self.check_element(options.element, &numbers)?;
            numbers.iter().try_for_each(|number| self.inside().form.check_changeable(*number))?;
            Ok(Prepared { numbers, sections: options.section.clone(), asks, lengthens: false })
        })
    }

    /// Refuses another type of the stored elements than arrays have that are there.
    fn check_element(&self, asked: Option<ElementType>, numbers: &[usize]) -> Result<(), Fault> {
        let Some(asked) = asked else { return Ok(()) };
        let inside = self.inside();
        let arrays = numbers.iter().map(|&number| inside.form.array(number));
        match arrays.into_iter().find(|array| array.element.kind != asked.kind) {
            None => Ok(()),
            Some(array) => {
                let text = format!("the type of the stored elements of '{}' cannot be changed", array.name);
                Err(Fault::new(FaultKind::Invalid, text)
                    .expected(array.element.numpy(), asked.numpy())
                    .hint("leave dtype out: elements are converted to what is stored, as casting allows"))
            }
        }
    }

    /// Makes arrays longer along their first dimension, all of a call by the same extent: those of the file that grow, of which
    /// it all have one length. What is not given gets fill values. Readers see the new length once all is written. Collective.
    ///
    /// # Errors
    /// The same on all ranks; the arrays have their old length then.
    pub fn append(&self, asks: &[ArrayWrite], axis: usize, options: &WriteOptions) -> Result<Report, Error> {
        self.put("append", asks, options, |asks| {
            if axis != 0 {
                let text = format!("arrays of a file cannot grow along dimension {axis}");
                return Err(Fault::new(FaultKind::Unsupported, text).hint("append along the first dimension, axis=0"));
            }
            options.check_for_existing()?;
            if !options.section.is_whole() {
                return Err(Fault::new(FaultKind::Invalid, "a section cannot be given for what is appended")
                    .hint("leave the section out; change what is there with write(section=...)"));
            }
            self.extend(asks)
        })
    }

    /// Carries out a write of what is prepared on each rank alike.
    fn put(
        &self,
        verb: &'static str,
        asks: &[ArrayWrite],
        options: &WriteOptions,
        prepare: impl FnOnce(Vec<ArrayWrite>) -> Result<Prepared, Fault>,
    ) -> Result<Report, Error> {
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let what = format!("{verb} of {} to '{}'", crate::zarr::listed(&names), self.path().display());
        let (asks, unfit) = completed(asks.to_vec(), self.comm.size());
        // The calls before this one decide where it may begin.
        self.await_calls();
        let (before, beginning) = {
            let inside = self.inside();
            (inside.form.extent(), inside.form.lasting().map(|_| inside.form.beginning()))
        };
        let fit = unfit.map_or_else(|| self.inside().form.check(options), Err);
        let fit = fit.and_then(|()| self.check_writable()).and_then(|()| options.check_each(asks.len()));
        let prepared = fit.and_then(|()| prepare(asks)).and_then(|prepared| {
            self.check_cast(&prepared, options.casting)?;
            Ok(prepared)
        });
        let (Prepared { asks, sections, numbers, lengthens }, fault) = match prepared {
            Ok(prepared) => (prepared, None),
            Err(fault) => (Prepared::default(), Some(fault)),
        };
        let gets_room = self.mode.writes_new() && numbers.iter().any(|number| self.inside().form.gets_room(*number));
        let whole = sections.is_whole() && numbers.iter().collect::<HashSet<_>>().len() == before.arrays;
        let putting = || -> Box<dyn Target> {
            let (stored, end) = (self.stored(&numbers), self.inside().form.extent().bytes);
            let putting = Putting::new(self.preferring(options.strategy), before.clone(), beginning);
            let (numbers, sections) = (numbers.clone(), sections.clone());
            Box::new(Putting { stored, numbers, sections, lengthens, end, whole, ..putting })
        };
        let (new, target) = (self.mode.writes_new(), (self.comm.rank() == 0).then(putting));
        let done = self.comm.transfer(Arguments {
            what,
            compared: self.compared(verb, options),
            fault,
            direction: Direction::Write,
            arrays: write_requests(&asks, &sections),
            locals: Some(asks.into_iter().map(|ask| ask.arrays).collect()),
            casting: options.casting,
            policies: self.policies_of_writes(),
            together: true,
            target,
            // A new file becomes visible when it is closed; but rank 0 must hear where units lie.
            publishes: !new || gets_room,
            at_once: if new { self.attempts.at_once(1) } else { self.attempts.at_once_durable(1) },
        });
        let mut inside = self.inside();
        if done.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced) {
            inside.added.truncate(before.arrays);
            inside.form.back_to(before);
        } else if !self.comm.is_inside() {
            inside.added.iter_mut().filter(|added| **added == u64::MAX).for_each(|added| *added = 0);
        }
        drop(inside);
        Ok(done?.report)
    }

    /// What ranks compare of a write, besides its arrays.
    fn compared(&self, verb: &'static str, options: &WriteOptions) -> Compared {
        let (path, set_aside, strategy) = (self.path(), self.held, options.strategy);
        let compared = Compared::of((verb, path.clone(), set_aside, strategy), move || {
            vec![
                ("operation".into(), verb.into()),
                ("file or store".into(), quoted(path.display())),
                ("bytes set aside for copies (staged)".into(), set_aside.to_string()),
                ("strategy".into(), named(strategy)),
            ]
        });
        options.compared(compared)
    }

    /// What is promised of what is written. A new file is made durable when it is closed.
    fn policies_of_writes(&self) -> Policies {
        let durability = match (self.options.durable, self.mode.writes_new()) {
            (false, _) => Durability::Cached,
            (true, true) => Durability::Soon,
            (true, false) => Durability::Now,
        };
        // What lies between records of one array others may be writing.
        let holes = if self.inside().form.interleaves() { Holes::Kept } else { Holes::MayBeRewritten };
        Policies { holes, ..Policies::of(durability) }
    }

    fn check_writable(&self) -> Result<(), Fault> {
        match self.mode {
            Mode::Read => Err(Fault::new(FaultKind::Invalid, "the file is open for reading only")
                .hint("open it with mode 'r+', or 'w' for a new file")),
            _ => Ok(()),
        }
    }

    /// Refuses arrays whose elements may not become what is stored.
    fn check_cast(&self, prepared: &Prepared, casting: Casting) -> Result<(), Fault> {
        let inside = self.inside();
        prepared.asks.iter().zip(&prepared.numbers).try_for_each(|(ask, &number)| {
            check_cast(&ask.name, &ask.arrays, inside.form.array(number).element, casting)
        })
    }

    /// Adds arrays to a new file.
    fn add(&self, mut asks: Vec<ArrayWrite>, options: &WriteOptions) -> Result<Prepared, Fault> {
        // What a call that blocks adds is shown once it has succeeded.
        let request = self.comm.current().map_or(u64::MAX, |request| request.number);
        let mut inside = self.inside();
        let before = inside.form.extent();
        let mut taken: HashSet<&str> = inside.form.names().into_iter().collect();
        for ArrayWrite { name, .. } in &asks {
            if !options.section.is_whole() || !taken.insert(name) {
                let text = format!("array '{name}' of a new file is written once and whole");
                return Err(Fault::new(FaultKind::Invalid, text).hint("open a file that exists with mode 'r+'"));
            }
        }
        let typed = asks.iter().map(|ask| {
            let element = options.element.or(ask.element()).ok_or_else(|| {
                let text =
                    format!("this rank holds no piece of '{}', so the type of its elements is unknown", ask.name);
                Fault::new(FaultKind::Invalid, text).hint("give dtype= on all ranks")
            })?;
            Ok((ask, element))
        });
        let typed = typed.collect::<Result<Vec<_>, Fault>>()?;
        inside.form.add(&typed, options)?;
        inside.added.extend(asks.iter().map(|_| request));
        let mut numbers: Vec<usize> = (before.arrays..before.arrays + asks.len()).collect();
        let records = inside.form.extent().records;
        self.fill_others(&inside, before.records..records, &mut asks, &mut numbers)?;
        Ok(Prepared { asks, sections: Sections::Whole, numbers, lengthens: false })
    }

    /// Makes the arrays that grow longer.
    fn extend(&self, mut asks: Vec<ArrayWrite>) -> Result<Prepared, Fault> {
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let mut numbers = self.numbers(&names)?;
        let mut inside = self.inside();
        let before = inside.form.extent().records;
        let by = asks.first().and_then(|ask| ask.shape().first().copied()).unwrap_or(0);
        for (ask, number) in asks.iter().zip(&numbers) {
            let (array, given) = (inside.form.array(*number), ask.shape());
            if !inside.form.grows(*number) {
                let text = format!("'{}' does not grow: its first dimension is not unlimited", ask.name);
                return Err(Fault::new(FaultKind::Unsupported, text)
                    .hint("say with unlimited= or maxshape= which dimensions grow when the file is made"));
            }
            let others = given.len() == array.shape.len() && given[1..] == array.shape[1..];
            if !others || given[0] != by {
                let expected = [&[by], array.shape.get(1..).unwrap_or_default()].concat();
                let text = format!("what is appended to '{}' does not fit", ask.name);
                return Err(Fault::new(FaultKind::Invalid, text)
                    .expected(format!("shape {expected}", expected = tuple(&expected)), tuple(given).to_string())
                    .hint("give as many records for all arrays of a call, with the other extents as they are"));
            }
        }
        if numbers.iter().collect::<HashSet<_>>().len() < numbers.len() {
            return Err(Fault::new(FaultKind::Invalid, "an array is appended to twice in one call"));
        }
        inside.form.grow(&numbers, by)?;
        self.fill_others(&inside, before..before + by, &mut asks, &mut numbers)?;
        let rows = |(ask, number): (&ArrayWrite, &usize)| {
            let start = inside.form.array(*number).shape[0] - by;
            let whole = Section::whole(ask.shape());
            let dims = whole.dims.into_iter().enumerate();
            let dims = dims.map(|(d, triplet)| if d == 0 { Triplet { start, ..triplet } } else { triplet });
            Section { dims: dims.collect() }
        };
        let sections = Sections::Each(asks.iter().zip(&numbers).map(rows).collect());
        Ok(Prepared { sections, asks, numbers, lengthens: true })
    }

    /// Arrays that grow with others, and of which nothing is given, get fill values: of one element, again and again.
    fn fill_others(
        &self,
        inside: &Contained,
        records: Range<u64>,
        asks: &mut Vec<ArrayWrite>,
        numbers: &mut Vec<usize>,
    ) -> Result<(), Fault> {
        if records.is_empty() {
            return Ok(());
        }
        for number in inside.form.growing_together() {
            if numbers.contains(&number) {
                continue;
            }
            let FileArray { name, mut shape, element } = inside.form.array(number);
            shape[0] = records.end - records.start;
            let memory = Memory::from_vec(inside.form.stored(number, &"".into()).fill.to_vec());
            let strides = vec![0; shape.len()];
            let holding = Ownership::replicated(&shape, self.comm.size())?;
            let array = LocalArray { memory, element, shape, strides, offset: 0 };
            asks.push(ArrayWrite { name, arrays: vec![array], holding: Some(Arc::new(holding)) });
            numbers.push(number);
        }
        Ok(())
    }
}
