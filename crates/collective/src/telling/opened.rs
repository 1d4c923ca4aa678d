//! What rank 0 tells when a transfer opens: how it is carried out, where objects lie, what is written besides, and how arrays
//! are stored.

use super::{hear_stored, tell_stored};
use crate::Decode;
use crate::alike::Group;
use crate::decision::Decision;
use crate::repeats::{Earlier, NewPlace};
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

/// All of it, for other ranks. In front stands the number of an earlier call that comes again: here none, 0.
pub(crate) fn tell(decision: &Decision, roots: &[Root], beside: &[Beside], groups: &[Group]) -> Vec<u8> {
    let w = Writer::default().number(0).bytes(&decision.to_bytes()).bytes(&Root::encode(roots));
    let w = tell_beside(w, beside);
    groups.iter().fold(w, |w, Group { arrays, first }| tell_stored(w.number(arrays.len() as u64), first)).0
}

/// That an earlier call comes again, in another place.
pub(crate) fn tell_again(earlier: &Earlier, place: &NewPlace, decision: &Decision, roots: &[Root]) -> Vec<u8> {
    let w = Writer::default().number(earlier.number).number(place.at).bytes(place.name.as_bytes());
    w.bytes(&decision.costs_to_bytes()).bytes(&Root::encode(roots)).0
}

/// What [`tell_again`] told.
pub(crate) struct Again<'a> {
    /// Number of the earlier call.
    pub(crate) number: u64,
    pub(crate) place: NewPlace,
    /// What it is expected to take.
    pub(crate) costs: &'a [u8],
    pub(crate) roots: Vec<Root>,
}

/// What [`tell_again`] told, if it was that.
pub(crate) fn hear_again(payload: &[u8]) -> Option<Again<'_>> {
    let mut r = Reader::new(payload);
    let number = r.number().filter(|&number| number > 0)?;
    let place = NewPlace { at: r.number()?, name: r.text()?.into() };
    let (costs, roots) = (r.bytes()?, Root::decode(r.bytes()?)?);
    Some(Again { number, place, costs, roots })
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
    r.number().filter(|&number| number == 0)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{ElementType, Kind, Stored};
    use hyperslab_plan::Parameters;

    fn told(roots: &[Root]) -> (Vec<u8>, Vec<Beside>) {
        let decision = Decision { parameters: Parameters::default(), predicted: [0.5; 5], later: 1.0, plan: 0 };
        let of = |root: u32, name: &str, bytes: &[u8]| Beside {
            object: Object { root, name: name.into() },
            bytes: bytes.into(),
        };
        let beside = vec![of(0, "a/x", b"1"), of(0, "b/x", b"1"), of(1, "c/x", b""), of(0, "d/x", b"1")];
        let first = Stored::in_file(&[4], ElementType::native(Kind::Int32), "f", 0);
        (tell(&decision, roots, &beside, &[Group { arrays: 0..3, first }]), beside)
    }

    #[test]
    fn what_is_told_is_heard() {
        let (payload, beside) = told(&[Root::new("/a"), Root::new("/b")]);
        let (opening, groups) = hear(&payload, |_| None, 3).unwrap();
        assert_eq!((&*opening.beside, opening.roots.len(), groups.len()), (&*beside, 2, 1));
        assert_eq!(groups[0].arrays, 0..3);
        assert!(hear(&payload, |_| None, 4).is_none(), "one array too few");
    }

    #[test]
    fn what_makes_no_sense_is_not_heard() {
        assert!(hear(&told(&[Root::new("/a")]).0, |_| None, 3).is_none(), "an object below a root that is not there");
        let payload = told(&[Root::new("/a"), Root::new("/b")]).0;
        for length in 0..payload.len() {
            assert!(hear(&payload[..length], |_| None, 3).is_none(), "{length} of {} B", payload.len());
        }
    }
}
