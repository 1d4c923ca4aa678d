//! Writing arrays of a file.

use super::form::FileSize;
use super::phase::FilePhase;
use super::putting::Putting;
use super::{Contained, File, FileArray};
use crate::array_write::{ArrayWrite, completed, named, write_requests};
use crate::error::Error;
use crate::mode::Mode;
use crate::options::WriteOptions;
use crate::said::quoted;
use crate::selection::Sections;
use hyperslab_collective::{Arguments, Compared, LocalArray, Ownership, Report, Target, check_cast};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Casting, Durability, ElementType, Holes, Policies, Section, Triplet, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::Direction;
use hyperslab_walk::{Question, Votes};
use hyperslab_world::{Fault, FaultKind};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a write does, once it is clear what is asked.
#[derive(Default)]
struct Prepared {
    asks: Vec<ArrayWrite>,
    sections: Sections,
    /// Number of each array in the file.
    numbers: Vec<usize>,
    /// Whether they become longer.
    lengthens: bool,
    /// Whether they are new.
    adds: bool,
    /// Whether readers shall not yet be told how far the file goes then.
    untold: bool,
    /// How far it went, and what it began with, when readers were told last, where that was before this write.
    since: Option<(FileSize, Option<Vec<u8>>)>,
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
        let kept = self.with_texts_kept("write", (asks, options))?;
        let (asks, options) = kept.as_ref().map_or((asks, options), |(asks, options)| (asks, options));
        self.lengthen_to(asks, &options.section)?;
        if self.is_new() && self.inside().form.outgrows(asks, options) {
            self.arrange()?;
        }
        let hides = self.hide_again(asks, options)?;
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let in_place = self.is_new() || !self.inside().form.adds_by_copy();
        let adds = options.section.is_whole() && in_place && self.are_new(&names) == Ok(true);
        let pieces = if adds { self.with_holes("write", asks) } else { Ok(Vec::new()) };
        let written = pieces.and_then(|pieces| match pieces.is_empty() {
            true => self.put_arrays(asks, options),
            false => self.fill_and_put("write", (asks, &pieces), options, |asks| self.add(asks, options)),
        });
        match hides {
            Some(_) if written.as_ref().is_err_and(|error| !error.is_unsynced()) => self.unhide(),
            Some(before) => self.show_again(before)?,
            None => {}
        }
        written
    }

    fn put_arrays(&self, asks: &[ArrayWrite], options: &WriteOptions) -> Result<Report, Error> {
        self.put("write", asks, options, |asks| {
            let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
            if options.section.is_whole() && self.are_new(&names)? {
                return self.add(asks, options);
            }
            if let Some(name) = names.first().filter(|_| self.is_new() && options.section.is_whole()) {
                let text = format!("array '{name}' of a new file is written already");
                return Err(Fault::new(FaultKind::Invalid, text).hint("section=... changes it, or a part of it"));
            }
            options.section.check(asks.len())?;
            WriteOptions { element: None, ..options.clone() }.check_for_existing()?;
            let numbers = self.numbers(&names)?;
            self.check_changeable(&numbers)?;
            numbers
                .iter()
                .enumerate()
                .try_for_each(|(i, number)| self.check_element(options.of(i).element, *number))?;
            Ok(Prepared { numbers, sections: options.section.clone(), asks, ..Prepared::default() })
        })
    }

    /// Those that ranks hold in pieces, where they may leave some elements out. Collective if there are any in pieces: ranks add up
    /// how many elements they hold. Where these are as many as there are, each has one that holds it: none may have two.
    fn with_holes(&self, verb: &str, asks: &[ArrayWrite]) -> Result<Vec<usize>, Error> {
        let pieces = self.in_pieces(asks);
        if pieces.is_empty() {
            return Ok(pieces);
        }
        let elements = |shape: &[u64]| volume(shape).unwrap_or(u64::MAX);
        let all = pieces.iter().map(|at| elements(asks[*at].shape())).fold(0, u64::saturating_add);
        let own = pieces.iter().flat_map(|at| &asks[*at].arrays).map(|array| elements(&array.shape));
        let names: Vec<&str> = pieces.iter().map(|at| asks[*at].name.as_str()).collect();
        let what = format!("{verb} of {} to '{}'", crate::array_write::listed(&names), self.path().display());
        // Ranks that hold all of these arrays by distributions come with another operation.
        let operation = format!("{verb} of arrays in pieces (boxes, runs, element maps)");
        let fields = vec![("operation".to_string(), operation), ("elements".to_string(), all.to_string())];
        let votes = Votes { held: Some(own.fold(0, u64::saturating_add)), ..Votes::default() };
        let question = Question { votes, ..Question::opening(what, fields, None) };
        let held = self.comm.agree_by(
            question,
            Box::new(|votes| (Box::new(move || Ok(votes.held.unwrap_or(0).to_le_bytes().to_vec())), true)),
        )?;
        let whole = held.first_chunk().is_some_and(|held| u64::from_le_bytes(*held) == all);
        Ok(if whole { Vec::new() } else { pieces })
    }

    /// Which of these arrays ranks hold in pieces, and so perhaps not all elements of, where these get fill values only if they are
    /// written.
    fn in_pieces(&self, asks: &[ArrayWrite]) -> Vec<usize> {
        let inside = self.inside();
        let is_in_pieces = |ask: &ArrayWrite| ask.holding.as_deref().is_some_and(|holding| holding.regular().is_none());
        let fills = |ask: &ArrayWrite| is_in_pieces(ask) && inside.form.fills_by_writing(ask.shape());
        (0..asks.len()).filter(|number| fills(&asks[*number])).collect()
    }

    /// Writes what is new of arrays, of which ranks hold some in pieces: these get fill values first. Readers are told
    /// when all is written; but of what is new in a file that exists, which they may see in between.
    fn fill_and_put(
        &self,
        verb: &'static str,
        (asks, pieces): (&[ArrayWrite], &[usize]),
        options: &WriteOptions,
        prepare: impl FnOnce(Vec<ArrayWrite>) -> Result<Prepared, Fault>,
    ) -> Result<Report, Error> {
        let since = self.gone_so_far();
        // Whether readers see them in between.
        let mut in_sight = false;
        let before = since.0.clone();
        let mut rows = Vec::new();
        let filled = self.put(verb, asks, options, |asks| {
            let mut prepared = prepare(asks)?;
            let inside = self.inside();
            for at in pieces {
                let (ask, number) = (&mut prepared.asks[*at], prepared.numbers[*at]);
                let section = prepared.sections.of(*at).cloned();
                rows.push((number, section.unwrap_or_else(|| Section::whole(ask.shape()))));
                *ask = self.filling(&inside, number, ask.shape().to_vec())?;
            }
            in_sight = prepared.adds && !self.is_new();
            Ok(Prepared { untold: !in_sight, ..prepared })
        })?;
        let given: Vec<ArrayWrite> = pieces.iter().map(|at| asks[*at].clone()).collect();
        let WriteOptions { casting, strategy, .. } = *options;
        let (numbers, sections) = rows.into_iter().unzip();
        let options = WriteOptions { casting, strategy, ..WriteOptions::default() };
        let written = self.put(verb, &given, &options, |asks| {
            Ok(Prepared {
                asks,
                numbers,
                sections: Sections::Each(sections),
                since: Some(since).filter(|_| !in_sight),
                ..Prepared::default()
            })
        });
        if !in_sight && written.as_ref().is_err_and(|error| !error.is_unsynced()) {
            // Also where it was refused before it began.
            self.has_put(true, before, false);
        }
        written.map(|_| filled)
    }

    /// Whether none of these arrays are in the file, which may get more.
    fn are_new(&self, names: &[&str]) -> Result<bool, Fault> {
        let inside = self.inside();
        if !self.is_new() && !inside.form.takes_new() {
            return Ok(false);
        }
        let paths = self.paths(names);
        let found = inside.form.numbers_of(&paths);
        let (there, new): (Vec<_>, Vec<_>) = names.iter().zip(found).partition(|(_, number)| number.is_some());
        let is_other = |path: &Cow<str>| inside.form.others().is_some_and(|others| others.contains_key(&**path));
        if new.is_empty() && !there.is_empty() || paths.iter().any(is_other) {
            return Ok(false);
        }
        match there.first() {
            None => Ok(true),
            Some((one, _)) => {
                let text = format!("'{one}' is in the file, and '{}' is new", new[0].0);
                Err(Fault::new(FaultKind::Invalid, text).hint("write what is new in a call of its own"))
            }
        }
    }

    /// Refuses to change arrays that cannot be, or that readers see while more is gathered behind them.
    fn check_changeable(&self, numbers: &[usize]) -> Result<(), Fault> {
        let inside = self.inside();
        let gathers = self.phase.get() == FilePhase::Gathering;
        for number in numbers {
            inside.form.check_changeable(*number)?;
            if gathers && *number < inside.seen {
                let text = format!("'{}' is seen by others already", inside.form.array(*number).name);
                return Err(Fault::new(FaultKind::Unsupported, text)
                    .hint("close the file, and open it with mode 'r+', which changes arrays where they lie"));
            }
        }
        Ok(())
    }

    /// Refuses another type of the stored elements than an array has that is there.
    fn check_element(&self, asked: Option<ElementType>, number: usize) -> Result<(), Fault> {
        let inside = self.inside();
        let array = inside.form.array(number);
        let Some(asked) = asked.filter(|asked| asked.kind != array.element.kind) else { return Ok(()) };
        let text = format!("the type of the stored elements of '{}' cannot be changed", array.name);
        Err(Fault::new(FaultKind::Invalid, text)
            .expected(array.element.numpy(), asked.numpy())
            .hint("leave dtype out: elements are converted to what is stored, as casting allows"))
    }

    /// Makes arrays longer along their first dimension, all of a call by the same extent: those of the file that grow, of which
    /// it all have one length. What is not given gets fill values. Readers see the new length once all is written. Collective.
    ///
    /// # Errors
    /// The same on all ranks; the arrays have their old length then.
    pub fn append(&self, asks: &[ArrayWrite], axis: usize, options: &WriteOptions) -> Result<Report, Error> {
        let kept = self.with_texts_kept("append", (asks, options))?;
        let (asks, options) = kept.as_ref().map_or((asks, options), |(asks, options)| (asks, options));
        self.arrange()?;
        let prepare = |asks| {
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
        };
        let pieces = self.with_holes("append", asks)?;
        match pieces.is_empty() {
            true => self.put("append", asks, options, prepare),
            false => self.fill_and_put("append", (asks, &pieces), options, prepare),
        }
    }

    /// How far the file goes, and what it begins with, where that may change when it grows.
    pub(super) fn gone_so_far(&self) -> (FileSize, Option<Vec<u8>>) {
        self.await_calls();
        let inside = self.inside();
        (inside.form.extent(), inside.form.lasting().map(|_| inside.form.beginning()))
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
        let what = format!("{verb} of {} to '{}'", crate::array_write::listed(&names), self.path().display());
        let (asks, unfit) = completed(asks.to_vec(), self.comm.size());
        // The calls before this one decide where it may begin.
        let now = self.gone_so_far();
        let fit = unfit.map_or_else(|| self.inside().form.check(options), Err);
        let fit = fit.and_then(|()| self.check_writable()).and_then(|()| options.check_each(asks.len()));
        let prepared = fit.and_then(|()| prepare(asks)).and_then(|prepared| {
            self.check_cast(&prepared, options.casting)?;
            Ok(prepared)
        });
        let (Prepared { asks, sections, numbers, lengthens, adds, untold, since }, fault) = match prepared {
            Ok(prepared) => (prepared, None),
            Err(fault) => (Prepared::default(), Some(fault)),
        };
        let (filled, (before, beginning)) = (since.is_some(), since.unwrap_or(now));
        let (is_new, adds) = (adds, adds && !self.is_new());
        let gets_room = self.is_new() && numbers.iter().any(|number| self.inside().form.gets_room(*number));
        let whole = !adds && sections.is_whole() && numbers.iter().collect::<HashSet<_>>().len() == before.arrays;
        let putting = || -> Box<dyn Target> {
            let (stored, end) = (self.stored(&numbers), self.inside().form.extent().bytes);
            let putting = Putting::new(self.preferring(options.strategy), before.clone(), beginning);
            let (numbers, sections) = (numbers.clone(), sections.clone());
            Box::new(Putting { stored, numbers, sections, lengthens, adds, untold, filled, end, whole, ..putting })
        };
        let (new, target) = (self.is_new(), (self.comm.rank() == 0).then(putting));
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
            // A new file becomes visible by a call of its own; but rank 0 must hear where units lie.
            publishes: !new || gets_room,
            at_once: if new { self.attempts.at_once(1) } else { self.attempts.at_once_durable(1) },
        });
        let done = self.unfinished.note(done, |_| self.name.clone());
        let failed = done.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced);
        self.has_put(failed, before, is_new);
        Ok(done?.report)
    }

    /// Notes on all ranks what has become of a write.
    pub(super) fn has_put(&self, failed: bool, before: FileSize, adds: bool) {
        let mut inside = self.inside();
        if failed {
            inside.added.truncate(before.arrays);
            return inside.form.back_to(before);
        }
        inside.changed = true;
        if adds {
            inside.form.are_added(before.arrays);
        }
        if !self.comm.is_inside() {
            let new = inside.added.iter_mut().skip(before.arrays);
            new.filter(|added| **added == u64::MAX).for_each(|added| *added = 0);
        }
    }

    /// What ranks compare of a write, besides its arrays.
    pub(super) fn compared(&self, verb: &'static str, options: &WriteOptions) -> Compared {
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

    /// What is promised of what is written. A new file is made durable when it is published.
    pub(super) fn policies_of_writes(&self) -> Policies {
        let durability = match (self.options.durable, self.is_new()) {
            (false, _) => Durability::Cached,
            (true, true) => Durability::Soon,
            (true, false) => Durability::Now,
        };
        // What lies between records of one array others may be writing.
        let holes = if self.inside().form.interleaves() { Holes::Kept } else { Holes::MayBeRewritten };
        Policies { holes, ..Policies::of(durability) }
    }

    pub(super) fn check_writable(&self) -> Result<(), Fault> {
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
        asks.iter_mut().for_each(|ask| ask.name = self.in_file(&ask.name));
        let paths: Vec<Cow<str>> = asks.iter().map(|ask| Cow::from(&ask.name)).collect();
        let (there, mut taken) = (inside.form.numbers_of(&paths), HashSet::new());
        for (ArrayWrite { name, .. }, there) in asks.iter().zip(there) {
            if there.is_some() || !taken.insert(name) {
                return Err(Fault::new(
                    FaultKind::Invalid,
                    format!("array '{name}' is new, and given twice in one call"),
                ));
            }
        }
        let typed = asks.iter().enumerate().map(|(number, ask)| {
            let element = options.of(number).element.or(ask.element()).ok_or_else(|| {
                let text =
                    format!("this rank holds no piece of '{}', so the type of its elements is unknown", ask.name);
                Fault::new(FaultKind::Invalid, text).hint("give dtype= on all ranks")
            })?;
            Ok((ask, element))
        });
        let typed = typed.collect::<Result<Vec<_>, Fault>>()?;
        inside.form.add(&typed, options)?;
        inside.added.extend(asks.iter().map(|_| request));
        let numbers: Vec<usize> = (before.arrays..before.arrays + asks.len()).collect();
        let rows = numbers.iter().map(|_| 0).collect();
        let given = Given { asks, numbers, rows };
        let Given { asks, numbers, rows } = self.with_others(&inside, &before, given)?;
        let plain = rows.iter().all(|row| *row == 0) && each_is_whole(&inside, &asks, &numbers);
        let sections = if plain { Sections::Whole } else { sections_from(&asks, &rows) };
        Ok(Prepared { asks, numbers, sections, adds: true, ..Prepared::default() })
    }

    /// Makes the arrays that grow longer.
    fn extend(&self, asks: Vec<ArrayWrite>) -> Result<Prepared, Fault> {
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let numbers = self.numbers(&names)?;
        let mut inside = self.inside();
        let before = inside.form.extent();
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
        let rows = numbers.iter().map(|number| inside.form.rows(*number)).collect();
        inside.form.grow(&numbers, by)?;
        let Given { asks, numbers, rows } = self.with_others(&inside, &before, Given { asks, numbers, rows })?;
        let sections = sections_from(&asks, &rows);
        Ok(Prepared { sections, asks, numbers, lengthens: true, ..Prepared::default() })
    }

    /// Lets arrays grow that are written behind their last row, in formats that have it so: what nobody writes of the new rows is
    /// fill values.
    fn lengthen_to(&self, asks: &[ArrayWrite], sections: &Sections) -> Result<(), Error> {
        let wanted = |(at, ask): (usize, &ArrayWrite)| {
            let end = sections.of(at)?.dims.first()?.set().hull()?.1;
            let inside = self.inside();
            let number = inside.form.numbers_of(&self.paths(&[&ask.name]))[0]?;
            let there = *inside.form.array(number).shape.first()?;
            (inside.form.grows(number) && there < end).then_some((number, end))
        };
        if sections.is_whole() || !self.mode.writes() {
            return Ok(());
        }
        self.await_calls();
        if !self.inside().form.grows_by_sections() {
            return Ok(());
        }
        let longer: Vec<(usize, u64)> = asks.iter().enumerate().filter_map(wanted).collect();
        if longer.is_empty() {
            return Ok(());
        }
        self.arrange()?;
        self.put("lengthen", asks, &WriteOptions::default(), |_| self.fill_to(&longer)).map(drop)
    }

    /// Makes arrays so long, with fill values.
    fn fill_to(&self, longer: &[(usize, u64)]) -> Result<Prepared, Fault> {
        let mut inside = self.inside();
        let before = inside.form.extent();
        let mut given = Given::default();
        for (number, end) in longer {
            let there = inside.form.array(*number).shape[0];
            // Others may have made it as long.
            if there < *end {
                let rows = inside.form.rows(*number);
                inside.form.grow(&[*number], *end - rows)?;
                if inside.form.growing_together().is_empty() {
                    let rows = self.rows_of_fill(&inside, *number, *end - there)?;
                    given.push(rows, *number, there);
                }
            }
        }
        let Given { asks, numbers, rows } = self.with_others(&inside, &before, given)?;
        let sections = sections_from(&asks, &rows);
        Ok(Prepared { sections, asks, numbers, lengthens: true, ..Prepared::default() })
    }

    /// What is given, and fill values for the rest of the rows that are new: of arrays that grow with others, and behind those that
    /// are given of an array that has fewer than others.
    fn with_others(&self, inside: &Contained, before: &FileSize, mut given: Given) -> Result<Given, Fault> {
        let records = inside.form.extent().records;
        let ends = given.numbers.iter().zip(&given.asks).zip(&given.rows);
        let ends = ends.map(|((number, ask), row)| (*number, row + ask.shape().first().unwrap_or(&0)));
        let ends: HashMap<usize, u64> = ends.collect();
        for number in inside.form.growing_together() {
            let old = if number < before.arrays { before.records } else { 0 };
            let row = ends.get(&number).copied().unwrap_or(0).max(old);
            if row < records {
                given.push(self.rows_of_fill(inside, number, records - row)?, number, row);
            }
        }
        Ok(given)
    }

    /// So many rows of fill values.
    fn rows_of_fill(&self, inside: &Contained, number: usize, rows: u64) -> Result<ArrayWrite, Fault> {
        let mut shape = inside.form.array(number).shape.clone();
        shape[0] = rows;
        self.filling(inside, number, shape)
    }

    /// Fill values of an array in this shape: of one element, again and again.
    fn filling(&self, inside: &Contained, number: usize, shape: Vec<u64>) -> Result<ArrayWrite, Fault> {
        let stored = inside.form.stored(&[number], &"".into());
        let FileArray { name, element, .. } = inside.form.array(number).into_owned();
        let memory = Memory::from_vec(stored[0].fill.to_vec());
        let strides = vec![0; shape.len()];
        let holding = Ownership::replicated(&shape, self.comm.size())?;
        let array = LocalArray { memory, element, shape, strides, offset: 0 };
        Ok(ArrayWrite { name, arrays: vec![array], holding: Some(Arc::new(holding)) })
    }
}

/// What is written: of each array, its number in the file, and the row from which on.
#[derive(Default)]
struct Given {
    asks: Vec<ArrayWrite>,
    numbers: Vec<usize>,
    rows: Vec<u64>,
}

impl Given {
    fn push(&mut self, ask: ArrayWrite, number: usize, row: u64) {
        self.asks.push(ask);
        self.numbers.push(number);
        self.rows.push(row);
    }
}

/// The sections that begin at these rows, of the extents of what is written.
fn sections_from(asks: &[ArrayWrite], rows: &[u64]) -> Sections {
    let each = asks.iter().zip(rows).map(|(ask, row)| {
        let whole = Section::whole(ask.shape()).dims.into_iter().enumerate();
        Section {
            dims: whole.map(|(d, triplet)| if d == 0 { Triplet { start: *row, ..triplet } } else { triplet }).collect(),
        }
    });
    Sections::Each(each.collect())
}

/// Whether each array is written from end to end.
fn each_is_whole(inside: &Contained, asks: &[ArrayWrite], numbers: &[usize]) -> bool {
    asks.iter().zip(numbers).all(|(ask, number)| inside.form.array(*number).shape == ask.shape())
}
