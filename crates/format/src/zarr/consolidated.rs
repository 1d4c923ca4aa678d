//! Consolidated metadata: a copy of what all nodes below a group say, in the `zarr.json` of that group.
//!
//! zarr-python writes it on demand and, where it is there, believes it instead of the nodes (as xarray does by way of
//! it), so whoever changes a node below takes the copy away first, or writes it anew. Both happen in the text: all else
//! in the document, its order, its digits and the words `NaN` and `Infinity` (which are not JSON), stays as it was
//! written.

use super::group::{NodeType, take_node_type};
use super::json::{CONSOLIDATED, METADATA_BYTES_MAX, document};
use super::members::{members, with, without};
use crate::error::{Context, Error};
use std::collections::BTreeMap;

/// Name of the member.
const MEMBER: &str = CONSOLIDATED;
/// The copy that says that a group has no nodes; readers find those of a group below in the copy above it.
const NOTHING: &str = "{\"kind\": \"inline\", \"must_understand\": false, \"metadata\": {}}";

/// The `zarr.json` of a group without its consolidated metadata, or `None` when it has none. `name` is the name of the
/// object in errors.
///
/// # Errors
/// When the bytes are not the metadata of a group.
pub fn strip(bytes: &[u8], name: &str) -> Result<Option<Vec<u8>>, Error> {
    let context = Context::new("remove consolidated metadata from", name);
    if node_type(bytes, context)? != NodeType::Group {
        return Err(context.corrupt("a group", "an array"));
    }
    let has = members(bytes).iter().any(|member| member.is(MEMBER) && &bytes[member.value.clone()] != b"null");
    Ok(has.then(|| without(bytes, MEMBER)))
}

/// The `zarr.json` of a group with consolidated metadata: what `nodes` say, each with its path below the group and its
/// own `zarr.json`. `name` is the name of the group's object in errors.
///
/// # Errors
/// When one of the documents is not what it should be, when a group between the group and a node is not among the nodes,
/// or when the result is larger than metadata may be.
pub fn consolidate(
    group: &[u8],
    name: &str,
    nodes: impl IntoIterator<Item = (String, Vec<u8>)>,
) -> Result<Vec<u8>, Error> {
    let context = Context::new("write consolidated metadata to", name);
    if node_type(group, context)? != NodeType::Group {
        return Err(context.corrupt("a group", "an array"));
    }
    // Readers rely on it that groups come before what is in them, and that what is in one group stands together.
    let mut known: BTreeMap<(usize, String), (NodeType, Vec<u8>)> = BTreeMap::new();
    for (path, bytes) in nodes {
        let kind = node_type(&bytes, Context { object: &path, ..context })?;
        let text = if kind == NodeType::Group { with(&without(&bytes, MEMBER), MEMBER, NOTHING) } else { bytes };
        known.insert((path.matches('/').count(), path), (kind, text));
    }
    let mut block = String::from("{\n    \"kind\": \"inline\",\n    \"must_understand\": false,\n    \"metadata\": {");
    for (number, ((depth, path), (_, bytes))) in known.iter().enumerate() {
        if let Some((parent, _)) = path.rsplit_once('/') {
            let above = known.get(&(depth - 1, parent.to_owned()));
            if above.is_none_or(|(kind, _)| *kind != NodeType::Group) {
                return Err(context.invalid(format!("a group `{parent}`, in which `{path}` is"), "none"));
            }
        }
        let text = String::from_utf8_lossy(bytes);
        // Within strings of JSON there are no line breaks.
        let text = text.trim().replace('\n', "\n      ");
        let comma = if number == 0 { "" } else { "," };
        block += &format!("{comma}\n      {}: {text}", serde_json::Value::from(path.as_str()));
    }
    block += if known.is_empty() { "}\n  }" } else { "\n    }\n  }" };
    let made = with(&without(group, MEMBER), MEMBER, &block);
    if made.len() > METADATA_BYTES_MAX {
        let hint = format!("without consolidated metadata, {} nodes are read one by one", known.len());
        let found = format!("{} B", made.len());
        return Err(context.unsupported(format!("at most {METADATA_BYTES_MAX} B"), found).with_hint(hint));
    }
    Ok(made)
}

/// Whether a document may have such a copy, as far as a look at its text tells.
pub fn may_have(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains(MEMBER))
}

/// Checks that bytes are a document of Zarr version 3, and says of what.
fn node_type(bytes: &[u8], context: Context) -> Result<NodeType, Error> {
    take_node_type(&mut document(bytes, context)?, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zarr::{GroupMetadata, Value};
    use serde_json::json;

    /// Documents that are the same but for the member, where `#` stands for where it may be.
    const DOCUMENTS: [&str; 6] = [
        "{#\"zarr_format\": 3, #\"node_type\": \"group\"#}",
        "{\n  #\"attributes\": {\"n\": NaN, \"s\": \"\\\"}],{\", \"l\": [[1e400, -0.0]]},\n  #\"zarr_format\":3,\n\
         #\"node_type\":\"group\"#\n}\n",
        " { #\"node_type\" : \"group\" , #\"zarr_format\" : 3 #} ",
        "{#\"zarr_format\": 3, #\"node_type\": \"group\", #\"attributes\": {\"consolidated_metadata\": {\"mine\": 1}}#}",
        "{#\"zarr_format\": 3, #\"node_type\": \"group\", #\"x\": {\"must_understand\": false, \"\\\\\": \"\\\\\"}#}",
        "{#\"zarr_format\":3,#\"attributes\":{},#\"node_type\":\"group\"#}",
    ];
    const BLOCKS: [&str; 3] = [
        "{}",
        "{\"kind\": \"inline\", \"metadata\": {\"a,}\": {\"x\": [\"]}\", {}, NaN]}}}",
        "{\n  \"kind\": \"inline\"\n}",
    ];

    fn put(template: &str, place: usize, text: &str) -> String {
        let parts: Vec<&str> = template.split('#').collect();
        let (before, after) = (parts[..=place].concat(), parts[place + 1..].concat());
        // The comma stands behind it, or before it at the end.
        if place + 2 == parts.len() { format!("{before}, {text}{after}") } else { format!("{before}{text}, {after}") }
    }

    fn parsed(bytes: &[u8]) -> Value {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        serde_json::from_str(&text.replace("NaN", "\"NaN\"")).unwrap()
    }

    #[test]
    fn all_else_stays_as_it_was_written() {
        let mut tried = 0;
        for template in DOCUMENTS {
            let plain = template.replace('#', "");
            assert_eq!(strip(plain.as_bytes(), "g").unwrap(), None, "{plain}");
            for (place, block) in
                (0..template.matches('#').count()).flat_map(|place| BLOCKS.map(|block| (place, block)))
            {
                for name in ["consolidated_metadata", "consolidated\\u005fmetadata"] {
                    let document = put(template, place, &format!("\"{name}\" : {block}"));
                    let stripped = strip(document.as_bytes(), "g").unwrap().expect(&document);
                    assert_eq!(parsed(&stripped), parsed(plain.as_bytes()), "{document}");
                    let squeezed = |text: &[u8]| -> Vec<u8> {
                        text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
                    };
                    assert_eq!(squeezed(&stripped), squeezed(plain.as_bytes()), "{document}");
                    assert_eq!(strip(&stripped, "g").unwrap(), None);
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 2 * 3 * (3 + 4 + 3 + 4 + 4 + 4));
    }

    #[test]
    fn null_says_that_there_is_none() {
        let document = br#"{"zarr_format": 3, "node_type": "group", "consolidated_metadata": null}"#;
        assert_eq!(strip(document, "g").unwrap(), None);
        let twice = br#"{"consolidated_metadata": {}, "zarr_format": 3, "consolidated_metadata": null,
            "node_type": "group"}"#;
        let stripped = strip(twice, "g").unwrap().unwrap();
        assert_eq!(parsed(&stripped), json!({"zarr_format": 3, "node_type": "group"}));
    }

    #[test]
    fn what_is_no_group_is_refused() {
        let array = br#"{"zarr_format": 3, "node_type": "array", "consolidated_metadata": {}}"#;
        assert!(strip(array, "rho/zarr.json").unwrap_err().to_string().contains("'rho/zarr.json'"));
        assert!(consolidate(array, "a", Vec::new()).unwrap_err().is_corrupt());
        for text in ["", "{", "[]", "{\"zarr_format\": 3}", "{\"zarr_format\": 2, \"node_type\": \"group\"}"] {
            assert!(strip(text.as_bytes(), "g").is_err(), "{text}");
            let group = GroupMetadata::default().to_json();
            let error = consolidate(&group, "g", [("rho".to_string(), text.into())]).unwrap_err();
            assert_eq!(error.object(), "rho", "{text}");
        }
    }

    fn nodes<const N: usize>(named: [(&str, &str); N]) -> Vec<(String, Vec<u8>)> {
        named.into_iter().map(|(path, text)| (path.to_string(), text.as_bytes().to_vec())).collect()
    }

    const GROUP: &str = "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": {\"n\": NaN}\n}";
    const ARRAY: &str = "{\"node_type\": \"array\", \"zarr_format\": 3, \"big\": 10000000000000000000000000}\n";

    #[test]
    fn a_block_has_all_nodes_in_an_order_that_readers_rely_on() {
        let below =
            nodes([("s/u", ARRAY), ("é\"\n", ARRAY), ("s-1/u", ARRAY), ("s", GROUP), ("s/a", ARRAY), ("s-1", GROUP)]);
        let made = consolidate(GROUP.as_bytes(), "g", below.clone()).unwrap();
        let document = parsed(&made);
        let block = &document["consolidated_metadata"];
        assert_eq!((&block["kind"], &block["must_understand"]), (&json!("inline"), &json!(false)));
        let found = block["metadata"].as_object().unwrap();
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["s", "s-1", "é\"\n", "s-1/u", "s/a", "s/u"]);
        assert_eq!(found["s/u"], parsed(ARRAY.as_bytes()));
        let nothing: Value = serde_json::from_str(NOTHING).unwrap();
        assert_eq!(found["s"]["consolidated_metadata"], nothing);
        assert_eq!(found["s"]["attributes"], json!({"n": "NaN"}));
        // Made again, it is the same, and without it the group is what it was.
        assert_eq!(consolidate(&made, "g", below).unwrap(), made);
        assert_eq!(strip(&made, "g").unwrap().unwrap(), GROUP.as_bytes());
        assert_eq!(String::from_utf8(made).unwrap().matches(": NaN").count(), 3, "the words stay words");
    }

    #[test]
    fn blocks_of_groups_below_are_not_taken_over() {
        let stale =
            GROUP.replace("\"zarr_format\"", "\"consolidated_metadata\": {\"metadata\": {\"x\": {}}}, \"zarr_format\"");
        let made = consolidate(stale.as_bytes(), "g", nodes([("s", &stale)])).unwrap();
        assert_eq!(made, consolidate(GROUP.as_bytes(), "g", nodes([("s", GROUP)])).unwrap());
    }

    #[test]
    fn an_empty_group_has_an_empty_block() {
        let made = consolidate(GROUP.as_bytes(), "g", Vec::new()).unwrap();
        assert_eq!(parsed(&made)["consolidated_metadata"], serde_json::from_str::<Value>(NOTHING).unwrap());
        assert!(GroupMetadata::parse(&made, "g").is_ok());
    }

    #[test]
    fn a_node_without_the_groups_above_it_is_refused() {
        for below in
            [nodes([("s/u", ARRAY)]), nodes([("s", ARRAY), ("s/u", ARRAY)]), nodes([("s", GROUP), ("s/t/u", ARRAY)])]
        {
            let error = consolidate(GROUP.as_bytes(), "g", below).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains("u` is"), "{error}");
        }
    }

    /// Whatever is done to a document, it is refused or remains one, and without the member.
    #[test]
    fn damaged_documents_do_no_harm() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut stripped = 0;
        for _ in 0..20_000 {
            let template = random.choice(DOCUMENTS).unwrap();
            let place = random.usize(..template.matches('#').count());
            let block = random.choice(BLOCKS).unwrap();
            let mut bytes = put(template, place, &format!("\"consolidated_metadata\": {block}")).into_bytes();
            for _ in 0..random.usize(1..3) {
                let at = random.usize(..bytes.len());
                match random.u8(..3) {
                    0 => bytes[at] = random.choice(b"{}[]\",:\\ x0N".iter().copied()).unwrap(),
                    1 => bytes.insert(at, random.choice(b"{}[]\",:\\ x0N".iter().copied()).unwrap()),
                    _ => {
                        bytes.remove(at);
                    }
                }
            }
            let before = document(&bytes, Context::new("read", "g"));
            if let Ok(Some(made)) = strip(&bytes, "g") {
                let mut expected = before.unwrap();
                expected.shift_remove(MEMBER);
                assert_eq!(document(&made, Context::new("read", "g")).unwrap(), expected);
                stripped += 1;
            }
            if let Ok(made) = consolidate(&bytes, "g", nodes([("rho", ARRAY)])) {
                assert!(GroupMetadata::parse(&made, "g").is_ok() || GroupMetadata::parse(&bytes, "g").is_err());
            }
        }
        assert!(stripped > 1000, "{stripped}");
    }
}
