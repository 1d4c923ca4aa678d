//! Texts in memory: what lies behind their values becomes zeros.

use hyperslab_layout::{Loop, Nest, TextParts};

use crate::bounds::{Side, check_memory};
use crate::memory::Memory;
use crate::nan::CopyError;
use crate::runs::for_each_run;

/// Makes zeros of what lies behind the values of texts, in every element of side `a` of a nest.
///
/// # Errors
/// [`CopyError::OutOfBounds`] when an element lies outside of the memory, [`CopyError::OutOfReach`] when that is not of this
/// host; nothing has been changed then.
pub fn tidy_texts(nest: &Nest, memory: &Memory, bytes: u64, texts: &TextParts) -> Result<(), CopyError> {
    check_memory(nest, Side::From, bytes, memory)?;
    let loops = nest.loops.iter().map(|l| Loop { b: l.a, ..*l }).collect();
    for_each_run(&Nest { a: nest.a, b: nest.a, loops }, bytes, |at, _, length| {
        if length == 0 {
            return;
        }
        let mut run = memory.to_vec(at as u64, length);
        let mut changed = false;
        for element in run.chunks_exact_mut(bytes as usize) {
            changed |= texts.tidy(element);
        }
        if changed {
            memory.write_bytes(at as u64, &run);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{TextFill, TextPart};

    #[test]
    fn only_the_elements_of_the_nest_are_changed() {
        let part = TextPart { at: 0, bytes: 3, end: TextFill::Zero, loops: Vec::new() };
        let parts = TextParts([part].into());
        let memory = Memory::from_vec(b"a\0xb\0xc\0xd\0xe".to_vec());
        let every_second = Nest { a: 9, b: 0, loops: vec![Loop { count: 2, a: -6, b: 0 }].into() };
        tidy_texts(&every_second, &memory, 3, &parts).unwrap();
        assert_eq!(memory.to_vec(0, 13), b"a\0xb\0\0c\0xd\0\0e");
        let beyond = Nest { a: 11, b: 0, loops: vec![].into() };
        assert!(tidy_texts(&beyond, &memory, 3, &parts).is_err());
    }
}
