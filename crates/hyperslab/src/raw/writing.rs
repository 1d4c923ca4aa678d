//! Writing arrays of a file.

use super::disk::{follow_disk, marker};
use super::{FileArray, RawFile};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::zarr::{Mode, WriteAsk, completed, named, write_requests};
use hyperslab_collective::attempts::{Change, Marker};
use hyperslab_collective::{Arguments, Compared, Decision, Report, Target, check_cast};
use hyperslab_layout::{Casting, Durability, ElementType, Policies, Stored};
use hyperslab_plan::{Direction, Laid, Parameters, Transfer};
use hyperslab_world::{Fault, FaultKind, Proof, Root};
use std::collections::HashSet;
use std::sync::Arc;

/// Rank 0's side of a write.
struct Putting {
    file: RawFile,
    stored: Vec<Stored>,
    /// How many arrays the file had before, and where the last of them ended \[B\].
    before: (usize, u64),
    /// Where the last ends now \[B\].
    end: u64,
    /// Whether nothing stays of what the file had.
    whole: bool,
    marker: Option<Marker>,
}

impl Putting {
    fn is_first(&self) -> bool {
        self.before.0 == 0
    }
}

impl Target for Putting {
    fn look(&mut self, _laid: &[Option<Laid>]) -> Result<Vec<Stored>, Fault> {
        Ok(std::mem::take(&mut self.stored))
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<Laid>]) -> Result<Decision, Fault> {
        self.file.decided(transfer, laid)
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        transfer: &Arc<Transfer>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        let Putting { file, end, .. } = &*self;
        let (directory, attempts, end) = (&*file.directory, &file.attempts, *end);
        let proof = if file.mode.writes_new() {
            if self.is_first() {
                attempts.make_file(&file.header, end)?;
            } else {
                directory.resize(&file.hidden, end)?;
            }
            follow_disk(parameters, transfer, directory, (&file.hidden, end))?;
            Proof::File(directory.full(&file.hidden).into())
        } else {
            let marked = attempts.mark(&marker(&file.name), &file.name, &Change::Torn(None))?;
            // From now on nobody replaces it; somebody may have, until now.
            if let Err(fault) = attempts.check_still_there() {
                attempts.withdraw(marked);
                return Err(fault);
            }
            let proof = marked.proof(directory);
            follow_disk(parameters, transfer, directory, (&file.name, 0))?;
            self.marker = Some(marked);
            proof
        };
        Ok(vec![self.file.root(vec![proof])])
    }

    fn publish(&mut self) -> Result<(), Fault> {
        // What took its place may have parts of this update: the marker stays, without an owner.
        self.file.attempts.check_still_there()?;
        let Some(marker) = self.marker.take() else { return Ok(()) };
        // Only writing all of the file ends an earlier update that did not end.
        let stays = marker.was_there() && !self.whole;
        self.file.attempts.unmark(marker, stays)
    }

    fn undo(&mut self, moved: bool) {
        match self.marker.take() {
            Some(marker) if !moved => self.file.attempts.withdraw(marker),
            // It stays beside the file, without an owner.
            Some(_) => {}
            None if !self.file.mode.writes_new() => {}
            None if self.is_first() => drop(self.file.attempts.end()),
            // What was written before stays; the file must not be longer than that.
            None => drop(self.file.directory.resize(&self.file.hidden, self.before.1)),
        }
    }

    fn abandon(&mut self) {
        self.marker = None;
    }
}

impl RawFile {
    /// Writes arrays: after the ones that are there, in a new file; over the ones of the same names, in a file open for
    /// update. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn write(&self, asks: &[WriteAsk], options: &WriteOptions) -> Result<Report, Error> {
        if self.comm.goes_on_alone() {
            return Ok(self.write_later(asks.to_vec(), options.clone(), false).wait()?.1);
        }
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let what = format!("write of {} to '{}'", crate::zarr::listed(&names), self.path().display());
        let (asks, unfit) = completed(asks.to_vec(), self.comm.size());
        let WriteOptions { section, element, casting, .. } = options;
        let casting = *casting;
        let new = self.mode.writes_new();
        // The calls before this one decide where it may begin.
        self.await_calls();
        let before = {
            let laid = self.laid();
            (laid.arrays.len(), laid.end)
        };
        let fit = unfit.map_or_else(|| options.check_for_file(), Err).and_then(|()| section.check(asks.len()));
        let prepared = fit.and_then(|()| self.add(&asks, *element, section.is_whole())).and_then(|numbers| {
            self.check_cast(&asks, &numbers, casting)?;
            Ok(numbers)
        });
        let (numbers, fault) = match prepared {
            Ok(numbers) => (numbers, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let (path, set_aside, strategy) = (self.path(), self.held, options.strategy);
        let stored_as = element.map(ElementType::numpy);
        let compared = Compared::of(("write", path.clone(), set_aside, stored_as.clone(), strategy), move || {
            vec![
                ("operation".into(), "write".into()),
                ("file".into(), path.display().to_string()),
                ("bytes set aside for copies (staged)".into(), set_aside.to_string()),
                ("type of the stored elements".into(), format!("{stored_as:?}")),
                ("strategy asked for".into(), named(strategy)),
            ]
        });
        let whole = section.is_whole() && numbers.iter().collect::<HashSet<_>>().len() == before.0;
        let putting = || -> Box<dyn Target> {
            let (stored, end) = (self.stored(&numbers), self.laid().end);
            Box::new(Putting { file: self.preferring(options.strategy), stored, before, end, whole, marker: None })
        };
        let target = (self.comm.rank() == 0).then(putting);
        let done = self.comm.transfer(Arguments {
            what,
            compared,
            fault,
            direction: Direction::Write,
            arrays: write_requests(&asks, section),
            locals: Some(asks.into_iter().map(|ask| ask.arrays).collect()),
            casting,
            policies: self.policies_of_writes(),
            together: true,
            target,
            // A new file becomes visible when it is closed.
            publishes: !new,
            at_once: if new { self.attempts.at_once(1) } else { self.attempts.at_once_durable(1) },
        });
        if done.is_err() && new {
            let mut laid = self.laid();
            laid.arrays.truncate(before.0);
            laid.offsets.truncate(before.0);
            laid.added.truncate(before.0);
            laid.end = before.1;
        }
        if done.is_ok() && !self.comm.is_inside() {
            self.laid().added.iter_mut().filter(|added| **added == u64::MAX).for_each(|added| *added = 0);
        }
        Ok(done?.report)
    }

    /// What is promised of what is written. A new file is made durable when it is closed.
    fn policies_of_writes(&self) -> Policies {
        Policies::of(match (self.options.durable, self.mode.writes_new()) {
            (false, _) => Durability::Cached,
            (true, true) => Durability::Soon,
            (true, false) => Durability::Now,
        })
    }

    /// Refuses arrays whose elements may not become what is stored.
    fn check_cast(&self, asks: &[WriteAsk], numbers: &[usize], casting: Casting) -> Result<(), Fault> {
        let laid = self.laid();
        let each = asks.iter().zip(numbers).map(|(ask, &number)| (&ask.name, &ask.arrays, laid.arrays[number].element));
        let rank = self.comm.rank();
        each.into_iter().try_for_each(|(name, locals, stored)| check_cast(name, locals, stored, casting, rank))
    }

    /// Numbers of the arrays to write; in a new file they are added to it.
    fn add(&self, asks: &[WriteAsk], element: Option<ElementType>, whole: bool) -> Result<Vec<usize>, Fault> {
        let fail = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
        if self.mode == Mode::Read {
            return fail("the file is open for reading only".into(), "open it with mode r+, or w for a new file");
        }
        if !self.mode.writes_new() {
            let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
            return self.numbers(&names);
        }
        let mut indices = Vec::with_capacity(asks.len());
        // What a call that blocks adds is shown once it has succeeded.
        let number = self.comm.current().map_or(u64::MAX, |request| request.number);
        let mut laid = self.laid();
        let mut taken: HashSet<&str> = laid.arrays.iter().map(|array| &*array.name).collect();
        for WriteAsk { name, .. } in asks {
            if !whole || !taken.insert(name) {
                return fail(
                    format!("array '{name}' of a new file is written once and whole"),
                    "mode r+ changes a file that exists",
                );
            }
        }
        for ask in asks {
            let name = &ask.name;
            let Some(element) = element.or(ask.element()) else {
                return fail(
                    format!("this rank holds no piece of '{name}', so the type of its elements is unknown"),
                    "give dtype= on all ranks",
                );
            };
            let shape = ask.holding.as_deref().map(|holding| holding.shape().to_vec()).unwrap_or_default();
            let added = FileArray { name: name.clone(), shape, element };
            let start = if laid.arrays.is_empty() { self.header.len() as u64 } else { laid.end };
            laid.end = start + added.bytes()?;
            laid.arrays.push(added);
            laid.offsets.push(start);
            laid.added.push(number);
            indices.push(laid.arrays.len() - 1);
        }
        Ok(indices)
    }
}
