//! The memory traffic that a copy cannot avoid, without the copy.

use hyperslab_layout::Nest;
use hyperslab_pack::{Memory, for_each_run};

use crate::cases::Case;

/// Size of a cache line \[B\].
const LINE: u64 = 64;

/// Cache lines with equal distances.
struct Span {
    first: u64,
    step: u64,
    count: u64,
}

/// All cache lines that a copy touches, in rising order on either side.
pub(crate) struct Traffic {
    read: Vec<Span>,
    written: Vec<Span>,
    /// Lines written per line read.
    ratio: f64,
    /// Whether all bytes of the lines written are written: then nothing of them is read before.
    entire: bool,
}

impl Traffic {
    pub(crate) fn of(nest: &Nest, case: &Case) -> Traffic {
        let (read, written) = (lines(nest, case.from.bytes()), lines(&nest.swapped(), case.to.bytes()));
        let entire = nest.elements() * case.to.bytes() + 2 * LINE >= written.len() as u64 * LINE;
        let ratio = written.len() as f64 / read.len() as f64;
        Traffic { read: spans(&read), written: spans(&written), ratio, entire }
    }

    /// Reads one word of each line on one side and writes to each line on the other, in turns of a few lines. The
    /// result only keeps the compiler from leaving out the reading.
    pub(crate) fn cause(&self, from: &Memory, to: &Memory) -> u64 {
        let (from, to) = (
            from.host_address().expect("memory of this host") as *const u8,
            to.host_address().expect("memory of this host") as *mut u8,
        );
        let (mut sum, mut read, mut written) = (0u64, 0, 0);
        let mut targets = self.written.iter();
        for span in &self.read {
            for i in 0..span.count {
                let offset = (span.first + i * span.step) * LINE;
                // SAFETY: the memory holds an element in this line, and is a multiple of whole lines.
                sum = sum.wrapping_add(unsafe { from.add(offset as usize).cast::<u64>().read() });
            }
            read += span.count;
            while (written as f64) < read as f64 * self.ratio {
                let Some(span) = targets.next() else { break };
                // SAFETY: as above, for the other memory.
                unsafe { self.write(to, span) }
                written += span.count;
            }
        }
        sum
    }

    /// # Safety
    /// All bytes of the lines must be writable.
    unsafe fn write(&self, to: *mut u8, span: &Span) {
        for i in 0..span.count {
            let line = to.wrapping_add(((span.first + i * span.step) * LINE) as usize);
            // SAFETY: a line that is writable; memories begin at a page.
            unsafe {
                if self.entire {
                    line.cast::<[u64; 8]>().write([i; 8]);
                } else {
                    line.cast::<u64>().write(i);
                }
            }
        }
    }
}

/// Numbers of the lines on side `a` of a nest over elements of `bytes` bytes, in rising order.
fn lines(nest: &Nest, bytes: u64) -> Vec<u64> {
    let mut lines = Vec::new();
    for_each_run(nest, bytes, |a, _, length| {
        let (first, last) = (a as u64 / LINE, (a as u64 + length - 1) / LINE);
        let known = lines.last().is_some_and(|&line| line == first);
        lines.extend(first + u64::from(known)..=last);
    });
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn spans(lines: &[u64]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for &line in lines {
        match spans.last_mut() {
            Some(span) if span.count == 1 => *span = Span { step: line - span.first, count: 2, ..*span },
            Some(span) if span.count < 64 && line == span.first + span.count * span.step => span.count += 1,
            _ => spans.push(Span { first: line, step: 0, count: 1 }),
        }
    }
    spans
}
