//! The compressor that Blosc brings itself, of which only the reverse is needed: literals and matches, as FastLZ has them.

/// Fills `out` with what was compressed; nothing if that is damaged.
pub(super) fn decompress(packed: &[u8], out: &mut [u8]) -> Option<()> {
    let mut from = packed.iter().copied();
    let mut to = 0;
    let mut control = usize::from(from.next()? & 31);
    loop {
        if control < 32 {
            for _ in 0..=control {
                *out.get_mut(to)? = from.next()?;
                to += 1;
            }
        } else {
            let mut length = (control >> 5) - 1;
            if length == 6 {
                loop {
                    let more = from.next()?;
                    length += usize::from(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let (high, low) = (control & 31, usize::from(from.next()?));
            let distance = match (high, low) {
                // From here on, a distance has two more bytes.
                (31, 255) => 8191 + (usize::from(from.next()?) << 8) + usize::from(from.next()?),
                _ => (high << 8) + low,
            };
            to = copy_match(out, to, distance + 1, length + 3)?;
        }
        match from.next() {
            Some(next) => control = next.into(),
            None => return (to == out.len()).then_some(()),
        }
    }
}

/// Repeats what lies so far back; gives where it ends. A match may reach into itself.
fn copy_match(out: &mut [u8], to: usize, distance: usize, length: usize) -> Option<usize> {
    let begin = to.checked_sub(distance)?;
    let end = to.checked_add(length).filter(|&end| end <= out.len())?;
    match distance < length {
        true => (to..end).for_each(|at| out[at] = out[at - distance]),
        false => out.copy_within(begin..begin + length, to),
    }
    Some(end)
}
