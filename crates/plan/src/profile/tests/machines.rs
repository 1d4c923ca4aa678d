//! The machines of the repository, and the page about profiles.

use super::documents::{all, lines, replaced};
use crate::profile::{Origin, constants, parse};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A path in the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Names and texts of all machines.
fn machines() -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        (format!("machines/{name}"), fs::read_to_string(&path).expect("a machine can be read"))
    };
    let folder = fs::read_dir(repository("machines")).expect("there are machines");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    paths.sort();
    paths.into_iter().map(read).collect()
}

/// A dotted key in parts: its section and its name there.
fn parted(dotted: &str) -> (&str, &str) {
    dotted.rsplit_once('.').unwrap_or(("", dotted))
}

#[test]
fn every_machine_is_read() {
    let machines = machines();
    assert!(machines.len() >= 10, "{}", machines.len());
    for (file, text) in &machines {
        match parse(file, text, &[]) {
            Ok(profile) => assert_eq!(*file, format!("machines/{}.toml", profile.name)),
            Err(error) => panic!("{error}"),
        }
        let count = constants(file, text).map_or(0, |it| it.len());
        assert_eq!(count, text.matches("from = \"").count(), "{file}: every number is listed once");
    }
}

#[test]
fn constants_tell_texts_and_sources() {
    let (file, text) = machines().into_iter().find(|it| it.0.ends_with("starfish.toml")).expect("starfish");
    let all = constants(&file, &text).expect("it is read");
    let send = all.iter().find(|it| it.key == "messages.send").expect("it is there");
    assert_eq!((send.text.as_str(), send.origin), ("5 us", Origin::Paper));
    assert!(send.source.starts_with("Kotz 1997"), "{}", send.source);
    let rows = all.iter().find(|it| it.key == "network.rows").expect("it is there");
    assert_eq!(rows.text, "6");
}

/// What not every machine has.
const LEFT_OUT: [&str; 8] = [
    "measured.files.direct_write_rate",
    "measured.files.direct_read_rate",
    "measured.files.write_range",
    "measured.files.read_range",
    "measured.files.create_together",
    "measured.files.write_rate_kept",
    "processor.turn",
    "processor.touch_rate",
];

#[test]
fn what_not_every_machine_has_can_be_left_out() {
    // Direct requests are not there then, further ranges take what calls do, files of several ranks
    // what those of one do, and memory that stays in the processor's cache, or is new, is as all other.
    let there = |text: &str| {
        let profile = parse("test.toml", text, &[]).expect("it is read");
        let processor = &profile.processor;
        let turns = processor.turn_ns != processor.run_ns;
        let touches = processor.touch_rate != processor.copy_rate;
        let files = profile.measured.expect("it was measured").files;
        let rates = [files.direct_write_rate, files.direct_read_rate].map(|rate| rate.is_some());
        let ranges = [files.write_range_ns != files.write_ns, files.read_range_ns != files.read_ns];
        let kept = files.write_rate_kept != files.write_rate;
        let together = files.create_together_ns != files.create_ns;
        [rates[0], rates[1], ranges[0], ranges[1], together, kept, turns, touches]
    };
    for (number, key) in LEFT_OUT.into_iter().enumerate() {
        let text = all().into_iter().find(|text| text.contains("direct_write_rate")).expect("a machine at hand");
        let (section, key) = parted(key);
        assert_eq!(there(&text), [true; 8]);
        let mut expected = [true; 8];
        expected[number] = false;
        assert_eq!(there(&replaced(&text, section, key, "")), expected);
    }
}

#[test]
fn no_other_key_can_be_left_out() {
    for (file, text) in machines().into_iter().chain(all().into_iter().map(|it| ("test.toml".to_owned(), it))) {
        for (dotted, _) in lines(&text).iter().filter(|it| !it.0.is_empty() && !LEFT_OUT.contains(&it.0.as_str())) {
            let (section, key) = parted(dotted);
            let error = parse(&file, &replaced(&text, section, key, ""), &[]).expect_err(dotted);
            let said = error.to_string();
            assert_eq!(error.key(), dotted, "{said}");
            assert!(said.contains("missing; expected "), "{said}");
            assert!(said.contains("hint: write "), "{said}");
        }
    }
}

#[test]
fn no_unit_can_be_another() {
    for (file, text) in machines() {
        for constant in constants(&file, &text).expect("it is read") {
            let (section, key) = parted(&constant.key);
            let Some((number, unit)) = constant.text.split_once(' ') else { continue };
            for other in ["furlongs", "", "B s"] {
                let line = format!("{key} = {{ is = \"{number} {other}\", from = \"guess: a test\" }}");
                let error = parse(&file, &replaced(&text, section, key, &line), &[]).expect_err(&constant.key);
                assert_eq!(error.key(), constant.key, "{error}");
                let hint = error.hint().split([' ', ',']).collect::<Vec<_>>();
                assert!(hint.contains(&unit), "{unit} is not in the hint\n{error}");
            }
        }
    }
}

/// Neither a panic nor an endless loop, whatever is in the file.
#[test]
fn no_text_is_too_strange() {
    let mut random = fastrand::Rng::with_seed(1997);
    let texts = all();
    for _ in 0..4000 {
        let mut bytes = texts[random.usize(..texts.len())].clone().into_bytes();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, *random.choice(b"\"[]{}=.\n9-#e").expect("not empty")),
                _ => drop(bytes.splice(at..(at + random.usize(..40)).min(bytes.len()), [])),
            }
        }
        if let Err(error) = parse("strange.toml", &String::from_utf8_lossy(&bytes), &[]) {
            assert!(error.to_string().starts_with("strange.toml: "), "{error}");
        }
    }
}

/// Keys in the tables of the page, below headings such as "### `[nodes]`: compute nodes".
fn page() -> BTreeSet<String> {
    let text = fs::read_to_string(repository("docs/machines.md")).expect("the page can be read");
    let mut keys = BTreeSet::new();
    for part in text.split("\n### ").skip(1) {
        let (heading, rows) = part.split_once('\n').unwrap_or((part, ""));
        let section = heading.strip_prefix("`[").and_then(|it| it.split_once(']'));
        let prefix = section.map_or(String::new(), |it| format!("{}.", it.0));
        let names = rows.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        keys.extend(names.map(|name| format!("{prefix}{name}")));
    }
    keys
}

#[test]
fn the_page_has_every_key_and_no_other() {
    let texts = all();
    let known = texts.iter().flat_map(|text| lines(text)).map(|it| it.0).filter(|key| !key.is_empty());
    assert_eq!(page(), known.collect::<BTreeSet<_>>());
}
