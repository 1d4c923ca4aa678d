//! How a call that cannot go on ends on all ranks: rank 0 asks who is there, decides on one failure and tells it. It is polled
//! as what it ends was, so that imagined ranks, which share a thread, end calls by the same code.

use crate::inbox::{Inbox, tag};
use crate::limits::{LEAVING, Limits, RANKS_NAMED_MAX, nanos};
use crate::names::Names;
use hyperslab_world::{Fault, FaultKind, World};
use std::time::Duration;

/// A call that ends, on one rank.
pub(crate) enum Closing {
    /// This rank has told rank 0, which decides.
    Reported(Fault, u64),
    /// This is rank 0, which has asked all others whether they are there; whether they may still be coming, where it is not known
    /// who is missing.
    Asked(Fault, Option<bool>, u64),
    /// All others have been told; their messages get a moment to leave.
    Leaving(Fault, u64),
    /// It has ended.
    Over(Fault),
}

impl Closing {
    /// Up to when it goes on at most \[ns\].
    pub(crate) fn until_ns(&self) -> Option<u64> {
        match self {
            Closing::Reported(_, until) | Closing::Asked(_, _, until) | Closing::Leaving(_, until) => Some(*until),
            Closing::Over(_) => None,
        }
    }
}

pub(crate) fn abort_of(fault: &Fault) -> Vec<u8> {
    let mut abort = vec![tag::ABORT];
    abort.extend(fault.to_bytes());
    abort
}

/// How long others may take to notice, and to answer.
pub(crate) fn grace(limits: Limits) -> Duration {
    (limits.progress / 4).clamp(Duration::from_secs(1), Duration::from_secs(4))
}

/// Whether it is not known who is missing: whether they may still be coming, then.
pub(crate) fn unnamed(fault: &Fault, arriving: bool) -> Option<bool> {
    (fault.kind == FaultKind::Timeout).then_some(arriving)
}

/// That storage does not answer a rank.
pub(crate) fn stalled(rank: u32, waits_for: &str, limit: Duration) -> Fault {
    let text = format!("{waits_for}; storage has not answered rank {rank} for {:.1} s", limit.as_secs_f64());
    Fault::new(FaultKind::Timeout, text).hint(
        "look at the file system of that rank's node: a server that is down, a mount that hangs; storage_seconds= allows \
         more",
    )
}

/// What of a rank takes part in that.
pub(crate) struct EndOfCall<'a> {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// What is ended, and the number of its agreement.
    pub(crate) what: &'a str,
    pub(crate) call: u64,
    pub(crate) limits: Limits,
    pub(crate) inbox: &'a mut Inbox,
    pub(crate) names: &'a Names,
}

impl EndOfCall<'_> {
    /// Begins to end the call on all ranks with one failure. Rank 0 decides which, after asking who is still there; when it does
    /// not answer, each rank is left with its own. `arriving` is not there when it is known already who is missing.
    pub(crate) fn begin(&mut self, world: &mut dyn World, fault: Fault, arriving: Option<bool>) -> Closing {
        let now = world.clock().now_ns();
        if self.rank > 0 {
            let mut report = vec![tag::REPORT, u8::from(arriving.is_none())];
            report.extend(fault.to_bytes());
            world.transport().signal(0, report);
            return Closing::Reported(fault, now + 2 * nanos(grace(self.limits)));
        }
        self.inbox.pongs.clear();
        (1..self.size).for_each(|rank| world.transport().signal(rank, vec![tag::PING]));
        // Of a rank whose program has ended nobody need find out whether it is there.
        let patience = if fault.kind == FaultKind::Peer { Duration::ZERO } else { grace(self.limits) };
        Closing::Asked(fault, arriving, now + nanos(patience))
    }

    /// Goes on with it; gives the failure once it has ended.
    pub(crate) fn go_on(&mut self, world: &mut dyn World, closing: Closing) -> Result<Fault, Closing> {
        let broken = self.inbox.pump(world).is_err();
        self.inbox.answer(world, || "waits for rank 0 to decide how the call ends".into());
        let now = world.clock().now_ns();
        let late = |until: u64| broken || now > until;
        match closing {
            Closing::Reported(fault, until) => {
                if let Some(decided) = self.inbox.abort.take() {
                    return Ok(decided);
                }
                if !late(until) {
                    return Err(Closing::Reported(fault, until));
                }
                let fault = fault.context(format!("rank 0 does not answer; on rank {}", self.rank));
                // Servers, which wait without a limit, must not wait for a rank 0 that is gone.
                self.names.servers().for_each(|server| world.transport().signal(server, abort_of(&fault)));
                Err(Closing::Leaving(fault, now + nanos(LEAVING)))
            }
            Closing::Asked(fault, arriving, until) => {
                let all = self.inbox.pongs.len() + self.inbox.reports.len() >= self.size as usize - 1;
                if !all && !late(until) {
                    return Err(Closing::Asked(fault, arriving, until));
                }
                let fault = match arriving {
                    Some(arriving) => self.name_the_missing(fault, arriving),
                    None => fault,
                };
                (1..self.size).for_each(|rank| world.transport().signal(rank, abort_of(&fault)));
                Err(Closing::Leaving(fault, now + nanos(LEAVING)))
            }
            Closing::Leaving(fault, until) if !late(until) => Err(Closing::Leaving(fault, until)),
            Closing::Leaving(fault, _) | Closing::Over(fault) => Ok(fault),
        }
    }

    /// Begins to end it since rank 0 has ended while the others waited for what it did in storage. Who knows tells all others,
    /// who may be on another host.
    pub(crate) fn without_rank_0(&mut self, world: &mut dyn World) -> Closing {
        let text = format!("{}: rank 0 ended in the middle of the call, while it worked in storage for all", self.what);
        let fault = Fault::new(FaultKind::Timeout, text)
            .hint("the process died; what it was writing is not published, or opening the store to write completes it");
        for rank in (1..self.size).filter(|&rank| rank != self.rank) {
            world.transport().signal(rank, abort_of(&fault));
        }
        Closing::Leaving(fault, world.clock().now_ns() + nanos(LEAVING))
    }

    fn name_the_missing(&self, fault: Fault, arriving: bool) -> Fault {
        let here =
            |rank: u32| self.inbox.pongs.iter().any(|p| p.0 == rank) || self.inbox.reports.iter().any(|r| r.0 == rank);
        let missing: Vec<u32> = (1..self.size).filter(|&rank| !here(rank)).collect();
        if missing.is_empty() {
            let mut lines: Vec<String> = vec![format!("rank 0: {}", fault.text())];
            lines.extend(self.inbox.pongs.iter().map(|(rank, waits)| format!("rank {rank}: {waits}")));
            lines.extend(self.inbox.reports.iter().map(|(rank, fault, _)| format!("rank {rank}: {}", fault.text())));
            lines.dedup();
            lines.truncate(9);
            let limit = self.limits.progress.as_secs_f64();
            let text = format!("{}: no rank made progress for {limit:.1} s:\n  {}", self.what, lines.join("\n  "));
            return Fault::new(FaultKind::Timeout, text)
                .hint("raise the limit on progress if the storage is that slow");
        }
        let named = &missing[..missing.len().min(RANKS_NAMED_MAX)];
        let more = missing.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let who = format!("{}{more}", self.names.list(named));
        let of = |fault: Fault| Fault::on(fault, named, "").context(self.what);
        if arriving {
            let limit = self.limits.arrival.as_secs_f64();
            let text = format!("{who} did not arrive at call {} within {limit:.1} s", self.call);
            of(Fault::new(FaultKind::Timeout, text)).hint(
                "every rank of the communicator must make the call; a rank that raised before it, or died, cannot",
            )
        } else {
            let limit = self.limits.progress.as_secs_f64();
            let text = format!("{who} stopped answering in the middle of the call (no progress for {limit:.1} s)");
            of(Fault::new(FaultKind::Timeout, text))
                .hint("the process died or hangs; what it was writing is not published")
        }
    }
}
