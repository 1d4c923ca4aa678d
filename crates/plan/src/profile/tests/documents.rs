//! Small profiles of every kind.

/// A number with a source.
pub(super) fn number(is: &str) -> String {
    format!("{{ is = {is}, from = \"guess: a test\" }}")
}

/// A complete profile; `KIND` stands for what the variants below replace.
const WHOLE: &str = r#"
name = "test"
description = "A machine for tests"
[nodes]
ranks_per_node = 2
cores_per_node = 4
[processor]
copy_rate = "1 GB/s"
run = "10 ns"
turn = "2 ns"
touch_rate = "500 MB/s"
code_rate = "300 MB/s"
step = "1 us"
piece = "200 ns"
[messages]
send = "45 us"
receive = "5 us"
send_per_byte = "5 ns/B"
receive_per_byte = "25 MB/s"
slot_per_run = "0 ns"
array_per_run = "0 ns"
eager = "4 KiB"
header = "64 B"
largest = "1 GiB"
requests = "slots"
[network]
kind = "torus"
rows = 6
columns = 5
router = "20 ns"
latency = "45 us"
link_rate = "35 MB/s"
[storage]
call = "20 us"
call_per_byte = "0 ns/B"
calls_at_once = 1
queue = "cscan"
[storage.servers]
layout = "apart"
count = 8
unit = "64 KiB"
width = 8
gathers = true
disks = 1
request = "60 us"
write_per_byte = "1 ns/B"
read_per_byte = "1 ns/B"
crowding = 0.5
requests_at_once = 4
link_rate = "100 Mbit/s"
[storage.cache]
kind = "blocks"
block = "8 KiB"
blocks_per_rank = 8
lookup = "60 us"
[storage.bus]
rate = "10 MiB/s"
transaction = "20 us"
[storage.disk]
kind = "nvme"
read_rate = "7 GB/s"
write_rate = "5 GB/s"
read = "50 us"
write = "15 us"
depth = 64
[storage.metadata]
open = "1 ms"
open_manager = "100 us"
close = "1 ms"
close_manager = "100 us"
query = "1 ms"
query_manager = "100 us"
"#;

/// Keys that hold no number.
const WORDS: &[&str] = &[
    "name",
    "description",
    "kind",
    "layout",
    "requests",
    "queue",
    "gathers",
    "host",
    "processor",
    "system",
    "file_system",
    "library",
    "date",
];

/// What a real machine has besides.
const MEASURED: &str = r#"[measured]
host = "here"
processor = "one of 2026"
system = "Linux 6.18"
file_system = "ext4 at /"
library = "0.1.0"
date = "2026-11-21"
[measured.neighbours]
message = "20 us"
wake = "10 us"
rate = "8 GB/s"
run = "20 ns"
array_run = "40 ns"
[measured.agreements]
base = "10 us"
rank = "20 us"
crowded = "500 us"
[measured.files]
write = "3 us"
write_rate = "4 GB/s"
write_rate_kept = "5 GB/s"
gather = "20 ns"
write_range = "1 us"
writers = 1
read = "2 us"
read_rate = "6 GB/s"
scatter = "10 ns"
read_range = "500 ns"
cold_rate = "2 GB/s"
direct_write_rate = "2 GB/s"
direct_read_rate = "1 GB/s"
sync = "1 ms"
sync_rate = "1 GB/s"
create = "20 us"
create_together = "50 us"
open = "5 us"
rename = "10 us"
remove = "10 us"
[measured.noise]
copy = 0.02
message = 0.1
file = 0.1
sync = 0.3
"#;

/// Sections of other kinds: header, and all its lines.
const VARIANTS: &[(&str, &str)] = &[
    ("network", "kind = \"switch\"\nlatency = \"1 us\"\nlink_rate = \"1 GB/s\""),
    ("network", "kind = \"ethernet\"\nlatency = \"1 us\"\nlink_rate = \"1 GB/s\""),
    ("network", "kind = \"fat-tree\"\nnodes_per_leaf = 16\ntaper = 0.5\nlatency = \"1 us\"\nlink_rate = \"1 GB/s\""),
    ("storage.cache", "kind = \"none\""),
    ("storage.cache", "kind = \"write-behind\"\nlimit = \"100 MiB\"\ncopy_rate = \"1 GB/s\"\ncluster = \"16 KiB\""),
    ("storage.disk", "kind = \"hp97560\""),
    ("storage.disk", "kind = \"instant\""),
    (
        "storage.disk",
        "kind = \"rated\"\nread_rate = \"3 MB/s\"\nwrite_rate = \"2 MB/s\"\nposition = \"9 ms\"\nrequest = \"1 ms\"",
    ),
];

/// The profile that most tests begin with.
pub(super) fn whole() -> String {
    WHOLE.lines().map(sourced).collect()
}

/// Profiles that together have every kind and every key.
pub(super) fn all() -> Vec<String> {
    let servers = |layout: &str, without: &[&str]| {
        let text = whole().replace("layout = \"apart\"", &format!("layout = {layout:?}"));
        without.iter().fold(text, |text, key| replaced(&text, "storage.servers", key, ""))
    };
    let mut texts = vec![
        whole(),
        whole().replace("\"slots\"", "\"all\"").replace("\"cscan\"", "\"fcfs\""),
        servers("ranks", &["count", "width", "gathers"]),
        servers("local", &["count", "width", "gathers", "unit"]),
        section(&whole(), "storage.bus", None),
        whole() + &MEASURED.lines().map(sourced).collect::<String>(),
    ];
    texts.extend(VARIANTS.iter().map(|(header, lines)| section(&whole(), header, Some(lines))));
    texts
}

/// A line with its source, if it holds a number.
fn sourced(line: &str) -> String {
    match line.split_once(" = ") {
        Some((key, value)) if !WORDS.contains(&key) => format!("{key} = {}\n", number(value)),
        _ => format!("{line}\n"),
    }
}

/// The lines of a text, each with its dotted key, which is empty for those that have none.
pub(super) fn lines(text: &str) -> Vec<(String, &str)> {
    let mut section = "";
    let key = |line| {
        if let Some(header) = str::strip_prefix(line, "[").and_then(|it| it.strip_suffix(']')) {
            section = header;
        }
        match str::split_once(line, " = ") {
            Some((key, _)) if !line.starts_with('#') && section.is_empty() => (key.to_owned(), line),
            Some((key, _)) if !line.starts_with('#') => (format!("{section}.{key}"), line),
            _ => (String::new(), line),
        }
    };
    text.lines().map(key).collect()
}

/// The text with another line for a key of a section, or with none.
pub(super) fn replaced(text: &str, section: &str, key: &str, line: &str) -> String {
    let dotted = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
    assert!(lines(text).iter().any(|it| it.0 == dotted), "{dotted} is not there");
    lines(text).iter().map(|(found, old)| format!("{}\n", if *found == dotted { line } else { old })).collect()
}

/// The text with other lines in a section, or without it.
pub(super) fn section(text: &str, header: &str, lines: Option<&str>) -> String {
    let start = text.find(&format!("[{header}]\n")).expect("the section is there");
    let end = text[start + 1..].find("\n[").map_or(text.len(), |it| start + it + 2);
    let lines =
        lines.map_or(String::new(), |lines| format!("[{header}]\n{}", lines.lines().map(sourced).collect::<String>()));
    format!("{}{lines}{}", &text[..start], &text[end..])
}
