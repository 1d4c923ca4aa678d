//! Arrays in groups of groups, by their paths: what is new is written into its own group, which is made with those above it.

use super::consolidating::drop_consolidated;
use super::editing::stored_attributes;
use super::nodes::{ROOT, check_path, kind_of};
use super::{METADATA_KEY, Store};
use crate::array_write::ArrayWrite;
use crate::error::Error;
use crate::said::{self, quoted, truth};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_format::zarr::{GroupMetadata, Map, NodeType};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};

impl Store {
    /// Opens a group by its path below this one; it, with these attributes, and those between are made where there is none.
    /// Collective. Attributes of one that is there are changed by what is given.
    ///
    /// # Errors
    /// The same on all ranks, when there is an array of such a name, or a group that may not be there, or the store cannot be
    /// written.
    pub fn make_group(&self, path: &str, attributes: Attributes, may_exist: bool) -> Result<Store, Error> {
        let what = format!("make group '{path}' in '{}'", self.path().display());
        let stored = stored_attributes(&attributes);
        let fit = stored.as_ref().map(drop).map_err(Clone::clone);
        let fault = self.check_writable().and_then(|()| check_path(path)).and(fit).err();
        let fault = fault.map(|fault| fault.context(&what));
        let fields = vec![
            ("group to be made".to_string(), quoted(path)),
            ("whether it may exist".into(), truth(may_exist).into()),
        ];
        let fields = [fields, said::attributes(&attributes, " of the group")].concat();
        let question = Question::opening(what.clone(), fields, fault);
        let (attempts, names, base) = (self.attempts.clone(), self.directory(), self.base());
        let (ancestors, sync) = (self.ancestors(&self.shown("")), self.options.durable);
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let groups: Vec<String> = ends.map(|end| format!("{base}{}", &path[..end])).collect();
        let (last, of_last) = (groups.last().cloned().unwrap_or_default(), stored.unwrap_or_default());
        let told = self.comm.agree_on(question, self.attempts.at_once(groups.len()), move || {
            let mut made = false;
            let is_there = |at: &str| match kind_of(&*names, at)? {
                Some(NodeType::Array) => {
                    let text = format!("{what}: '{}' is an array", names.full(at));
                    Err(Fault::new(FaultKind::Exists, text).hint("choose another name"))
                }
                kind => Ok(kind.is_some()),
            };
            for at in groups {
                if is_there(&at)? {
                    if at == last && !may_exist {
                        let text = format!("{what}: the group is there already");
                        return Err(
                            Fault::new(FaultKind::Exists, text).hint("open it with group(), or give exist_ok=True")
                        );
                    }
                    continue;
                }
                let attributes = if at == last { of_last.clone() } else { Map::new() };
                let metadata = GroupMetadata { attributes, ..GroupMetadata::default() }.to_json();
                drop_consolidated(&attempts, &ancestors)?;
                if sync {
                    names.make_durable(&at)?
                } else {
                    names.make(&at)?
                }
                // Somebody else may have made something of the name meanwhile.
                match names.write_new(&format!("{at}/{METADATA_KEY}"), &metadata, sync)? {
                    true => made = at == last,
                    false => drop(is_there(&at)?),
                }
            }
            Ok(vec![u8::from(made)])
        })?;
        let first = path.split('/').next().unwrap_or(path);
        self.listing.show([first], NodeType::Group);
        if told != [1] && !attributes.is_empty() {
            self.edit_attributes(path, &AttributeEdit::setting(attributes))?;
        }
        self.group(path)
    }

    /// Where arrays are named by paths: the group that they lie in, and what they are called there. `new` makes the group.
    pub(super) fn inside(&self, asks: &[ArrayWrite], new: bool) -> Result<Option<(Store, Vec<ArrayWrite>)>, Error> {
        if asks.iter().any(|ask| check_path(&ask.name).is_err()) {
            // Whoever writes says so.
            return Ok(None);
        }
        let above = |name: &str| name.rsplit_once('/').filter(|_| name != ROOT).map(|(path, _)| path.to_string());
        let mut each = asks.iter().map(|ask| above(&ask.name));
        let Some(first) = each.clone().flatten().next() else { return Ok(None) };
        if each.any(|path| path.as_ref() != Some(&first)) {
            let text = "arrays that are written by one call lie in several groups";
            let fault =
                Fault::new(FaultKind::Unsupported, text).hint("write those of each group by a call of their own");
            return Err(self.comm.attend_with(&format!("write to '{}'", self.path().display()), fault));
        }
        let group = if new { self.make_group(&first, Attributes::new(), true)? } else { self.group(&first)? };
        let mut named = asks.to_vec();
        named.iter_mut().for_each(|one| one.name = one.name[first.len() + 1..].to_string());
        Ok(Some((group, named)))
    }
}
