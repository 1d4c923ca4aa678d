//! What is told on the error output: explanations of transfers as they happen, for programs whose code nobody wants to touch,
//! and what is wrong with the profile.

use hyperslab_collective::Report;
use hyperslab_plan::Explanation;
use std::sync::OnceLock;

/// Whether explanations are printed.
pub(crate) fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(crate::environment::explain)
}

/// Prints what is going to happen.
pub(crate) fn before(told: &Explanation) {
    print(&told.to_string());
}

/// Prints predicted beside measured.
pub(crate) fn after(report: &Report, planning_ns: u64) {
    if wanted() {
        let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        let mut text = format!("{report}\n  planned in {:.0} us\n", planning_ns as f64 / 1e3);
        text += &format!("  {:<10} {:>12} {:>12}\n", "phase", "predicted", "measured");
        for (name, predicted, measured) in report.phases() {
            text += &format!("  {name:<10} {:>12} {:>12}\n", ms(predicted), ms(measured));
        }
        let predicted = report.predicted().iter().sum();
        text += &format!("  {:<10} {:>12} {:>12}\n", "all", ms(predicted), ms(report.seconds()));
        print(&text);
    }
}

/// Tells of what is wrong.
pub(crate) fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| print(&format!("warning: {warning}\n")));
}

fn print(text: &str) {
    let lines = text.lines().map(|line| format!("hyperslab: {line}\n"));
    eprint!("{}", lines.collect::<String>());
}
