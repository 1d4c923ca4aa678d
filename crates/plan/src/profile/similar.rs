//! What somebody may have meant.

/// The one of `known` that is closest to `word`, if it is at most `edits_max` edits away and shares half of it.
pub(super) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, edits_max: usize) -> Option<&'a str> {
    let limit = edits_max.min(word.chars().count() / 2);
    let near = known.into_iter().map(|other| (distance(word, other), other));
    near.filter(|(edits, _)| *edits <= limit).min_by_key(|(edits, _)| *edits).map(|(_, other)| other)
}

/// Letters to insert, remove or replace that make `b` of `a` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        for (a, b, edits) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("latency", "latenzy", 1)] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_what_is_close_is_meant() {
        let known = ["network.latency", "network.link_rate"];
        assert_eq!(closest("network.latenzy", known, 1), Some("network.latency"));
        assert_eq!(closest("nodes.cores_per_node", known, 3), None);
        assert_eq!(closest("", known, 3), None);
    }
}
