//! Structs of the header, and what the library makes of them.

use crate::foreign::{
    StructOfC, element, given, maybe_numbers, maybe_sized, maybe_text, nth, number_of, numbers, several, sized, text,
    texts,
};
use crate::handles::{AttributesHandle, DistHandle};
use hyperslab::binding::{codecs_named, exchange_named, fill_to_json, limit_of, strategy_named};
use hyperslab::{
    ArrayWrite, Attributes, Casting, Contents, ElementType, Error, FileArray, FileLocking, Format, LocalArray,
    OpenOptions, Order, Ownership, Preference, ReadOptions, Section, Sections, ShardShape, Triplet, WriteOptions,
};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Most dimensions of an array in structs of the header.
pub(crate) const NDIM_MAX: usize = 32;

/// Declares structs of the header that begin with their size.
macro_rules! structs_of_c {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name {
            size: usize,
            $(pub(crate) $field: $type,)*
        }

        // SAFETY: it has numbers and pointers, of which any bytes are a value, and its size comes first.
        unsafe impl StructOfC for $name {}
    )*};
}

structs_of_c! {
    /// `hyperslab_memory`.
    CMemory {
        data: *mut c_void,
        kind: i32,
        ndim: i32,
        shape: *const i64,
        strides: *const i64,
        offsets: *const i64,
        code: *const c_char,
    }

    /// `hyperslab_section`.
    CSection {
        ndim: i32,
        reserved: i32,
        start: *const i64,
        count: *const i64,
        step: *const i64,
        block: *const i64,
    }

    /// `hyperslab_item`.
    CItem {
        name: *const c_char,
        memory: *const CMemory,
        dist: *const DistHandle,
        section: *const CSection,
        options: *const CWriteOptions,
    }

    /// `hyperslab_write_options`.
    CWriteOptions {
        chunks: *const i64,
        shards: *const i64,
        sharded: i32,
        kind: i32,
        code: *const c_char,
        codecs: *const c_char,
        maxshape: *const i64,
        fill_value: *const c_void,
        dimension_names: *const *const c_char,
        attributes: *const AttributesHandle,
        overwrite: i32,
        any_casting: i32,
        strategy: *const c_char,
    }

    /// `hyperslab_open_options`.
    COpenOptions {
        format: *const c_char,
        durable: i32,
        servers: i32,
        arrival_seconds: f64,
        progress_seconds: f64,
        storage_seconds: f64,
        buffer_bytes: i64,
        subchunk_bytes: i64,
        strategy: *const c_char,
        exchange: *const c_char,
        locking: *const c_char,
        attributes: *const AttributesHandle,
        unlimited_count: i64,
        unlimited: *const *const c_char,
        column_major: i32,
        reserved: i32,
        header: *const u8,
        header_bytes: i64,
        array_count: i64,
        arrays: *const CRawArray,
    }

    /// `hyperslab_array_info`.
    CArrayInfo {
        kind: i32,
        ndim: i32,
        item_bytes: i64,
        shape: [i64; NDIM_MAX],
        chunks: [i64; NDIM_MAX],
    }
}

/// `hyperslab_raw_array`.
#[repr(C)]
pub struct CRawArray {
    name: *const c_char,
    code: *const c_char,
    kind: i32,
    ndim: i32,
    shape: *const i64,
}

/// Whether something was chosen: yes, no, or nothing.
pub(crate) fn chosen(what: &str, choice: i32) -> Result<Option<bool>, Error> {
    match choice {
        0 => Ok(None),
        1 => Ok(Some(true)),
        2 => Ok(Some(false)),
        other => Err(Error::invalid(format!("{what} must be HYPERSLAB_YES, HYPERSLAB_NO or 0, got {other}"))),
    }
}

/// A number of 1 or more, where one is given.
fn some<T: TryFrom<i64>>(what: &str, number: i64) -> Result<Option<T>, Error> {
    let wrong = || Error::invalid(format!("{what} must be 1 or more, or 0 for what is chosen, got {number}"));
    let fits = || T::try_from(number).ok().filter(|_| number > 0).ok_or_else(wrong);
    if number == 0 { Ok(None) } else { fits().map(Some) }
}

/// Attributes, or none.
///
/// # Safety
/// The pointer is null, or that of a handle.
pub(crate) unsafe fn attributes(pointer: *const AttributesHandle) -> Attributes {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.map(|handle| handle.0.clone()).unwrap_or_default()
}

/// How something is opened.
///
/// # Safety
/// Pointers are what the header asks for.
pub(crate) unsafe fn opening(pointer: *const COpenOptions) -> Result<OpenOptions, Error> {
    // SAFETY: as the caller says, here and below.
    let raw = unsafe { maybe_sized("hyperslab_open_options", pointer) }?;
    let mut options = OpenOptions::default();
    options.durable = chosen("durable", raw.durable)?.unwrap_or(true);
    for (name, seconds, limit) in [
        ("arrival_seconds", raw.arrival_seconds, &mut options.arrival),
        ("progress_seconds", raw.progress_seconds, &mut options.progress),
        ("storage_seconds", raw.storage_seconds, &mut options.storage),
    ] {
        if seconds != 0.0 {
            *limit = limit_of(name, seconds)?;
        }
    }
    // SAFETY: as above.
    let [format, strategy, exchange, locking] = unsafe {
        [
            maybe_text("format", raw.format)?,
            maybe_text("strategy", raw.strategy)?,
            maybe_text("exchange", raw.exchange)?,
            maybe_text("locking", raw.locking)?,
        ]
    };
    options.format = format.map(Format::named).transpose()?;
    options.locking = locking.map(FileLocking::named).transpose()?;
    options.preference = Preference {
        strategy: strategy.map(strategy_named).transpose()?,
        exchange: exchange.map(exchange_named).transpose()?,
        servers: some("servers", raw.servers.into())?,
        subchunk_bytes: some("subchunk_bytes", raw.subchunk_bytes)?,
        buffer_bytes_max: some("buffer_bytes", raw.buffer_bytes)?,
        ..Preference::default()
    };
    // SAFETY: as above.
    unsafe {
        options.attributes = attributes(raw.attributes);
        let unlimited = texts("the unlimited dimensions", raw.unlimited, raw.unlimited_count)?;
        options.unlimited = unlimited.into_iter().map(String::from).collect();
        options.contents = contents(&raw)?;
    }
    Ok(options)
}

/// What is said of a raw file, if anything is.
///
/// # Safety
/// Pointers are what the header asks for.
unsafe fn contents(raw: &COpenOptions) -> Result<Option<Contents>, Error> {
    let column_major = chosen("column_major", raw.column_major)?;
    if column_major.is_none() && raw.header_bytes == 0 && raw.array_count == 0 {
        return Ok(None);
    }
    let header_bytes = u64::try_from(raw.header_bytes)
        .map_err(|_| Error::invalid(format!("header_bytes must be 0 or more, got {}", raw.header_bytes)))?;
    // SAFETY: as the caller says; of a file that exists there is no header, but its length.
    let (header, arrays) = unsafe {
        let header = if raw.header.is_null() { &[] } else { several("the header", raw.header, raw.header_bytes)? };
        (header.to_vec(), several("arrays of a raw file", raw.arrays, raw.array_count)?)
    };
    let array = |array: &CRawArray| {
        // SAFETY: as the caller says.
        let (name, shape, element) = unsafe {
            let shape = numbers("the shape of an array of a raw file", array.shape, array.ndim.into())?;
            (text("the name of an array", array.name)?, shape, element(array.kind, array.code)?)
        };
        Ok(FileArray { name: name.into(), shape, element })
    };
    let order = if column_major == Some(true) { Order::ColumnMajor } else { Order::RowMajor };
    let arrays = arrays.iter().map(array).collect::<Result<_, Error>>()?;
    Ok(Some(Contents { order, header, header_bytes, arrays }))
}

/// A section.
///
/// # Safety
/// Pointers are what the header asks for.
pub(crate) unsafe fn section(pointer: *const CSection) -> Result<Option<Section>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says.
    unsafe {
        let raw = sized("hyperslab_section", pointer)?;
        let ndim =
            usize::try_from(raw.ndim).map_err(|_| Error::invalid(format!("a section has {} dimensions", raw.ndim)))?;
        let all = |what: &str, pointer| numbers(&format!("the {what} of a section"), pointer, ndim as i64);
        let (start, count) = (all("start", raw.start)?, all("count", raw.count)?);
        let block = maybe_numbers("the block of a section", raw.block, ndim)?.unwrap_or_else(|| vec![1; ndim]);
        let step = maybe_numbers("the step of a section", raw.step, ndim)?.unwrap_or_else(|| block.clone());
        let triplet = |dim: usize| match (step[dim], block[dim]) {
            // Neighbours are one block.
            (1, 1) => Triplet {
                start: start[dim],
                stride: count[dim].max(1),
                count: u64::from(count[dim] > 0),
                block: count[dim].max(1),
            },
            (stride, block) => Triplet { start: start[dim], stride, count: count[dim], block },
        };
        Ok(Some(Section { dims: (0..ndim).map(triplet).collect() }))
    }
}

impl CMemory {
    /// All of a memory of this type, shape and strides.
    pub(crate) fn of(data: *mut c_void, kind: i32, ndim: i32, (shape, strides): (*const i64, *const i64)) -> CMemory {
        let (offsets, code) = (std::ptr::null(), std::ptr::null());
        CMemory { size: size_of::<CMemory>(), data, kind, ndim, shape, strides, offsets, code }
    }
}

impl CItem {
    /// Of the arguments of a call that moves one array.
    pub(crate) fn new(
        name: *const c_char,
        memory: *const CMemory,
        dist: *const DistHandle,
        section: *const CSection,
        options: *const CWriteOptions,
    ) -> CItem {
        CItem { size: size_of::<CItem>(), name, memory, dist, section, options }
    }
}

/// One array of a call, as this rank has it.
pub(crate) struct ForeignItem {
    pub(crate) name: String,
    pub(crate) locals: Vec<LocalArray>,
    pub(crate) held: Option<Arc<Ownership>>,
    pub(crate) section: Option<Section>,
    /// The type of what it is in memory, also on ranks that hold nothing of it.
    pub(crate) element: Option<ElementType>,
    options: *const CWriteOptions,
}

impl ForeignItem {
    /// Of an item.
    ///
    /// # Safety
    /// Pointers are what the header asks for, and memory stays until the call that uses it is over.
    pub(crate) unsafe fn of(item: &CItem, rank: u32) -> Result<ForeignItem, Error> {
        // SAFETY: as the caller says, here and below.
        let (name, dist, section) =
            unsafe { (text("the name of an array", item.name)?, item.dist.as_ref(), section(item.section)?) };
        let held = dist.map(|dist| dist.held.clone());
        let local = |number: usize, part: Option<&[u64]>| {
            // SAFETY: as above.
            let memory = unsafe { nth("hyperslab_memory", item.memory, number)? };
            // SAFETY: as above.
            unsafe { memory.local(part) }
        };
        let locals = match &held {
            None => vec![local(0, None)?],
            Some(held) => {
                let shapes = held.local_shapes(rank);
                shapes.iter().enumerate().map(|(number, shape)| local(number, Some(shape))).collect::<Result<_, _>>()?
            }
        };
        // SAFETY: as above.
        let element = unsafe {
            let first = if item.memory.is_null() { None } else { Some(nth("hyperslab_memory", item.memory, 0)?) };
            first.map(|memory: CMemory| element(memory.kind, memory.code)).transpose()?
        };
        Ok(ForeignItem { name: name.into(), locals, held, section, element, options: item.options })
    }

    /// Of a new array, of which nothing is written yet.
    ///
    /// # Safety
    /// Pointers are what the header asks for.
    pub(crate) unsafe fn new_array(
        name: *const c_char,
        kind: i32,
        (ndim, shape): (i32, *const i64),
        options: *const CWriteOptions,
    ) -> Result<ForeignItem, Error> {
        // SAFETY: as the caller says.
        unsafe {
            let (name, code) =
                (text("the name of an array", name)?, maybe_sized("hyperslab_write_options", options)?.code);
            let shape = numbers("the shape of an array", shape, ndim.into())?;
            let element = Some(element(kind, code)?);
            let held = Some(Arc::new(Ownership::Boxes { shape, boxes: Vec::new() }));
            Ok(ForeignItem { name: name.into(), locals: Vec::new(), held, section: None, element, options })
        }
    }

    /// Names of several, as far as they can be told, for messages.
    ///
    /// # Safety
    /// As [`ForeignItem::of`].
    pub(crate) unsafe fn names(count: i64, items: *const CItem) -> String {
        let name = |number: i64| {
            // SAFETY: as the caller says.
            unsafe { text("the name of an array", nth("hyperslab_item", items, number as usize).ok()?.name).ok() }
        };
        let names: Option<Vec<String>> = (0..count).map(|number| Some(format!("'{}'", name(number)?))).collect();
        names.filter(|names| !names.is_empty()).map_or("arrays".into(), |names| names.join(", "))
    }

    /// Several.
    ///
    /// # Safety
    /// As [`ForeignItem::of`].
    pub(crate) unsafe fn each(count: i64, items: *const CItem, rank: u32) -> Result<Vec<ForeignItem>, Error> {
        let count = usize::try_from(count).map_err(|_| Error::invalid(format!("there cannot be {count} arrays")))?;
        // SAFETY: as the caller says.
        (0..count).map(|number| unsafe { ForeignItem::of(&nth("hyperslab_item", items, number)?, rank) }).collect()
    }

    /// Whether ranks may hold nothing of a new array, and then do not know its type: all of them say it.
    fn may_be_nowhere(&self) -> bool {
        self.section.is_none() && matches!(self.held.as_deref(), Some(Ownership::Boxes { .. }))
    }

    fn shape(&self) -> Vec<u64> {
        let of_memory = || self.locals.first().map(|local| local.shape.clone()).unwrap_or_default();
        self.held.as_ref().map_or_else(of_memory, |held| held.shape().to_vec())
    }

    /// How it is written.
    ///
    /// # Safety
    /// Pointers are what the header asks for.
    unsafe fn writing(&self) -> Result<WriteOptions, Error> {
        // SAFETY: as the caller says, here and below.
        let raw = unsafe { maybe_sized("hyperslab_write_options", self.options) }?;
        let mut options = WriteOptions::default();
        let ndim = self.shape().len();
        options.section = self.section.clone().map_or(Sections::Whole, Sections::Same);
        // SAFETY: as above.
        unsafe {
            options.chunks = maybe_numbers("chunks", raw.chunks, ndim)?;
            let shards = maybe_numbers("shards", raw.shards, ndim)?;
            options.shards = match (shards, chosen("sharded", raw.sharded)?) {
                (Some(shape), _) => ShardShape::Given(shape),
                (None, Some(false)) => ShardShape::Never,
                (None, _) => ShardShape::Chosen,
            };
            options.element = match raw.kind {
                0 => self.element.filter(|_| self.may_be_nowhere()),
                kind => Some(element(kind, raw.code)?),
            };
            options.codecs = maybe_text("codecs", raw.codecs)?.map(codecs_named).transpose()?;
            options.strategy = maybe_text("strategy", raw.strategy)?.map(strategy_named).transpose()?;
            options.attributes = attributes(raw.attributes);
            if !raw.maxshape.is_null() {
                options.maxshape = Some(
                    several("maxshape", raw.maxshape, ndim as i64)?
                        .iter()
                        .map(|&most| u64::try_from(most).ok())
                        .collect(),
                );
            }
            if !raw.dimension_names.is_null() {
                let names = several("dimension_names", raw.dimension_names, ndim as i64)?.iter();
                let name = |&name| Ok(maybe_text("a name of a dimension", name)?.map(String::from));
                options.dimension_names = Some(names.map(name).collect::<Result<_, Error>>()?);
            }
            if !raw.fill_value.is_null() {
                options.fill_value = Some(self.fill(raw.fill_value, options.element)?);
            }
        }
        options.overwrite = chosen("overwrite", raw.overwrite)?.unwrap_or(false);
        options.casting =
            if chosen("any_casting", raw.any_casting)? == Some(true) { Casting::Unsafe } else { Casting::SameKind };
        Ok(options)
    }

    /// What elements are that were never written.
    ///
    /// # Safety
    /// There is one of the type of the stored elements.
    unsafe fn fill(&self, pointer: *const c_void, stored: Option<ElementType>) -> Result<hyperslab::Value, Error> {
        let element = stored.or(self.element);
        let unknown =
            || Error::invalid("a fill value needs the type of the stored elements, which this rank does not say");
        let element = element.ok_or_else(unknown)?;
        // SAFETY: as the caller says.
        let bytes = unsafe { several("the fill value", pointer.cast::<u8>(), element.bytes() as i64) }?;
        fill_to_json(element.kind, bytes).ok_or_else(|| Error::invalid("the fill value is none of its type"))
    }

    /// It says nothing of the type of what is stored.
    pub(crate) fn forget_element(&mut self) {
        self.element = None;
    }

    /// As it is written.
    pub(crate) fn ask(self) -> ArrayWrite {
        ArrayWrite { name: self.name, arrays: self.locals, holding: self.held }
    }
}

/// What a call writes: each array, and how.
///
/// # Safety
/// Pointers are what the header asks for.
pub(crate) unsafe fn writes(given: Vec<ForeignItem>) -> Result<(Vec<ArrayWrite>, WriteOptions), Error> {
    // SAFETY: as the caller says.
    let mut each = given.iter().map(|one| Ok((1, unsafe { one.writing() }?))).collect::<Result<Vec<_>, Error>>()?;
    let options = if each.len() == 1 { each.swap_remove(0).1 } else { WriteOptions::together(each)? };
    Ok((given.into_iter().map(ForeignItem::ask).collect(), options))
}

/// What a call reads: names, and into what.
pub(crate) fn reads(given: Vec<ForeignItem>) -> (Vec<String>, ReadOptions) {
    let sections = match given.iter().any(|one| one.section.is_some()) {
        true => Sections::Each(
            given.iter().map(|one| one.section.clone().unwrap_or_else(|| Section::whole(&one.shape()))).collect(),
        ),
        false => Sections::Whole,
    };
    let mut options = ReadOptions::default().section(sections);
    options.holdings = given.iter().map(|one| one.held.clone()).collect();
    let (names, locals): (Vec<_>, Vec<_>) = given.into_iter().map(|one| (one.name, one.locals)).unzip();
    (names, options.into(locals.into_iter().flatten().collect()))
}

impl CArrayInfo {
    /// Fills the room of a caller, which may be that of an earlier header.
    ///
    /// # Safety
    /// The pointer points to as many bytes as the first of its fields says.
    pub(crate) unsafe fn fill(pointer: *mut CArrayInfo, info: &hyperslab::Info) -> Result<(), Error> {
        // SAFETY: as the caller says.
        let size = unsafe { *given("the room for what an array is", pointer.cast::<usize>())? };
        let mut filled = CArrayInfo {
            size,
            kind: number_of(info.element),
            ndim: info.shape.len() as i32,
            item_bytes: info.element.bytes() as i64,
            shape: [0; NDIM_MAX],
            chunks: [0; NDIM_MAX],
        };
        extents(&info.shape, &mut filled.shape)?;
        extents(&info.chunks, &mut filled.chunks)?;
        if size < std::mem::offset_of!(CArrayInfo, chunks) {
            return Err(
                Error::invalid("the room for what an array is has no size").with_hint("set info.size to sizeof info")
            );
        }
        // SAFETY: as the caller says, there are `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const filled).cast::<u8>(),
                pointer.cast(),
                size.min(size_of::<CArrayInfo>()),
            );
        }
        Ok(())
    }
}

/// Copies extents to where there is room for the most that there may be.
pub(crate) fn extents(shape: &[u64], room: &mut [i64]) -> Result<(), Error> {
    if shape.len() > room.len() {
        return Err(Error::unsupported(format!(
            "an array has {} dimensions, and there is room for {}",
            shape.len(),
            room.len()
        )));
    }
    room.iter_mut().zip(shape).for_each(|(room, extent)| *room = i64::try_from(*extent).unwrap_or(i64::MAX));
    Ok(())
}

#[cfg(test)]
#[cfg(target_pointer_width = "64")]
mod tests {
    use super::*;

    /// A program in C among the tests asserts the same of the header.
    #[test]
    fn structs_are_as_long_as_those_of_the_header() {
        assert_eq!([size_of::<CMemory>(), size_of::<CSection>(), size_of::<CItem>()], [56, 48, 48]);
        assert_eq!([size_of::<CWriteOptions>(), size_of::<COpenOptions>(), size_of::<CArrayInfo>()], [96, 152, 536]);
        assert_eq!(size_of::<CRawArray>(), 32);
    }
}
