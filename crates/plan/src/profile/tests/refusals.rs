//! What is wrong is said: in which file, at which key, what was expected and what was found.

use super::documents::{all, number, replaced, section, whole};
use crate::profile::{Layout, Topology, parse};

const FILE: &str = "machines/test.toml";

/// The error of a text, which begins with its file and its key.
#[track_caller]
fn refusal(text: &str, key: &str) -> String {
    let error = parse(FILE, text, &[]).expect_err("it is refused");
    let said = error.to_string();
    assert_eq!(error.key(), key, "{said}");
    assert!(said.starts_with(&format!("{FILE}: {key}: ")), "{said}");
    said
}

/// The error of the whole profile with another value of one key.
#[track_caller]
fn other(section: &str, key: &str, value: &str) -> String {
    let text = replaced(&whole(), section, key, &format!("{key} = {value}"));
    let said = refusal(&text, &format!("{section}.{key}"));
    assert!(said.contains("(line "), "{said}");
    said
}

/// All words are in a text.
#[track_caller]
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{said}\nlacks {word}");
    }
}

#[test]
fn all_kinds_are_taken() {
    for text in all() {
        if let Err(error) = parse(FILE, &text, &[]) {
            panic!("{error}\n{text}");
        }
    }
}

#[test]
fn what_is_not_toml_has_a_line() {
    for text in ["a = ", "name = \"x\"\nname = \"y\"", "[nodes\n", "\u{0}", "a = 1\n[a]"] {
        let said = parse(FILE, text, &[]).expect_err(text).to_string();
        says(&said, &["machines/test.toml: not TOML: ", "(line "]);
    }
}

#[test]
fn units_are_needed_and_must_fit() {
    let time = ["a time such as \"45 us\"", "units of a time are ns us ms s"];
    says(&other("network", "latency", &number("\"45 MB\"")), &time);
    says(&other("network", "latency", &number("\"45 MB\"")), &["found \"45 MB\", which is a size"]);
    says(&other("network", "latency", &number("\"45 usec\"")), &["unit `usec` is unknown", time[1]]);
    says(&other("network", "latency", &number("\"45\"")), &["found \"45\", which has no unit", time[0]]);
    says(&other("network", "latency", &number("45")), &["found the integer 45, which has no unit", time[0]]);
    says(&other("network", "link_rate", &number("\"35 MB\"")), &["\"35 MB/s\"", "is a size", "Mbit/s"]);
    says(&other("messages", "send_per_byte", &number("\"5 ns\"")), &["\"5 ns/B\"", "is a time", "us/B", "MB/s"]);
    says(&other("storage.cache", "block", &number("\"8 KiB/s\"")), &["\"64 KiB\"", "is a rate"]);
}

#[test]
fn numbers_are_finite_and_not_negative() {
    says(&other("network", "latency", &number("\"-1 us\"")), &["found \"-1 us\", which is negative"]);
    says(&other("network", "link_rate", &number("\"inf MB/s\"")), &["not finite", "units of a rate"]);
    says(&other("network", "latency", &number("\"nan us\"")), &["is no number"]);
    says(&other("storage.servers", "crowding", &number("nan")), &["is no number"]);
    says(&other("storage.disk", "depth", &number("-1")), &["negative"]);
    says(&other("storage.disk", "depth", &number("5000000000")), &["at most 4294967295", "5000000000"]);
    says(&other("messages", "largest", &number("\"10000000 TiB\"")), &["at most 9007199254740992 B"]);
}

#[test]
fn zero_is_refused_where_it_is_impossible() {
    for (section, key, zero) in [
        ("network", "link_rate", "\"0 MB/s\""),
        ("nodes", "cores_per_node", "0"),
        ("nodes", "ranks_per_node", "0"),
        ("network", "rows", "0"),
        ("storage.servers", "unit", "\"0 KiB\""),
        ("storage.servers", "disks", "0"),
        ("storage.cache", "blocks_per_rank", "0"),
        ("messages", "largest", "\"0 B\""),
    ] {
        says(&other(section, key, &number(zero)), &["found zero, which is impossible here", "  hint: "]);
    }
    let leafless = section(&whole(), "network", Some("kind = \"fat-tree\"\nnodes_per_leaf = 0\ntaper = 0.5"));
    says(&refusal(&leafless, "network.nodes_per_leaf"), &["zero"]);
    let eager = replaced(&whole(), "messages", "eager", &format!("eager = {}", number("\"0 B\"")));
    assert!(parse(FILE, &eager, &[]).is_ok_and(|it| it.messages.eager_bytes == 0));
}

#[test]
fn types_are_checked() {
    says(&other("network", "latency", &number("true")), &["a time such as", "the boolean true"]);
    says(&other("network", "latency", &number("[1]")), &["an array"]);
    says(&other("nodes", "ranks_per_node", &number("\"2\"")), &["a whole number such as 4", "\"2\"", "no quotes"]);
    says(&other("nodes", "ranks_per_node", &number("2.5")), &["the number 2.5"]);
    says(&other("storage.servers", "gathers", "\"yes\""), &["true or false", "\"yes\""]);
    says(&other("network", "kind", "3"), &["one of switch, torus", "the integer 3"]);
    says(&refusal("name = 3", "name"), &["a string", "the integer 3", "(line 1)"]);
    says(&refusal("name = \"\"", "name"), &["not empty"]);
    says(&refusal(&whole().replace("[nodes]", "[nodes.inner]"), "nodes.ranks_per_node"), &["missing"]);
    let flat = section(&whole(), "nodes", None).replacen("name", "nodes = 3\nname", 1);
    says(&refusal(&flat, "nodes"), &["a section", "the integer 3", "[nodes]"]);
}

#[test]
fn numbers_have_a_source() {
    let bare = other("network", "latency", "\"45 us\"");
    says(&bare, &["a number with its source, found \"45 us\" alone", "{ is = \"45 us\", from = \"paper: ...\" }"]);
    says(&other("network", "latency", "{ is = \"45 us\" }"), &["`from` is missing"]);
    says(&other("network", "latency", "{ from = \"guess: x\" }"), &["`is` is missing"]);
    says(&other("network", "latency", "{ is = \"1 us\", from = 3 }"), &["a string in `from`", "integer 3"]);
    says(&other("network", "latency", "{ is = \"1 us\", from = \"guess: x\", at = 3 }"), &["found `at` too"]);
    let kinds = "paper: public: measured: fitted: guess:";
    says(&other("network", "latency", "{ is = \"1 us\", from = \"Kotz\" }"), &["found \"Kotz\"", kinds]);
    says(&other("network", "latency", "{ is = \"1 us\", from = \"paper: \" }"), &["after the colon", kinds]);
}

#[test]
fn kinds_are_listed() {
    let said = other("network", "kind", "\"tors\"");
    says(&said, &["one of switch, torus, ethernet, fat-tree", "found \"tors\"", "did you mean \"torus\"?"]);
    says(&other("storage.disk", "kind", "\"tape\""), &["one of hp97560, rated, nvme, instant", "\"tape\""]);
    says(&other("messages", "requests", "\"none\""), &["one of slots, all"]);
    says(&other("storage", "queue", "\"lifo\""), &["one of fcfs, cscan"]);
    says(&other("storage.servers", "layout", "\"far\""), &["one of local, ranks, apart"]);
}

#[test]
fn what_is_missing_is_named() {
    let without = replaced(&whole(), "network", "latency", "");
    says(&refusal(&without, "network.latency"), &["missing; expected a time such as", "below [network]"]);
    let misspelt = whole().replace("latency", "latenzy");
    says(&refusal(&misspelt, "network.latency"), &["missing", "is `network.latenzy`, which is no key, meant for it?"]);
    says(&refusal(&section(&whole(), "processor", None), "processor"), &["missing section", "[processor]"]);
    says(&refusal(&whole().replace("[messages]", "[message]"), "messages"), &["is [message] meant for it?"]);
    says(&refusal("", "name"), &["missing; expected a string", "at the top"]);
}

#[test]
fn what_is_too_much_is_named() {
    let extra =
        |section: &str, line: &str| whole().replacen(&format!("[{section}]"), &format!("[{section}]\n{line}"), 1);
    let said = refusal(&extra("network", "latenzy = 3"), "network.latenzy");
    says(
        &said,
        &["unknown key (line", "did you mean `network.latency`?", "keys of [network] with kind = \"torus\" are"],
    );
    let switched = whole().replace("\"torus\"", "\"switch\"");
    says(&refusal(&switched, "network.columns"), &["unknown key", "with kind = \"switch\" are kind latency link_rate"]);
    says(&refusal(&format!("{}[clock]\nx = 1\n", whole()), "clock"), &["unknown section"]);
    says(&refusal(&format!("colour = 1\n{}", whole()), "colour"), &["unknown key", "the top", "description"]);
}

#[test]
fn what_cannot_be_together_is_refused() {
    let wide = other("storage.servers", "width", &number("9"));
    says(&wide, &["at most storage.servers.count = 8, found 9"]);
    for taper in ["0.0", "1.5"] {
        let lines = format!("kind = \"fat-tree\"\nnodes_per_leaf = 16\ntaper = {taper}");
        let said = refusal(&section(&whole(), "network", Some(&lines)), "network.taper");
        says(&said, &["above 0 and not above 1", "(line "]);
    }
}

#[test]
fn factors_scale_numbers() {
    let scaled = |key: &str, factor| parse(FILE, &whole(), &[(key.to_owned(), factor)]);
    assert!(scaled("network.latency", 2.0).is_ok_and(|it| it.network.latency_ns == 90e3));
    assert!(scaled("messages.receive_per_byte", 0.5).is_ok_and(|it| it.messages.receive_byte_ns == 20.0));
    assert!(scaled("nodes.cores_per_node", 0.01).is_ok_and(|it| it.nodes.cores_per_node == 1));
    let shape = |rows| scaled("network.rows", rows).map(|it| it.network.topology);
    assert_eq!(shape(1.4), Ok(Topology::Torus { shape: (8, 5), router_ns: 20.0 }));
    let unit = |factor| scaled("storage.servers.unit", factor).map(|it| it.storage.servers.layout);
    assert_eq!(unit(0.5), Ok(Layout::Apart { count: 8, unit_bytes: 32768, width: 8, gathers: true }));
    assert_eq!(unit(1e-9), Ok(Layout::Apart { count: 8, unit_bytes: 1, width: 8, gathers: true }));

    let refused = |key, factor| scaled(key, factor).expect_err(key).to_string();
    says(&refused("network.latenzy", 2.0), &["network.latenzy: no such number", "did you mean `network.latency`?"]);
    says(&refused("network.kind", 2.0), &["network.kind: no such number"]);
    says(&refused("network.link_rate", 0.0), &["network.link_rate: expected a rate", "times 0"]);
    for factor in [f64::NAN, f64::INFINITY, -1.0] {
        says(&refused("network.latency", factor), &["network.latency: expected a time", "\"45 us\" times "]);
    }
}
