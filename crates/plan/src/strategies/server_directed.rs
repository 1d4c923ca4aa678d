//! Server-directed I/O: servers decide what moves when, subchunk by subchunk, in the order of the file.
//!
//! Source: Panda (Chen et al. 1996, section 2; Seamons et al. 1995), the disk-directed I/O of Kotz (1997) at the
//! level of files. Servers take turns over groups of units; each handles its own in the order of the file.
//!
//! Departures from Panda: servers may be clients too; small chunks, also of different arrays, share a group and so a
//! message; and no request travels, because clients derive from the same closed forms what each server will want, in
//! which order.

use crate::strategy::Spec;

pub(super) const SPEC: Spec = Spec {
    name: "server-directed",
    about: "servers pull subchunks from clients, or push them, in the order of the file",
    complexity: 1,
    ..Spec::SERVED
};
