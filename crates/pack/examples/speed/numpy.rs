//! NumPy as a rival, in a process beside that waits for its turns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::cases::Case;

/// A Python that has NumPy and copies on request.
pub(crate) struct NumPy {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    version: String,
}

impl NumPy {
    /// `None` when there is no Python with NumPy.
    pub(crate) fn start() -> Option<NumPy> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut process = Command::new(python)
            .args(["-c", include_str!("numpy.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (to, from) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        let mut numpy = NumPy { process, to, from, version: String::new() };
        numpy.version = numpy.answer();
        (!numpy.version.is_empty()).then_some(numpy)
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Makes arrays as the case describes them.
    pub(crate) fn prepare(&mut self, case: &Case) {
        let list =
            |value: fn(&hyperslab_layout::Loop) -> i64| -> Vec<i64> { case.nest.loops.iter().map(value).collect() };
        let (a_bytes, b_bytes) = case.memory_bytes();
        let (from, to) = (case.from.numpy(), case.to.numpy());
        let shape = list(|l| l.count as i64);
        let (a_strides, b_strides) = (list(|l| l.a), list(|l| l.b));
        let Case { nest, pieces, .. } = case;
        let (a, b) = (nest.a, nest.b);
        self.say(&format!(
            "(({from:?}, {to:?}), ({a_bytes}, {b_bytes}), ({a}, {b}), {shape:?}, ({a_strides:?}, {b_strides:?}), {pieces:?})"
        ));
    }

    /// How long copying one piece takes \[s\].
    pub(crate) fn seconds(&mut self, piece: usize) -> f64 {
        self.say(&piece.to_string());
        self.answer().parse().unwrap_or(f64::NAN)
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").and_then(|()| self.to.flush()).unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for NumPy {
    fn drop(&mut self) {
        // It ends by itself when its standard input closes; nothing is lost by ending it now.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
