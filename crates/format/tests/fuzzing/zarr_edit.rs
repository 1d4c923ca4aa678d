//! Changes in the text of metadata.

use hyperslab_format::zarr::{ArrayMetadata, GroupMetadata, JsonEdit, Map, Value, consolidated};

pub(super) fn check(bytes: &[u8]) {
    let (choice, text) = bytes.split_first().unwrap_or((&0, bytes));
    attributes(*choice, text);
    if let Ok(Some(stripped)) = consolidated::strip(text, "x") {
        assert_eq!(consolidated::strip(&stripped, "x").unwrap(), None);
        assert_eq!(GroupMetadata::parse(&stripped, "x").ok(), GroupMetadata::parse(text, "x").ok());
    }
    let nodes = vec![("a".to_string(), text.to_vec()), ("a/b".to_string(), text.to_vec())];
    if let Ok(all) = consolidated::consolidate(text, "x", nodes) {
        assert_eq!(GroupMetadata::parse(&all, "x").ok(), GroupMetadata::parse(text, "x").ok());
        let stripped = consolidated::strip(&all, "x").unwrap().expect("it has some");
        assert_eq!(GroupMetadata::parse(&stripped, "x").ok(), GroupMetadata::parse(text, "x").ok());
    }
}

/// What an edit of the text makes is what it makes of the parsed attributes.
fn attributes(choice: u8, text: &[u8]) {
    let before = parsed(text);
    let mut edit = JsonEdit { clear: choice & 1 == 1, ..JsonEdit::default() };
    if choice & 2 == 2 {
        edit.set.insert("new".into(), Value::from(vec![1, 2]));
    }
    let names: Vec<&String> = before.iter().flat_map(|map| map.keys()).collect();
    if let Some(name) = names.first().filter(|_| choice & 4 == 4) {
        edit.set.insert((*name).clone(), Value::from("\"}"));
    }
    if let Some(name) = names.last().filter(|_| choice & 8 == 8) {
        edit.removed.push((*name).clone());
    }
    let after = edit.applied(text, "x");
    let Some(mut expected) = before else { return };
    let after = after.expect("attributes of what is read can be changed");
    edit.apply(&mut expected);
    assert_eq!(parsed(&after), Some(expected), "{}", String::from_utf8_lossy(&after));
    let all_else = |text: &[u8]| {
        let group = GroupMetadata::parse(text, "x").ok().map(|group| GroupMetadata { attributes: Map::new(), ..group });
        let array = ArrayMetadata::parse(text, "x").ok();
        (group, array.map(|array| ArrayMetadata { attributes: Map::new(), ..array }))
    };
    assert_eq!(all_else(text), all_else(&after), "{}", String::from_utf8_lossy(&after));
}

fn parsed(text: &[u8]) -> Option<Map<String, Value>> {
    let group = GroupMetadata::parse(text, "x").ok().map(|group| group.attributes);
    group.or_else(|| ArrayMetadata::parse(text, "x").ok().map(|array| array.attributes))
}
