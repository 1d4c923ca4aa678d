//! Base64 with padding (RFC 4648, section 4), as Zarr's metadata have bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let shown = digit <= three.len();
            text.push(if shown { DIGITS[(word >> (18 - 6 * digit)) as usize % 64].into() } else { '=' });
        }
    }
    text
}

/// The bytes that such a text means; nothing where it is none, or has digits that mean nothing.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let digits = four.iter().position(|&digit| digit == b'=').unwrap_or(four.len());
        if four.len() < 4 || digits < 2 || four[digits..].iter().any(|&digit| digit != b'=') {
            return None;
        }
        let value = |digit: &u8| DIGITS.iter().position(|known| known == digit).map(|value| value as u32);
        let word = four[..digits].iter().try_fold(0, |word, digit| Some(word << 6 | value(digit)?))?;
        let word = word << (6 * (4 - digits));
        bytes.extend_from_slice(&word.to_be_bytes()[1..digits]);
        if word.to_be_bytes()[digits..].iter().any(|&rest| rest != 0) {
            return None;
        }
    }
    // Only the last digits may be missing.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!((encode(bytes.as_bytes()).as_str(), decode(text).as_deref()), (text, Some(bytes.as_bytes())));
        }
        for text in ["Zg=", "Zg", "Zh==", "Z===", "Zg==Zg==", "Zm9\u{e9}", "====", "Zm 9"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn all_bytes_come_back() {
        let mut random = fastrand::Rng::with_seed(3);
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
