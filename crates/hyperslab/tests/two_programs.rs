//! Two programs on one store or file in memory, in interleavings of their requests with one change from one to the other and
//! back, also where one of them dies at a request. `HYPERSLAB_EVERY=1` plays all of these and not a part, `HYPERSLAB_CHANGES=2`
//! those with two changes, of which `HYPERSLAB_EVERY=16` are some hundred thousand; `HYPERSLAB_SUBJECT=hdf5` is for one format.
//!
//! What is demanded: the outcome is that of one after the other, in some order; who is refused has changed nothing; nobody
//! waits for ever; nothing hidden is left. After a death, each array is old or new, or is named as being updated.

mod turns;

use hyperslab::{Error, FaultKind, MemoryTree};
use std::collections::BTreeMap;
use turns::deeds::{REPEATS, Run, SUBJECTS, Seen, Subject, first_stage};
use turns::{FailsOnce, Played, Schedule, play};

type Outcome = Result<(), FaultKind>;

fn environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn fresh(subject: &Subject) -> MemoryTree {
    let tree = MemoryTree::new();
    (subject.make)(&tree);
    tree
}

/// What comes of doing these one after the other.
fn serial(subject: &Subject, runs: &[(Run, f64)]) -> (Vec<Outcome>, Seen) {
    let tree = fresh(subject);
    let outcomes = runs.iter().map(|(run, value)| run(&tree, *value).map_err(|error| error.kind())).collect();
    let (seen, unfinished) = (subject.see)(&tree).unwrap();
    assert!(unfinished.is_empty(), "{unfinished:?}");
    (outcomes, seen)
}

/// Whether it is told that some of what failed stays, since others have gone on with it.
fn stays(result: &Result<(), Error>) -> bool {
    result.as_ref().is_err_and(|error| error.message().contains("stays, since others"))
}

/// What may come of two deeds.
struct Expected {
    before: Seen,
    /// By A alone and by B alone.
    single: [Seen; 2],
    /// By one after the other, and by the other after the one, where both can.
    both: Vec<Seen>,
    /// By half of one that publishes twice: what it has published stays.
    halves: [Option<Seen>; 2],
}

const VALUES: [f64; 2] = [2.0, 3.0];

impl Expected {
    fn of(subject: &Subject, names: [&str; 2], runs: [Run; 2]) -> Expected {
        let [a, b] = [(runs[0], VALUES[0]), (runs[1], VALUES[1])];
        let single = [a, b].map(|one| serial(subject, &[one]).1);
        let mut both = Vec::new();
        for order in [[a, b], [b, a]] {
            let (outcomes, seen) = serial(subject, &order);
            assert_eq!(outcomes[0], Ok(()), "{}", subject.name);
            both.extend(outcomes[1].is_ok().then_some(seen));
        }
        let halves = [0, 1].map(|who| first_stage(names[who], &single[who]));
        Expected { before: serial(subject, &[]).1, single, both, halves }
    }

    /// Whether what is seen is right after these outcomes.
    fn check(&self, results: &[Result<(), Error>; 2], seen: &Seen) -> Result<(), String> {
        let kinds = [0, 1].map(|who| results[who].as_ref().err().map(Error::kind));
        let may = |who: usize, kind: FaultKind| {
            let replaced = |error: &Error| error.message().contains("is not the one that was opened any more");
            // That somebody else is at it, or has been, in the middle of this; or that it is there, or not any more, or shorter.
            use FaultKind::{Busy, Exists, Invalid, NotFound, Outdated};
            matches!(kind, Busy | Outdated | Exists | NotFound | Invalid) || results[who].as_ref().is_err_and(replaced)
        };
        // Names that are published one after another are seen so, and somebody may have gone on with the first.
        let is_half = |who: usize, kind| may(who, kind) && self.halves[who].as_ref() == Some(seen);
        let fine = match kinds {
            [Some(kind), _] if is_half(0, kind) => true,
            [_, Some(kind)] if is_half(1, kind) => true,
            _ if results.iter().any(stays) => self.check_parts(seen, &[], 1).is_ok(),
            [None, None] => self.both.contains(seen),
            [None, Some(kind)] => may(1, kind) && *seen == self.single[0],
            [Some(kind), None] => may(0, kind) && *seen == self.single[1],
            [Some(one), Some(other)] => may(0, one) && may(1, other) && *seen == self.before,
        };
        if fine { Ok(()) } else { Err(format!("{results:?}: {seen:?}")) }
    }

    /// Whether each array is as it was before or after one of the deeds or both, whole or, if an update of it is named, chunk
    /// by chunk.
    fn check_parts(&self, seen: &Seen, unfinished: &[String], together: usize) -> Result<(), String> {
        let states: Vec<&Seen> = [&self.before].into_iter().chain(&self.single).chain(&self.both).collect();
        let stays = |name: &&String| states.iter().all(|state| state.contains_key(*name));
        if let Some(lost) = self.before.keys().filter(stays).find(|name| !seen.contains_key(*name)) {
            return Err(format!("'{lost}' is lost: {seen:?}"));
        }
        for (name, found) in seen {
            let known: Vec<&Vec<f64>> = states.iter().filter_map(|state| state.get(name)).collect();
            let is_named = unfinished.iter().any(|unfinished| unfinished.contains(name) || unfinished.contains("run."));
            let mut parts = (0..).step_by(together).zip(found.chunks(together));
            let torn = parts.all(|(at, part)| known.iter().any(|known| known.get(at..at + part.len()) == Some(part)));
            let fine = known.contains(&found) || (is_named && torn);
            if !fine {
                return Err(format!("'{name}' is {found:?}, unfinished: {unfinished:?}"));
            }
        }
        Ok(())
    }
}

/// Two deeds at one subject.
struct Pair {
    /// Of schedules that differ in one number, every so many is played, from one on that differs from pair to pair.
    every: (u64, u64),
    subject: &'static Subject,
    names: [&'static str; 2],
    runs: [Run; 2],
    expected: Expected,
}

impl Pair {
    fn new(subject: &'static Subject, of: [usize; 2]) -> Pair {
        let deeds = of.map(|number| subject.deeds[number]);
        let runs = deeds.map(|deed| deed.1);
        // Where something takes the place of something else, more is at stake.
        let replaces =
            deeds.iter().any(|deed| matches!(deed.0, "mode w" | "replace" | "replace by steps" | "overwrite several"));
        let every = environment("HYPERSLAB_EVERY", if replaces { 5 } else { 23 });
        let every = (every, (of[0] * 5 + of[1] * 3) as u64 % every);
        let names = deeds.map(|deed| deed.0);
        Pair { every, subject, names, runs, expected: Expected::of(subject, names, runs) }
    }

    fn play(&self, schedule: &Schedule, logs: bool) -> (MemoryTree, Played<Result<(), Error>>) {
        let tree = fresh(self.subject);
        let programs = [0, 1].map(|who| {
            let run = self.runs[who];
            move |view: &MemoryTree| run(view, VALUES[who])
        });
        let played = play(&tree, schedule, logs, [&programs[0], &programs[1]]);
        (tree, played)
    }

    /// Plays a schedule; gives how many requests there were, and whether one died.
    fn check(&self, schedule: &Schedule) -> Result<(u64, bool), String> {
        let (tree, played) = self.play(schedule, false);
        self.judged(&tree, &played).map_err(|why| {
            let log = self.play(schedule, true).1.log.join("\n");
            format!("{} {:?}, {schedule:?}: {why}\n{log}", self.subject.name, self.names)
        })?;
        Ok((played.requests, played.died))
    }

    fn judged(&self, tree: &MemoryTree, played: &Played<Result<(), Error>>) -> Result<(), String> {
        let (seen, unfinished) = (self.subject.see)(tree).map_err(|error| format!("cannot be read: {error}"))?;
        if played.died {
            self.expected.check_parts(&seen, &unfinished, self.subject.together)?;
        } else {
            self.expected.check(&played.results, &seen)?;
        }
        if !played.died && played.results.iter().all(Result::is_ok) && !unfinished.is_empty() {
            return Err(format!("both have ended, and are named: {unfinished:?}"));
        }
        (self.subject.tidy)(tree);
        let hidden: Vec<String> =
            tree.lengths().into_iter().map(|(name, _)| name).filter(|name| name.contains("hyperslab")).collect();
        // What names an update that did not end stays until that is done again.
        let left = |name: &String| {
            played.died && ["-update", "owners"].iter().any(|end| name.ends_with(end))
                || played.results.iter().any(stays) && name.ends_with(".hyperslab-new")
        };
        match hidden.iter().all(left) {
            true => Ok(()),
            false => Err(format!("{:?}, left: {hidden:?}", played.results)),
        }
    }

    /// Plays all schedules that change over so often at most, after those of this one; gives how many.
    fn explore(&self, schedule: &Schedule, more: u64) -> Result<u64, String> {
        let (requests, _) = self.check(schedule)?;
        if more == 0 {
            return Ok(1);
        }
        let from = schedule.changes_over.last().map_or(1, |last| last + 1);
        let (every, first) = self.every;
        let mut further = (from..requests).filter(|at| at % every == first).map(|at| {
            let changes_over = schedule.changes_over.iter().copied().chain([at]).collect();
            self.explore(&Schedule { changes_over, ..schedule.clone() }, more - 1)
        });
        further.try_fold(1, |count, more| Ok(count + more?))
    }

    /// Plays all schedules in which one dies; gives how many.
    fn bury(&self, dies: usize) -> Result<u64, String> {
        let (every, first) = self.every;
        for played in 0.. {
            let nth = first + played * every;
            let schedule = Schedule { first: dies, death: Some((dies, nth)), ..Schedule::default() };
            if !self.check(&schedule)?.1 {
                return Ok(played);
            }
        }
        unreachable!("a program ends")
    }
}

fn pairs(of: &'static Subject) -> impl Iterator<Item = Pair> {
    let number = of.deeds.len();
    (0..number).flat_map(move |a| (a..number).map(move |b| Pair::new(of, [a, b])))
}

fn subjects() -> impl Iterator<Item = &'static Subject> {
    let only = std::env::var("HYPERSLAB_SUBJECT").ok();
    SUBJECTS.iter().filter(move |subject| only.as_ref().is_none_or(|only| only == subject.name))
}

/// Does something with all pairs and each of the two; one schedule that fails is told of each pair.
fn with_all(what: &str, run: impl Fn(&Pair, usize) -> Result<u64, String>) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    for subject in subjects() {
        for pair in pairs(subject) {
            for who in [0, 1] {
                match run(&pair, who) {
                    Ok(count) => *counts.entry(subject.name).or_default() += count,
                    Err(failure) => failures.push(failure),
                }
            }
        }
    }
    eprintln!("{what}: {counts:?}");
    assert!(failures.is_empty(), "{} pairs:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_change_from_one_to_the_other_leaves_what_one_after_the_other_leaves() {
    let changes = environment("HYPERSLAB_CHANGES", 1);
    with_all("interleavings", |pair, first| pair.explore(&Schedule { first, ..Schedule::default() }, changes));
}

#[test]
fn a_death_at_every_request_leaves_old_or_new_for_another_one() {
    with_all("deaths", Pair::bury);
}

/// What was refused once, is done when it is asked for again in the same opening; whatever came of the first attempt.
#[test]
fn a_call_that_failed_succeeds_when_it_is_repeated() {
    REPEATS.set(true);
    let mut failures = Vec::new();
    for subject in subjects() {
        for (name, run) in subject.deeds {
            let (before, after) = (serial(subject, &[]).1, serial(subject, &[(*run, VALUES[0])]).1);
            for nth in 0.. {
                let (tree, fails) = (fresh(subject), FailsOnce::after(nth));
                let result = run(&tree.watched(fails.clone()), VALUES[0]);
                if !fails.has_failed() {
                    break;
                }
                let seen = (subject.see)(&tree).map_err(|error| error.message());
                let fine = match (&result, &seen) {
                    // An update that did not end is named until all of the array is written.
                    (Ok(()), Ok((seen, _))) => *seen == after,
                    // The first attempt has done it, and the second says so; or it could not be closed.
                    (Err(_), Ok((seen, unfinished))) => *seen == after || (*seen == before && unfinished.is_empty()),
                    (_, Err(_)) => false,
                };
                if !fine {
                    failures
                        .push(format!("{} '{name}', request {nth} fails: {result:?}, seen: {seen:?}", subject.name));
                }
            }
        }
    }
    REPEATS.set(false);
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
}
