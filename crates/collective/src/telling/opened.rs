//! What rank 0 tells when a transfer opens: how it is carried out, where objects lie, what is written besides, and how arrays
//! are stored.

use super::{hear_stored, tell_stored};
use crate::Decode;
use crate::alike::Group;
use crate::decision::Decision;
use hyperslab_layout::Object;
use hyperslab_plan::Beside;
use hyperslab_world::{Reader, Root, Writer};
use std::sync::Arc;

/// What of it ranks without arguments need, too.
pub(crate) struct Announced {
    pub(crate) decision: Decision,
    pub(crate) roots: Vec<Root>,
    pub(crate) beside: Arc<[Beside]>,
}

/// All of it, for other ranks.
pub(crate) fn tell(decision: &Decision, roots: &[Root], beside: &[Beside], groups: &[Group]) -> Vec<u8> {
    let w = Writer::default().bytes(&decision.to_bytes()).bytes(&Root::encode(roots));
    let w = tell_beside(w, beside);
    groups.iter().fold(w, |w, Group { arrays, first }| tell_stored(w.number(arrays.len() as u64), first)).0
}

/// What [`tell`] told, of so many arrays.
pub(crate) fn hear(payload: &[u8], decode: Decode, arrays: usize) -> Option<(Announced, Vec<Group>)> {
    let mut r = Reader::new(payload);
    let opening = hear_opening(&mut r)?;
    let (mut groups, mut begin) = (Vec::new(), 0);
    while begin < arrays {
        let count = usize::try_from(r.number()?).ok().filter(|&count| count > 0 && count <= arrays - begin)?;
        let first = hear_stored(&mut r, decode).filter(|first| (first.root as usize) < opening.roots.len())?;
        groups.push(Group { arrays: begin..begin + count, first });
        begin += count;
    }
    Some((opening, groups))
}

/// The beginning of what [`tell`] told.
pub(crate) fn hear_opening(r: &mut Reader) -> Option<Announced> {
    let (decision, roots) = (Decision::from_bytes(r.bytes()?)?, Root::decode(r.bytes()?)?);
    let beside = hear_beside(r).filter(|beside| beside.iter().all(|one| (one.object.root as usize) < roots.len()))?;
    Some(Announced { decision, roots, beside: beside.into() })
}

/// Those that hold the same, as metadata of arrays that are alike do, have it told once.
fn tell_beside(w: Writer, beside: &[Beside]) -> Writer {
    let runs = || beside.chunk_by(|a, b| a.bytes == b.bytes);
    runs().fold(w.number(runs().count() as u64), |w, run| {
        let w = w.bytes(&run[0].bytes).number(run.len() as u64);
        run.iter().fold(w, |w, one| w.number(one.object.root.into()).bytes(one.object.name.as_bytes()))
    })
}

fn hear_beside(r: &mut Reader) -> Option<Vec<Beside>> {
    let mut beside = Vec::new();
    for _ in 0..r.number()? {
        let bytes: Arc<[u8]> = r.bytes()?.into();
        for _ in 0..r.number()? {
            let (root, name) = (u32::try_from(r.number()?).ok()?, r.text()?);
            beside.push(Beside { object: Object { root, name: name.into() }, bytes: bytes.clone() });
        }
    }
    Some(beside)
}
