//! Attributes of random types, shapes and bits come back from each format as they were given, or are refused.

use fastrand::Rng;
use hyperslab_format::attribute::{
    AttributeEdit, AttributeValue, Attributes, Elements, KeptValue, Texts, ValueType, shown,
};
use hyperslab_format::hdf5::{Dialect, Hdf5Attribute};
use hyperslab_format::json_from_text;
use hyperslab_format::netcdf::Attribute;
use hyperslab_format::zarr::{Value, attributes_of_json, attributes_to_json};
use hyperslab_layout::{ByteOrder, ElementType, Kind};

const CASES: u64 = 3000;

fn shape(random: &mut Rng) -> Vec<u64> {
    (0..random.usize(0..4)).map(|_| random.u64(0..4)).collect()
}

fn element(random: &mut Rng) -> ElementType {
    let codes = ["V3", "M8[ns]", "V12[('a', '<i4'), ('b', '>f8')]", "V2[('s', '|S2')]"];
    if random.u8(..8) == 0 {
        return ElementType::from_numpy(codes[random.usize(..codes.len())]).unwrap();
    }
    let order = if random.bool() { ByteOrder::Little } else { ByteOrder::Big };
    ElementType { kind: Kind::ALL[random.usize(..Kind::ALL.len())], order }
}

fn elements(random: &mut Rng) -> Elements {
    let of = match random.u8(..6) {
        0 => ValueType::Bytes(random.u32(1..5)),
        1 => {
            let order = if random.bool() { ByteOrder::Little } else { ByteOrder::Big };
            let base = ElementType { kind: Kind::Int16, order };
            ValueType::Enumeration(base, vec![("A".into(), vec![1, 0]), ("größe".into(), vec![0, 1])])
        }
        _ => ValueType::Element(element(random)),
    };
    let shape = (random.u8(..9) > 0).then(|| shape(random));
    let count = shape.as_ref().map_or(0, |shape| shape.iter().product::<u64>());
    let truth = of.element().is_some_and(|element| element.kind == Kind::Bool);
    let bits = |_| if truth { random.u8(..2) } else { random.u8(1..) };
    let bytes = (0..count * of.bytes()).map(bits).collect();
    Elements::new(of, shape, bytes).unwrap()
}

fn plain(random: &mut Rng, depth: u32) -> Value {
    match random.u8(..if depth < 3 { 10 } else { 7 }) {
        0 => Value::Null,
        1 => random.bool().into(),
        2 => random.i64(..).into(),
        3 => random.u64(..).into(),
        4 => f64::from_bits(random.u64(..) & 0xbfff_ffff_ffff_ffff).into(),
        5 => json_from_text(["NaN", "Infinity", "-Infinity"][random.usize(..3)]).unwrap(),
        6 => ["", "größe", "\"\\\n", "NaN"][random.usize(..4)].into(),
        7 => (0..random.usize(..4)).map(|_| plain(random, depth + 1)).collect(),
        8 => vec![random.i32(..); random.usize(..4)].into(),
        _ => (0..random.usize(..3)).map(|number| (number.to_string(), plain(random, depth + 1))).collect(),
    }
}

fn value(random: &mut Rng) -> AttributeValue {
    match random.u8(..5) {
        0 | 1 => elements(random).into_value(),
        2 => {
            let shape = shape(random);
            let texts = (0..shape.iter().product()).map(|_| vec![random.u8(1..); random.usize(..4)]).collect();
            AttributeValue::Texts(Texts { shape: Some(shape), texts })
        }
        3 if random.bool() => AttributeValue::Kept(KeptValue { what: "a reference".into(), shape: None }),
        _ => AttributeValue::Plain(plain(random, 0)),
    }
}

trait IntoValue {
    fn into_value(self) -> AttributeValue;
}

impl IntoValue for Elements {
    fn into_value(self) -> AttributeValue {
        AttributeValue::Elements(self)
    }
}

fn attributes(random: &mut Rng) -> Attributes {
    (0..random.usize(..4)).map(|number| (format!("n{number}"), value(random))).collect()
}

#[test]
fn what_one_rank_tells_is_what_others_hear() {
    let mut random = Rng::with_seed(20_261_129);
    for _ in 0..CASES {
        let given = attributes(&mut random);
        let told = given.to_bytes();
        assert_eq!(Attributes::from_bytes(&told).as_ref(), Some(&given));
        let cut = random.usize(..told.len());
        assert_eq!(Attributes::from_bytes(&told[..cut]), None);
        let mut damaged = told.clone();
        damaged[cut] ^= 1 << random.u8(..8);
        // Anything, and no panic.
        if let Some(other) = Attributes::from_bytes(&damaged) {
            other.iter().for_each(|(_, value)| drop(shown(value)));
        }
    }
}

/// Elements and texts are read as they were given; what is plain gets a type, and is read the same when it is stored again.
#[test]
fn hdf5_and_netcdf_give_back_what_they_take() {
    let mut random = Rng::with_seed(20_261_130);
    let mut kept = [0; 3];
    for _ in 0..CASES {
        let given: Attributes = [("x", value(&mut random))].into_iter().collect();
        for (number, dialect) in [Dialect::H5py, Dialect::Netcdf].into_iter().enumerate() {
            let Ok(stored) = Hdf5Attribute::of_values(&given, None, dialect) else { continue };
            kept[number] += 1;
            let found: Attributes = stored.iter().map(|one| (one.name.clone(), one.to_value(dialect))).collect();
            if dialect == Dialect::H5py && !matches!(given["x"], AttributeValue::Plain(_)) {
                assert_eq!(seen(&found["x"]), seen(&given["x"]));
            }
            let again = Hdf5Attribute::of_values(&found, None, dialect).unwrap();
            let twice: Attributes = again.iter().map(|one| (one.name.clone(), one.to_value(dialect))).collect();
            assert_eq!(twice, found, "{given:?}");
        }
        let Ok(stored) = Attribute::of_values(&given, None) else { continue };
        kept[2] += 1;
        let found: Attributes = stored.iter().map(|one| (one.name.clone(), one.to_value())).collect();
        assert_eq!(Attribute::of_values(&found, None).unwrap(), stored, "{given:?}");
    }
    assert!(kept.iter().all(|kept| *kept > CASES / 20), "{kept:?}");
}

/// A value without the ways in which the same one can be said: one text in an array of none is that text.
fn seen(value: &AttributeValue) -> AttributeValue {
    match value {
        AttributeValue::Texts(Texts { shape: Some(shape), texts }) if shape.is_empty() => {
            AttributeValue::text(texts[0].clone())
        }
        other => other.clone(),
    }
}

#[test]
fn json_is_zarrs_and_keeps_each_digit() {
    let mut random = Rng::with_seed(20_261_131);
    let mut kept = 0;
    for _ in 0..CASES {
        let given: Attributes = [("x", value(&mut random))].into_iter().collect();
        let Ok(map) = attributes_to_json(&given, None) else {
            assert!(!matches!(given["x"], AttributeValue::Plain(_)));
            continue;
        };
        kept += 1;
        let text = Value::Object(map.clone()).to_string();
        assert_eq!(json_from_text(&text), Some(Value::Object(map.clone())), "{text}");
        if let AttributeValue::Plain(plain) = &given["x"] {
            assert_eq!(&map["x"], plain);
        }
        let found = attributes_of_json(map.clone(), None);
        assert_eq!(attributes_to_json(&found, None).unwrap(), map);
    }
    assert!(kept > CASES / 2, "{kept}");
}

#[test]
fn numbers_are_what_they_were() {
    let native = |code: &str, bytes: &[u8]| {
        AttributeValue::Elements(Elements::one(ElementType::from_numpy(code).unwrap(), bytes))
    };
    assert_eq!(native("f4", &0.5_f32.to_ne_bytes()).as_f64(), Some(0.5));
    assert_eq!(native(">i8", &(-7_i64).to_ne_bytes()).as_i64(), Some(-7));
    assert_eq!(native("u1", &[200]).as_f64(), Some(200.0));
    assert_eq!(AttributeValue::from(3).as_f64(), Some(3.0));
    assert_eq!(AttributeValue::from("m").as_text(), Some("m"));
    assert_eq!(native("f8", &f64::NAN.to_ne_bytes()).as_f64().map(f64::is_nan), Some(true));
    assert_ne!(shown(&native("f4", &[1, 0, 0xc0, 0x7f])), shown(&native("f4", &f32::NAN.to_ne_bytes())));
    assert_ne!(shown(&native("f4", &0.5_f32.to_ne_bytes())), shown(&AttributeValue::from(0.5)));
}

#[test]
fn edits_set_in_place_and_behind() {
    let mut all: Attributes = [("a", 1), ("b", 2), ("c", 3)].into_iter().collect();
    let set: Attributes = [("d", 4), ("b", 5)].into_iter().collect();
    AttributeEdit { removed: vec!["a".into()], ..AttributeEdit::setting(set.clone()) }.apply(&mut all);
    assert_eq!(all.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["c", "d", "b"]);
    AttributeEdit { clear: true, ..AttributeEdit::setting(set.clone()) }.apply(&mut all);
    assert_eq!(all, set);
}

#[test]
fn texts_with_a_zero_are_refused_where_they_would_be_cut() {
    for value in [AttributeValue::from("a\0b"), vec!["a", "b\0"].into()] {
        let given: Attributes = [("x", value)].into_iter().collect();
        for dialect in [Dialect::H5py, Dialect::Netcdf] {
            let error = Hdf5Attribute::of_values(&given, None, dialect).unwrap_err();
            assert!(error.is_invalid() && error.object() == "x", "{error}");
        }
        assert!(Attribute::of_values(&given, None).unwrap_err().is_invalid());
        assert!(attributes_to_json(&given, None).is_ok());
    }
    let bytes = |bytes: &[u8]| {
        let of = ValueType::Bytes(bytes.len() as u32);
        let value = Elements::new(of, Some(Vec::new()), bytes.to_vec()).unwrap().into_value();
        let given: Attributes = [("x", value)].into_iter().collect();
        Hdf5Attribute::of_values(&given, None, Dialect::H5py).map(|_| Attribute::of_values(&given, None).is_ok())
    };
    assert_eq!(bytes(b"a\0b").ok(), Some(false));
    assert!(bytes(b"ab\0").unwrap_err().hint().unwrap().contains("np.void"));
    assert_eq!(bytes(b"\0").ok(), Some(true));
}
