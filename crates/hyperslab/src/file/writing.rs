//! Writing arrays of a file.

use super::form::FileSize;
use super::putting::Putting;
use super::{Contained, File, FileArray};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::said::quoted;
use crate::selection::Sections;
use crate::zarr::{ArrayWrite, Mode, completed, named, write_requests};
use hyperslab_collective::{Arguments, Compared, LocalArray, Ownership, Report, Target, check_cast};
use hyperslab_layout::{Casting, Durability, ElementType, Holes, Policies, Section, Triplet, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::Direction;
use hyperslab_world::{Fault, FaultKind};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
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
        let hides = self.hide_again(asks, options);
        let written = self.put("write", asks, options, |asks| {
            let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
            if self.is_new() || options.section.is_whole() && self.are_new(&names)? {
                return self.add(asks, options);
            }
            options.section.check(asks.len())?;
            WriteOptions { element: None, ..options.clone() }.check_for_existing()?;
            let numbers = self.numbers(&names)?;
            numbers
                .iter()
                .enumerate()
                .try_for_each(|(i, number)| self.check_element(options.of(i).element, *number))?;
            numbers.iter().try_for_each(|number| self.inside().form.check_changeable(*number))?;
            Ok(Prepared { numbers, sections: options.section.clone(), asks, ..Prepared::default() })
        });
        if hides && written.as_ref().is_err_and(|error| !error.is_unsynced()) {
            self.unhide();
        }
        written
    }

    /// Whether none of these arrays are in the file, which exists and may get more.
    fn are_new(&self, names: &[&str]) -> Result<bool, Fault> {
        let inside = self.inside();
        if !inside.form.takes_new() {
            return Ok(false);
        }
        let paths = self.paths(names);
        let found = inside.form.numbers_of(&paths);
        let (there, new): (Vec<_>, Vec<_>) = names.iter().zip(found).partition(|(_, number)| number.is_some());
        let is_other = |path: &Cow<str>| inside.form.others().is_some_and(|others| others.contains_key(&**path));
        if new.is_empty() || paths.iter().any(is_other) {
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
        let (Prepared { asks, sections, numbers, lengthens, adds }, fault) = match prepared {
            Ok(prepared) => (prepared, None),
            Err(fault) => (Prepared::default(), Some(fault)),
        };
        let (is_new, adds) = (adds, adds && !self.is_new());
        let gets_room = self.is_new() && numbers.iter().any(|number| self.inside().form.gets_room(*number));
        let whole = !adds && sections.is_whole() && numbers.iter().collect::<HashSet<_>>().len() == before.arrays;
        let putting = || -> Box<dyn Target> {
            let (stored, end) = (self.stored(&numbers), self.inside().form.extent().bytes);
            let putting = Putting::new(self.preferring(options.strategy), before.clone(), beginning);
            let (numbers, sections) = (numbers.clone(), sections.clone());
            Box::new(Putting { stored, numbers, sections, lengthens, adds, end, whole, ..putting })
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
    fn has_put(&self, failed: bool, before: FileSize, adds: bool) {
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

    /// What is promised of what is written. A new file is made durable when it is published.
    fn policies_of_writes(&self) -> Policies {
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
            if !options.section.is_whole() || there.is_some() || !taken.insert(name) {
                let text = format!("array '{name}' of a new file is written once and whole");
                return Err(Fault::new(FaultKind::Invalid, text).hint("open a file that exists with mode 'r+'"));
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
        let mut numbers: Vec<usize> = (before.arrays..before.arrays + asks.len()).collect();
        let records = inside.form.extent().records;
        self.fill_others(&inside, before.records..records, &mut asks, &mut numbers)?;
        Ok(Prepared { asks, numbers, adds: true, ..Prepared::default() })
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
        Ok(Prepared { sections, asks, numbers, lengthens: true, adds: false })
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
        let given: HashSet<usize> = numbers.iter().copied().collect();
        let growing = inside.form.growing_together().into_iter();
        let others: Vec<usize> = growing.filter(|number| !given.contains(number)).collect();
        for (number, stored) in others.iter().copied().zip(inside.form.stored(&others, &"".into())) {
            let FileArray { name, mut shape, element } = inside.form.array(number).into_owned();
            shape[0] = records.end - records.start;
            let memory = Memory::from_vec(stored.fill.to_vec());
            let strides = vec![0; shape.len()];
            let holding = Ownership::replicated(&shape, self.comm.size())?;
            let array = LocalArray { memory, element, shape, strides, offset: 0 };
            asks.push(ArrayWrite { name, arrays: vec![array], holding: Some(Arc::new(holding)) });
            numbers.push(number);
        }
        Ok(())
    }
}
