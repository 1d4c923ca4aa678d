//! Reads in one copy: what the system's cache holds of a file is mapped, and copied from there to its places.
//!
//! A call that reads copies in the kernel, one run of memory after the other, and over gaps as well. Here the processor copies
//! what is wanted and nothing else, by the kernels that move data between arrays. Measured with 512 MiB on an AMD EPYC: long runs 53 ms
//! by calls of two processes, 26 ms so; runs of 512 B of eight, 123 and 55.

use super::at_hand;
use super::cached::is_cached;
use super::content::Source;
use super::lists::ListRead;
use super::lost_pages::LossWatch;
use super::windows::{Survey, copy_out, each_window};
use hyperslab_pack::Memory;
use hyperslab_world::Moves;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

/// Shortest reads that go this way: making a mapping, and its pages, takes as long as what is saved of so many \[B\].
pub const MAPPED_BYTES_MIN: u64 = 512 << 10;
/// Bytes of a file that are wanted of a mapping, of which those pages that are read count as memory of the process. Mappings begin and end
/// at multiples of this, where the kernel maps its large pages whole \[B\].
const WINDOW_BYTES: u64 = 2 << 20;

/// The variable that switches this off.
const MAPPED_VARIABLE: &str = "HYPERSLAB_MAPPED";

/// Whether that is wanted at all.
pub fn maps_files() -> bool {
    static WANTED: LazyLock<bool> = LazyLock::new(|| std::env::var(MAPPED_VARIABLE).as_deref() != Ok("0"));
    *WANTED
}

/// Reads by way of mappings; tells how many. `None` where a call shall do it: of a short read, or one of few bytes of each page, of a
/// file that is not on this host, or ends early, or is not in the system's cache, and where parts of it were lost meanwhile. Then what
/// was read is worth nothing.
pub(super) fn read(file: &File, moves: &Moves) -> Option<u64> {
    if moves.bytes() < MAPPED_BYTES_MIN {
        return None;
    }
    if let Some(list) = ListRead::of(moves) {
        let mut windows = Windows::of(file, list.hull)?;
        for (part, stretch) in list.parts(WINDOW_BYTES) {
            windows.visit(stretch, |window| list.take(&part, window).ok())?;
        }
        return windows.is_unchanged().then_some(windows.made);
    }
    let survey = Survey::of(moves, WINDOW_BYTES);
    // What one call copies in one go, it copies as fast, as long as the processor's cache holds it. Measured with two processes:
    // 1 MiB in 80 us by calls, 100 to 160 so; 2 MiB 126 and 185; 4 MiB 330 and 280; 8 MiB 1,350 and 610.
    if survey.runs == 1 && moves.bytes() < 2 * WINDOW_BYTES {
        return None;
    }
    let is_dense = survey.is_dense(moves.bytes(), WINDOW_BYTES);
    let mut windows = if is_dense { Windows::of(file, survey.hull)? } else { return None };
    for nest in moves.nests() {
        each_window(&nest, moves.there.element.bytes(), WINDOW_BYTES, &mut |part, stretch| {
            windows.visit(stretch, |window| copy_out(part, window, moves).ok()).ok_or(())
        })
        .ok()?;
    }
    windows.is_unchanged().then_some(windows.made)
}

/// Mappings of one file, of which the last is kept: what comes next may lie in it.
pub(super) struct Windows<'a> {
    file: &'a File,
    /// What it was like in the beginning.
    before: Metadata,
    /// Up to where the system's cache is known to hold it.
    end: u64,
    last: Option<Window>,
    made: u64,
}

impl Windows<'_> {
    /// Those of these bytes of a file, up to the second; `None` where calls shall read.
    pub(super) fn of(file: &File, (low, end): (u64, u64)) -> Option<Windows<'_>> {
        if end.saturating_sub(low) < MAPPED_BYTES_MIN || !maps_files() || !at_hand::holds(file) {
            return None;
        }
        let before = file.metadata().ok()?;
        let is_there = before.len() >= end && is_cached(file, (low, end));
        is_there.then_some(Windows { file, before, end, last: None, made: 0 })
    }

    /// Gives a run of memory the bytes at this offset. `None` where a call shall do it.
    pub(super) fn copy_to(&mut self, run: &Source, at: u64) -> Option<()> {
        let stretch = (at, at + run.length() as u64);
        self.visit(stretch, |(begin, memory)| run.copy_out_of(memory, at - begin))?;
        self.is_unchanged().then_some(())
    }

    /// Whether nobody has written to the file since. Where it was cut in the middle of a page, zeros lie behind its end, and no page
    /// is lost.
    fn is_unchanged(&self) -> bool {
        let told = |file: &Metadata| (file.len(), file.ctime(), file.ctime_nsec());
        self.file.metadata().is_ok_and(|now| told(&now) == told(&self.before))
    }

    /// Uses a mapping in which these bytes lie, and that begins at this byte of the file.
    fn visit(&mut self, stretch: (u64, u64), using: impl FnOnce((u64, &Memory)) -> Option<()>) -> Option<()> {
        let window = self.over(stretch)?;
        using((window.begin, &window.memory))?;
        (!window.watch.has_lost()).then_some(())
    }

    fn over(&mut self, (low, high): (u64, u64)) -> Option<&Window> {
        let holds = |window: &Window| window.begin <= low && high <= window.end;
        if !self.last.as_ref().is_some_and(holds) {
            self.last = None;
            let end = (low + WINDOW_BYTES).min(self.end).max(high);
            let begin = low / WINDOW_BYTES * WINDOW_BYTES;
            let end = end.next_multiple_of(WINDOW_BYTES).min(self.before.len());
            let memory = map(self.file, begin, end)?;
            let watch = LossWatch::over(memory.host_address()?, (end - begin) as usize)?;
            self.last = Some(Window { begin, end, watch, memory });
            self.made += 1;
        }
        self.last.as_ref()
    }
}

/// A part of a file in memory.
struct Window {
    begin: u64,
    end: u64,
    // Before the memory, which goes after it.
    watch: LossWatch,
    memory: Memory,
}

/// Maps a part of a file.
fn map(file: &File, begin: u64, end: u64) -> Option<Memory> {
    let bytes = (end - begin) as usize;
    let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: asks for a new mapping, wherever there is room.
    let made = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read, shared, file.as_raw_fd(), begin as i64) };
    if made == libc::MAP_FAILED {
        return None;
    }
    let keep = Box::new(Mapping { address: made as usize, bytes });
    // SAFETY: the mapping lives as long as `keep`, is only read, and no Rust reference to it exists. Pages that are lost are
    // watched for.
    Some(unsafe { Memory::foreign(made.cast(), bytes as u64, keep) })
}

/// What the system mapped.
struct Mapping {
    address: usize,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map`, and whoever reads it keeps this alive.
        unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix::windows;
    use fastrand::Rng;
    use hyperslab_layout::{ElementType, IndexSet, Kind, Region, View, layers};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    const ROWS: u64 = 3000;
    const COLUMNS: u64 = 2000;

    /// A file of rows, row-major, whose elements are their own numbers.
    fn file_of_numbers(name: &str) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("hyperslab-{name}-{}", std::process::id()));
        let numbers: Vec<u8> = (0..ROWS * COLUMNS).flat_map(u64::to_le_bytes).collect();
        std::fs::write(&path, numbers).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (path, file)
    }

    /// A section of it, in row-major or column-major order of memory.
    fn moves(rows: IndexSet, columns: IndexSet, row_major: bool) -> Moves {
        let element = ElementType::native(Kind::UInt64);
        let region = Region { dims: [rows, columns].into_iter().collect() };
        let shape = region.shape();
        let strides = if row_major { [8 * shape[1] as i64, 8] } else { [8, 8 * shape[0] as i64] };
        let here = Arc::new(View::held(&region, 0, &strides, element));
        let whole = Region::whole(&[ROWS, COLUMNS]);
        let there = Arc::new(View::held(&whole, 0, &[8 * COLUMNS as i64, 8], element));
        Moves { memory: Memory::from_vec(vec![0; 8 * region.elements() as usize]), region, here, there }
    }

    /// Whether each element is its number in the file.
    fn is_right(moves: &Moves) -> bool {
        let numbers =
            |bytes: Vec<u8>| bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
        let found: Vec<u64> = numbers(moves.memory.to_vec(0, moves.memory.bytes()));
        moves.nests().all(|nest| {
            let mut right = true;
            hyperslab_pack::try_for_each_run(&nest, 8, |here, there, bytes| {
                right &= (0..bytes as i64 / 8).all(|k| found[(here / 8 + k) as usize] == (there / 8 + k) as u64);
                Ok::<(), ()>(())
            })
            .unwrap();
            right
        })
    }

    /// Lists of one dimension, whose places in memory follow no pattern.
    #[test]
    fn lists_lie_where_they_belong_by_either_way() {
        let (path, file) = file_of_numbers("lists");
        let mut rng = Rng::with_seed(282);
        let (mut lists, mut mapped) = (0, 0);
        for number in 0..3 {
            let total = ROWS * COLUMNS / 8;
            let mut indices: Vec<u64> = (0..total / 4).map(|i| 4 * i + rng.u64(0..4)).collect();
            if number % 2 == 0 {
                rng.shuffle(&mut indices);
            }
            let layer = layers((0..).zip(&indices).map(|(at, &index)| (index, 1, at)), 1).unwrap().remove(0);
            let (low, high) = (rng.u64(0..total / 9), total - rng.u64(0..total / 9));
            let region = Region { dims: [layer.set.within(low, high)].into_iter().collect() };
            let element = ElementType::native(Kind::UInt64);
            let here = Arc::new(View { base: 0, axes: vec![(layer.axis, 8)], element });
            let there = Arc::new(View::held(&Region::whole(&[total]), 0, &[8], element));
            let moves = || {
                let memory = Memory::from_vec(vec![0; 8 * indices.len()]);
                Moves { memory, region: region.clone(), here: here.clone(), there: there.clone() }
            };
            lists += usize::from(super::ListRead::of(&moves()).is_some());
            let straight = moves();
            if read(&file, &straight).is_some() {
                mapped += 1;
                assert!(is_right(&straight));
            }
            let by_buffer = moves();
            windows::read(&file, &by_buffer, |(error, end)| panic!("{error} at {end}")).unwrap();
            assert!(is_right(&by_buffer));
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(lists, 3);
        assert!(mapped > 0 || !super::maps_files());
    }

    #[test]
    fn what_is_mapped_and_what_goes_by_way_of_a_buffer_lies_where_it_belongs() {
        let (path, file) = file_of_numbers("mapped");
        let mut rng = Rng::with_seed(281);
        let mut set = |extent: u64| match rng.u8(0..3) {
            0 => IndexSet::range(rng.u64(0..extent / 4), extent - rng.u64(0..extent / 4)),
            1 => {
                let (start, step) = (rng.u64(0..9), rng.u64(2..5));
                IndexSet::progression(start, 1, step, (extent - start) / step).unwrap()
            }
            _ => IndexSet::range(0, extent),
        };
        let mut mapped = 0;
        for number in 0..12 {
            let (rows, columns) = (set(ROWS), set(COLUMNS));
            let moves = || moves(rows.clone(), columns.clone(), number % 2 == 0);
            let straight = moves();
            if read(&file, &straight).is_some() {
                mapped += 1;
                assert!(is_right(&straight), "{rows:?} {columns:?}");
            }
            let by_buffer = moves();
            windows::read(&file, &by_buffer, |(error, end)| panic!("{error} at {end}")).unwrap();
            assert!(is_right(&by_buffer), "{rows:?} {columns:?}");
        }
        let can = at_hand::holds(&file) && is_cached(&file, (0, 8 * ROWS * COLUMNS));
        assert_eq!(mapped > 0, can, "what was just written is in the cache");
        let short = moves(IndexSet::range(0, 1), IndexSet::range(0, COLUMNS), true);
        assert!(read(&file, &short).is_none(), "a call is faster");
        let [one, several] = [COLUMNS, COLUMNS / 2]
            .map(|columns| read(&file, &moves(IndexSet::range(0, 128), IndexSet::range(0, columns), true)));
        assert!(one.is_none() && several.is_some() == can, "of one run as well, of several not");
        file.set_len(8 * ROWS * COLUMNS - 1).unwrap();
        let whole = moves(IndexSet::range(0, ROWS), IndexSet::range(0, COLUMNS), true);
        assert!(read(&file, &whole).is_none(), "the file ends early");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_cut_short_while_it_is_read_ends_no_process() {
        let (path, file) = file_of_numbers("cut-short");
        let numbers = std::fs::read(&path).unwrap();
        let mut windows = Windows::of(&file, (0, 8 * ROWS * COLUMNS));
        if let Some(windows) = &mut windows {
            let mut bytes = vec![1; 4096];
            let run = Source::of(&mut bytes);
            windows.copy_to(&run, 0).expect("all is there");
            file.set_len(100_000).unwrap();
            assert!(windows.copy_to(&run, 8192).is_none(), "somebody has written to the file");
            let lost = |windows: &mut Windows, at| windows.visit((at, at + 4096), |_| Some(())).is_none();
            assert!(!lost(windows, 8192), "no page was lost before it was read");
            assert!(windows.copy_to(&run, 1 << 20).is_none() && lost(windows, 8192), "this one is");
        }
        let can = windows.is_some();
        drop(windows);
        // As long as another thread cuts the file and writes it again, all that is said to be read was.
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Also within the last page that is wanted: then no page is lost.
                let cuts = [1_000_000, 2 * ROWS * COLUMNS - 100];
                for cut in cuts.into_iter().cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
                    file.set_len(cut).unwrap();
                    std::os::unix::fs::FileExt::write_all_at(&file, &numbers, 0).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let (mut right, mut wrong) = (0, 0);
            let until = Instant::now() + Duration::from_secs(60);
            while right < 300 && Instant::now() < until {
                let part = moves(IndexSet::range(0, ROWS / 4), IndexSet::range(0, COLUMNS), true);
                if read(&file, &part).is_some() {
                    right += 1;
                    wrong += usize::from(!is_right(&part));
                }
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(wrong, 0, "a read that was cut short is told as a good one");
            assert!(right > 0 || !can, "no read met the file as a whole");
        });
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_cut_behind_what_was_read_already_is_read_again() {
        let (path, file) = file_of_numbers("cut-behind");
        let bytes = 8 * ROWS * COLUMNS;
        let end: Vec<u8> = (ROWS * COLUMNS - 20..ROWS * COLUMNS).flat_map(u64::to_le_bytes).collect();
        let can = Windows::of(&file, (0, bytes)).is_some();
        let mut found_out = 0;
        for _ in 0..if can { 20 } else { 0 } {
            let whole = moves(IndexSet::range(0, ROWS), IndexSet::range(0, COLUMNS), true);
            let over = AtomicBool::new(false);
            let cut = || {
                // As soon as the first bytes are there, and within the last page, so that none is lost. None come where the cache
                // has let go of the file.
                while whole.memory.to_vec(8, 8) == [0; 8] && !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                file.set_len(bytes - 100).unwrap();
            };
            let is_read = std::thread::scope(|scope| {
                scope.spawn(cut);
                let is_read = read(&file, &whole).is_some();
                over.store(true, Ordering::Relaxed);
                is_read
            });
            assert!(!is_read || is_right(&whole), "zeros behind the end are told as elements");
            found_out += usize::from(!is_read);
            std::os::unix::fs::FileExt::write_all_at(&file, &end, bytes - end.len() as u64).unwrap();
        }
        assert!(found_out > 0 || !can, "no read was cut");
        std::fs::remove_file(&path).unwrap();
    }
}
