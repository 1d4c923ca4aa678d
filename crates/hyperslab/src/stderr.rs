//! What is told on the error output: explanations of transfers as they happen, for programs whose code nobody wants to touch,
//! what is wrong with the profile, and what programs leave undone.

use crate::environment::Explaining;
use hyperslab_collective::Report;
use hyperslab_layout::quantity::{InUnit, seconds};
use hyperslab_plan::{Explanation, Role};
use hyperslab_world::legible;
use std::sync::OnceLock;

/// How much is told of each transfer.
pub(crate) fn wanted() -> Explaining {
    static WANTED: OnceLock<Explaining> = OnceLock::new();
    *WANTED.get_or_init(crate::environment::explain)
}

/// Prints what is going to happen.
pub(crate) fn before(told: &Explanation) {
    print(&told.to_string());
}

/// Prints what came out: in a line, or predicted beside measured.
pub(crate) fn after(report: &Report, planning_ns: u64) {
    let predicted: f64 = report.predicted().iter().sum();
    match wanted() {
        Explaining::Silent => {}
        Explaining::Short => print(&short(report, predicted)),
        Explaining::Long => long(report, planning_ns, predicted),
    }
}

/// What was done, by how many servers, and what that was predicted to take, in the unit of what it took.
fn short(report: &Report, predicted: f64) -> String {
    let servers = match report.parameters().role() {
        Role::Root => "rank 0 serves".into(),
        Role::Own | Role::Holders => "all ranks serve".into(),
        Role::Servers => match report.parameters().servers.len() {
            1 => "1 server".into(),
            count => format!("{count} servers"),
        },
    };
    let unit = InUnit::of_seconds([report.seconds()]);
    format!("{report}, {servers}, predicted {}\n", unit.tell(predicted))
}

/// Predicted beside measured, phase by phase.
fn long(report: &Report, planning_ns: u64, predicted: f64) {
    let all = report.phases().into_iter().flat_map(|(_, predicted, measured)| [predicted, measured]);
    let unit = InUnit::of_seconds(all.chain([predicted, report.seconds()]));
    let mut text = format!("{report}\n  planned in {}\n", seconds(planning_ns as f64 / 1e9));
    text += &format!("  {:<10} {:>12} {:>12}\n", "phase", "predicted", "measured");
    for (name, predicted, measured) in report.phases() {
        text += &format!("  {name:<10} {:>12} {:>12}\n", unit.tell(predicted), unit.tell(measured));
    }
    text += &format!("  {:<10} {:>12} {:>12}\n", "all", unit.tell(predicted), unit.tell(report.seconds()));
    print(&text);
}

/// Tells of what is wrong.
pub(crate) fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| print(&format!("warning: {warning}\n")));
}

/// Tells of what a program leaves undone.
pub(crate) fn left(text: &str) {
    print(&format!("{text}\n"));
}

fn print(text: &str) {
    let lines = text.lines().map(|line| format!("hyperslab: {}\n", legible(line)));
    eprint!("{}", lines.collect::<String>());
}
