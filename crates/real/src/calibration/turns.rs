//! Cases that take turns, so that what disturbs the machine meets all of them alike.

use hyperslab_world::{Fault, FaultKind};
use std::time::{Duration, Instant};

/// Fewest rounds that count: fewer have no quartiles.
const ROUNDS_MIN: usize = 3;
/// Most rounds that count; more would not make the result better.
const ROUNDS_MAX: usize = 101;
/// By how many times the time may be overrun for the sake of the fewest rounds, and what is never too long for it.
const OVERRUN: u32 = 2;
const NEVER_TOO_LONG: Duration = Duration::from_secs(2);

/// How much may be spent on measuring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// About how long it may last. A slow machine is measured a few times all the same.
    pub time: Duration,
    /// Most bytes of a buffer or file \[B\]; an array that shall be longer than caches has four times as many.
    pub bytes: u64,
}

/// Times of one case.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What was measured.
    pub kernel: &'static str,
    /// Under which circumstances: name and number, with sizes in bytes.
    pub at: Vec<(&'static str, f64)>,
    /// Time of one operation in each round \[s\].
    pub seconds: Vec<f64>,
}

impl Series {
    /// A case that was not measured yet.
    pub fn new(kernel: &'static str, at: &[(&'static str, f64)]) -> Series {
        Series { kernel, at: at.to_vec(), seconds: Vec::new() }
    }

    /// The same without the first round, which warmed up, unless there was no other.
    #[must_use]
    pub fn warm(mut self) -> Series {
        if self.seconds.len() > 1 {
            self.seconds.remove(0);
        }
        self
    }
}

/// One case: carried out once, it gives the time of one operation \[s\].
pub struct Case<'a> {
    series: Series,
    once: Box<dyn FnMut() -> Result<f64, Fault> + 'a>,
}

impl<'a> Case<'a> {
    /// A case of this kernel under these circumstances.
    pub fn new(
        kernel: &'static str,
        at: &[(&'static str, f64)],
        once: impl FnMut() -> Result<f64, Fault> + 'a,
    ) -> Case<'a> {
        Case { series: Series::new(kernel, at), once: Box::new(once) }
    }
}

/// Says how many rounds there are.
pub struct Turns {
    begun: Instant,
    time: Duration,
    round: usize,
}

impl Turns {
    /// Turns that end when this time is over.
    pub fn new(time: Duration) -> Turns {
        Turns { begun: Instant::now(), time, round: 0 }
    }

    /// Whether there is another round. The first one warms up; there is always that one.
    pub fn another(&mut self) -> bool {
        let counted = self.round.saturating_sub(1);
        let so_far = self.begun.elapsed();
        let next = so_far / self.round.max(1) as u32;
        let patient = self.round == 0 || so_far + next < (self.time * OVERRUN).max(NEVER_TOO_LONG);
        let another = counted < ROUNDS_MIN && patient || counted < ROUNDS_MAX && so_far + next < self.time;
        self.round += usize::from(another);
        another
    }

    /// Carries out all cases, one after another, in each round, and in the opposite order in every second: what a case
    /// leaves behind (free pages, work of a journal) is to favour none. Asks between any two whether to stop.
    ///
    /// # Errors
    /// The first failure of a case, and that somebody wants it to stop.
    pub fn take(
        mut self,
        mut cases: Vec<Case<'_>>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Series>, Fault> {
        while self.another() {
            for turn in 0..cases.len() {
                let at = if self.round % 2 == 1 { turn } else { cases.len() - 1 - turn };
                let Case { series, once } = &mut cases[at];
                if interrupted() {
                    let text = format!("measuring {}: interrupted by the user", series.kernel);
                    return Err(Fault::new(FaultKind::Interrupted, text));
                }
                series.seconds.push(once()?);
            }
        }
        Ok(cases.into_iter().map(|case| case.series.warm()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_take_turns_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let case = |kernel: &'static str| {
            let order = &order;
            let mut times = 0.0;
            Case::new(kernel, &[("bytes", 8.0)], move || {
                order.borrow_mut().push(kernel);
                times += 1.0;
                Ok(times)
            })
        };
        let cases = vec![case("a"), case("b")];
        let series = Turns::new(Duration::ZERO).take(cases, &mut || false).unwrap();
        assert_eq!(order.take(), ["a", "b", "b", "a", "a", "b", "b", "a"]);
        assert_eq!(series[0].seconds, [2.0, 3.0, 4.0]);
        let cases = vec![case("a")];
        let series = Turns::new(Duration::from_secs(60)).take(cases, &mut || false).unwrap();
        assert_eq!(series[0].seconds.len(), ROUNDS_MAX);
        let slow = Case::new("slow", &[], || {
            std::thread::sleep(NEVER_TOO_LONG * 2 / 3);
            Ok(1.0)
        });
        let series = Turns::new(Duration::ZERO).take(vec![slow], &mut || false).unwrap();
        assert_eq!(series[0].seconds, [1.0], "what is slow is measured once");
    }

    #[test]
    fn it_ends_when_a_case_fails_or_somebody_asks() {
        let fails = || Case::new("a", &[], || Err(Fault::new(FaultKind::Storage, "no room")));
        let failed = Turns::new(Duration::ZERO).take(vec![fails()], &mut || false).unwrap_err();
        assert_eq!(failed.text(), "no room");
        let stopped = Turns::new(Duration::ZERO).take(vec![fails()], &mut || true).unwrap_err();
        assert_eq!(stopped.kind, FaultKind::Interrupted);
    }
}
