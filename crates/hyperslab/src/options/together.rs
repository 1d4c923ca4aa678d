//! Several writes as one call, each with its own options.

use super::{Sections, WriteOptions};
use crate::error::Error;
use hyperslab_layout::{Casting, ElementType};
use hyperslab_plan::Strategy;

impl WriteOptions {
    /// Several writes as one call: each of so many arrays, and with its own options.
    ///
    /// # Errors
    /// When one says something else of the call as a whole: whether arrays may be replaced, which changes of the element type are
    /// allowed, by which strategy, or new arrays and sections of existing ones.
    pub fn together(writes: Vec<(usize, WriteOptions)>) -> Result<WriteOptions, Error> {
        let Some((_, first)) = writes.first() else { return Ok(WriteOptions::default()) };
        let (overwrite, casting, strategy, whole) = first.of_call();
        if let Some((_, other)) = writes.iter().find(|(_, one)| one.of_call() != first.of_call()) {
            let (what, hint) = match other.of_call() {
                (other, ..) if other != overwrite => ("overwrite", "give it to all writes, or make two batches"),
                (_, other, ..) if other != casting => ("casting", "give the same to all writes, or make two batches"),
                (_, _, other, _) if other != strategy => ("strategy", "give the same to all, or make two batches"),
                _ => ("sections", "write new arrays in one batch, and sections of existing ones in another"),
            };
            return Err(Error::invalid(format!("the writes of a batch differ in {what}")).with_hint(hint));
        }
        let mut sections = Vec::new();
        let mut apart = Vec::new();
        for (arrays, one) in writes {
            one.check_each(arrays)?;
            one.section.check(arrays)?;
            sections.extend((0..arrays).filter_map(|number| one.section.of(number).cloned()));
            apart.extend((0..arrays).map(|number| WriteOptions {
                section: Sections::Whole,
                dimension_names: one.dimension_names_of(number).map(<[_]>::to_vec),
                attributes: one.attributes_of(number).clone(),
                each: Vec::new(),
                ..one.clone()
            }));
        }
        let section = if whole { Sections::Whole } else { Sections::Each(sections) };
        let apart = if whole { apart } else { Vec::new() };
        Ok(WriteOptions { section, apart, overwrite, casting, strategy, ..WriteOptions::default() })
    }

    /// What several writes that are one call must have alike.
    fn of_call(&self) -> (bool, Casting, Option<Strategy>, bool) {
        (self.overwrite, self.casting, self.strategy, self.section.is_whole())
    }

    /// Whether both could be one call, [together](WriteOptions::together).
    pub(crate) fn goes_with(&self, other: &WriteOptions) -> bool {
        self.of_call() == other.of_call() && self.apart.is_empty() && other.apart.is_empty()
    }

    /// What holds for one of the arrays.
    pub(crate) fn of(&self, number: usize) -> &WriteOptions {
        self.apart.get(number).unwrap_or(self)
    }

    /// Whether both say the same of how an array is cut and encoded.
    pub(crate) fn shaped_as(&self, other: &WriteOptions) -> bool {
        let of = |one: &WriteOptions| (one.chunks.clone(), one.shards.clone(), one.typical.clone());
        std::ptr::eq(self, other)
            || of(self) == of(other) && (self.element, &self.codecs) == (other.element, &other.codecs)
    }

    /// The same, where elements are stored otherwise.
    pub(crate) fn but_element(&self, of: impl Fn(Option<ElementType>) -> Option<ElementType> + Copy) -> WriteOptions {
        self.but(|one| one.element = of(one.element))
    }

    /// The same options of each of the arrays, changed so.
    pub(super) fn but(&self, change: impl Fn(&mut WriteOptions) + Copy) -> WriteOptions {
        let mut changed = self.clone();
        changed.apart.iter_mut().for_each(change);
        change(&mut changed);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_format::attribute::Attributes;
    use hyperslab_layout::Section;

    #[test]
    fn each_array_of_a_batch_has_the_options_of_its_write() {
        let named = |name: &str| Some(vec![Some(name.to_string())]);
        let mut first = WriteOptions::default().chunks(vec![4]).overwrite(true);
        first.dimension_names = named("x");
        let attributes: Attributes = [("unit", "m")].into_iter().collect();
        let second = WriteOptions::default().attributes(attributes.clone()).overwrite(true);
        let all = WriteOptions::together(vec![(2, first), (1, second)]).unwrap();
        assert_eq!([0, 1, 2].map(|number| all.of(number).chunks.clone()), [Some(vec![4]), Some(vec![4]), None]);
        assert_eq!(all.dimension_names_of(1).map(<[_]>::to_vec), named("x"));
        assert_eq!((all.dimension_names_of(2), all.attributes_of(2)), (None, &attributes));
        assert!(all.overwrite && all.check_each(3).is_ok() && all.check_each(2).is_err());
        assert!(all.check_for_zarr(3).is_ok() && all.check_for_file().is_err());
    }

    #[test]
    fn sections_of_a_batch_are_those_of_its_writes_and_never_beside_new_arrays() {
        let part = |start: u64| WriteOptions::default().section(Section::whole(&[start + 1]));
        let all = WriteOptions::together(vec![(2, part(3)), (1, part(5))]).unwrap();
        assert_eq!(all.section.of(1), Some(&Section::whole(&[4])));
        assert_eq!(all.section.of(2), Some(&Section::whole(&[6])));
        let mixed = WriteOptions::together(vec![(1, part(3)), (1, WriteOptions::default())]).unwrap_err();
        assert_eq!(mixed.message(), "the writes of a batch differ in sections");
        assert!(WriteOptions::together(Vec::new()).unwrap().section.is_whole());
    }
}
