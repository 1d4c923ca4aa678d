//! What metadata call texts of variable length.

use hyperslab_layout::{Kind, Opaque};

/// The codec in metadata, and the filter of v2.
pub(super) const CODEC: &str = "vlen-utf8";

/// The data type in metadata.
pub(super) const DATA_TYPE: &str = "string";

/// Such elements in memory: as many bytes as say where a text lies.
pub(super) fn kind() -> Kind {
    Kind::Opaque(Opaque::from_code("O16").expect("a code of a type"))
}

/// Whether elements are such texts, or such in slots, as they are written.
pub(super) fn is_texts(kind: Kind) -> bool {
    matches!(kind, Kind::Opaque(opaque) if opaque.is_of_any_length())
}
