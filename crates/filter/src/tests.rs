//! Whole expressions.

use crate::{BlockValues, BoxPlace, Column, Evaluator, Expression, Parameter, Refused, Scalar};
use hyperslab_layout::Kind;

const COLUMNS: [(&str, Kind); 5] = [
    ("a", Kind::Int32),
    ("b", Kind::UInt8),
    ("x", Kind::Float64),
    ("group/f", Kind::Float32),
    ("record.mass", Kind::Int64),
];

fn typed(text: &str) -> Result<Evaluator, Refused> {
    let several = Parameter::Several(vec![Scalar::weak_integer(1), Scalar::weak_float(2.5)]);
    let parameters = [("p", Scalar::weak_integer(7).into()), ("list", several)];
    Expression::parse(text)?.typed(&COLUMNS, 2, &parameters).map(|typed| typed.evaluator())
}

/// Values of an expression over four elements, the second row of an array.
fn values(text: &str) -> BlockValues {
    fn bytes<const N: usize, T: Copy>(values: [T; 4], of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| of(value)).collect()
    }
    let a = bytes([-3, 0, 7, i32::MIN], i32::to_ne_bytes);
    let b = bytes([0, 1, 200, 255], u8::to_ne_bytes);
    let x = bytes([f64::NAN, -0.0, 2.5, 1e300], f64::to_ne_bytes);
    let f = bytes([0.1, 0.25, -1.5, f32::INFINITY], f32::to_ne_bytes);
    let mass = bytes([1, 2, 3, 4], i64::to_ne_bytes);
    let data = [a, b, x, f, mass];
    let columns: Vec<Column<'_>> =
        data.iter().zip(COLUMNS).map(|(bytes, (_, kind))| Column::dense(bytes, kind)).collect();
    let place = BoxPlace { origin: &[10, 20], shape: &[2, 4], first: 4 };
    typed(text).unwrap().evaluate(&columns, place, 4).unwrap().clone()
}

fn truths(text: &str) -> Vec<bool> {
    values(text).truths().unwrap_or_else(|| panic!("{text} gives truth values")).to_vec()
}

#[test]
fn signs_bind_as_in_python() {
    assert_eq!(values("2 + 3 * 4 ** 2"), values("50"));
    assert_eq!(values("-2 ** 2 + a * 0"), values("-4 + a * 0"));
    assert_eq!(values("2 ** 3 ** 2 + a * 0"), values("512 + a * 0"));
    assert_eq!(truths("not a > 0 or b == 1"), truths("(~(a > 0)) | (b == 1)"));
    assert_eq!(truths("0 < b < 255"), [false, true, true, false]);
    assert_eq!(truths("a not in [0, 7]"), [true, false, false, true]);
    assert_eq!(truths("x in list"), [false, false, true, false]);
    assert_eq!(truths("(a % p == 0) & True"), [false, true, true, false]);
}

#[test]
fn names_are_found() {
    assert_eq!(truths("\"group/f\" > 0.2"), [false, true, false, true]);
    assert_eq!(truths("record.mass == 2"), [false, true, false, false]);
    assert_eq!(truths("record['mass'] == 2"), truths("`record`.mass == 2"));
    assert_eq!(values("i0"), BlockValues::Signed(vec![11; 4]));
    assert_eq!(values("i1"), BlockValues::Signed(vec![20, 21, 22, 23]));
}

#[test]
fn plain_numbers_take_the_type_of_what_they_meet() {
    // 0.1 as a float of 32 bits.
    assert_eq!(truths("\"group/f\" == 0.1"), [true, false, false, false]);
    assert_eq!(values("b + 1"), BlockValues::Unsigned(vec![1, 2, 201, 0]));
    assert_eq!(truths("b < 300"), [true; 4]);
    assert_eq!(truths("b > -1"), [true; 4]);
    assert_eq!(values("abs(a)"), BlockValues::Signed(vec![3, 0, 7, i32::MIN.into()]));
    assert_eq!(typed("b + 1000").err().unwrap().what, "the integer 1000 does not fit into uint8");
    assert_eq!(typed("b / 2").unwrap().kind(), Kind::Float64);
}

/// What is said of a text that is refused, and the part of it that is marked.
fn refused(text: &str) -> (String, String) {
    let refused = typed(text).err().unwrap_or_else(|| panic!("'{text}' is refused"));
    assert!(refused.to_string().len() < 1000, "{refused}");
    (refused.what.clone(), text.get(refused.at()).unwrap_or_default().to_string())
}

#[test]
fn what_is_no_expression_is_refused_where_it_is_wrong() {
    let cases = [
        ("", "a number, a name or '(' is missing here", ""),
        ("a >", "a number, a name or '(' is missing here", ""),
        ("a = 3", "'=' assigns, which expressions do not", "="),
        ("a > 3)", "')' stands where an operator, or the end of the expression must be", ")"),
        ("(a > 3", "')' is missing here", ""),
        ("rho > 3", "'rho' is no array, no parameter and no position", "rho"),
        ("i2 > 3", "'i2' is a position in dimension 2, but the arrays have 2", "i2"),
        ("x & 3", "'&' is not for float64", "x & 3"),
        ("open(a)", "'open' is no function of expressions", "open"),
        ("__import__('os')", "'__import__' is no function of expressions", "__import__"),
        ("min(a)", "'min' takes at least 2 arguments, and is given 1", "min(a)"),
        ("1 // 0 > a", "division by zero", "1 // 0"),
        ("a > 1e", "'1e' is no number", "1e"),
        ("a > 0x", "'0x' is no number", "0x"),
        ("a § 3", "'§' means nothing in an expression", "§"),
        ("a > 'x", "this ' has no partner", "'"),
        ("not x", "float64 is no truth value", "not x"),
        ("a.b.c > 1", "'a.b.c' is no array, no parameter and no position", "a.b.c"),
        ("list > 1", "'list' is a list, which can stand behind `in` only", "list"),
        ("9 ** 9999999 > a", "the integer becomes too large", "9 ** 9999999"),
    ];
    for (text, what, place) in cases {
        assert_eq!(refused(text), (what.to_string(), place.to_string()), "{text}");
    }
}

#[test]
fn hostile_texts_are_refused() {
    for (open, close) in
        [("(", ")"), ("-", ""), ("not ", ""), ("abs(", ")"), ("a + (", ")"), ("a ** ", ""), ("a in [", "]")]
    {
        for count in [10, 199, 250, 3000] {
            let text = format!("{}a{}", open.repeat(count), close.repeat(count));
            let _ = typed(&text);
        }
    }
    let [sum, comparisons] = [" + ", " < "].map(|sign| vec!["a"; 1000].join(sign));
    for chain in [sum, comparisons, format!("max({})", vec!["a"; 1000].join(","))] {
        assert!(refused(&chain).0.starts_with("the expression nests deeper than"));
    }
    assert!(refused(&"a".repeat(1 << 20)).0.contains("at most 16384 B are parsed"));
    // Values between two comparisons are computed twice, also those in them.
    let doubled = (0..40).fold("a".to_string(), |inner, _| format!("(0 < ({inner} + 0) < 9)"));
    assert!(refused(&doubled).0.contains("operations"), "{}", refused(&doubled).0);
}

/// Random texts, made of what expressions are made of, and of what they are not: all are either refused or evaluated.
#[test]
fn any_text_is_refused_or_has_values() {
    let parts = [
        "a",
        "b",
        "x",
        "\"group/f\"",
        "record",
        ".mass",
        "i0",
        "p",
        "list",
        "1",
        "0",
        "-1",
        "2.5",
        "1e400",
        "0xff",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "**",
        "<",
        "<=",
        "==",
        "!=",
        "&",
        "|",
        "^",
        "~",
        "and",
        "or",
        "not",
        "in",
        "(",
        ")",
        "[",
        "]",
        ",",
        ".",
        "abs(",
        "min(",
        "max(",
        "sqrt(",
        "isnan(",
        "True",
        "'",
        "`",
        "ψ",
        "\u{0}",
        "\u{202e}",
        "=",
        "$",
        ";",
        "0b1",
    ];
    let mut rng = fastrand::Rng::with_seed(64);
    let mut evaluated = 0;
    for _ in 0..200_000 {
        let text: Vec<&str> = (0..rng.usize(1..12)).map(|_| parts[rng.usize(..parts.len())]).collect();
        let text = text.join(if rng.bool() { " " } else { "" });
        match typed(&text) {
            Ok(mut evaluator) => {
                let columns: Vec<Column<'_>> = COLUMNS.iter().map(|&(_, kind)| Column::dense(&[0; 24], kind)).collect();
                let place = BoxPlace { origin: &[0, 0], shape: &[1, 3], first: 0 };
                if let Ok(lane) = evaluator.evaluate(&columns, place, 3) {
                    assert_eq!(lane.len(), 3, "{text}");
                    evaluated += 1;
                }
            }
            Err(refused) => {
                let at = refused.at();
                assert!(text.is_char_boundary(at.start) && text.is_char_boundary(at.end), "{text:?} {at:?}");
                assert!(!refused.to_string().is_empty());
            }
        }
    }
    assert!(evaluated > 2000, "{evaluated} have values");
}
