//! The pages of this library's own code.

use libc::{c_int, c_void, dl_phdr_info, size_t};

/// Has the system map this library's code and constants, which lie in its cache as a file. Else the first call of each kind does
/// so piece by piece, and ranks wait for each other meanwhile. Where that cannot be had, nothing is lost.
pub fn map_code() {
    // SAFETY: `look` uses what it gets during the call only.
    unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::null_mut()) };
}

/// Looks at one of the libraries of this process; ends with the one that this is.
unsafe extern "C" fn look(library: *mut dl_phdr_info, _bytes: size_t, _data: *mut c_void) -> c_int {
    // SAFETY: the library of C gives a description that holds during the call.
    let dl_phdr_info { dlpi_addr: base, dlpi_phdr, dlpi_phnum, .. } = unsafe { *library };
    if dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: there are as many headers as it says, during the call.
    let headers = unsafe { std::slice::from_raw_parts(dlpi_phdr, usize::from(dlpi_phnum)) };
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let loaded: Vec<_> = loaded.map(|header| (base + header.p_vaddr, header.p_memsz, header.p_flags)).collect();
    let own = look as *const () as u64;
    if !loaded.iter().any(|&(begin, bytes, _)| (begin..begin + bytes).contains(&own)) {
        return 0;
    }
    // SAFETY: asks the system for a number.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    for (begin, bytes, _) in loaded.into_iter().filter(|&(_, _, flags)| flags & libc::PF_W == 0) {
        let low = begin / page * page;
        // SAFETY: the pages are mapped, and stay what they are: they are only brought in.
        unsafe { libc::madvise(low as *mut c_void, (begin + bytes - low) as usize, libc::MADV_POPULATE_READ) };
    }
    1
}

#[cfg(test)]
mod tests {
    /// Size of the part of this program that can be run, and how much of it is mapped \[KiB\].
    fn mapped() -> (u64, u64) {
        let own = super::map_code as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux tells");
        let mut lines = maps.lines().skip_while(|line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let bound = |text: &str| u64::from_str_radix(text, 16).ok();
            let bounds = range.and_then(|(low, high)| bound(low).zip(bound(high)));
            !bounds.is_some_and(|(low, high)| (low..high).contains(&own))
        });
        let mut field = |name: &str| {
            let line = lines.find_map(|line| line.strip_prefix(name)).expect("of each part");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        (field("Size:"), field("Rss:"))
    }

    #[test]
    fn all_code_is_mapped() {
        super::map_code();
        // Where the system is too old, what was needed so far is mapped.
        let (bytes, there) = mapped();
        let knows = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux tells");
        let version: Vec<u32> = knows.split(['.', '-']).map_while(|part| part.parse().ok()).take(2).collect();
        assert!(version < vec![5, 14] || there == bytes, "{there} of {bytes} KiB");
    }
}
