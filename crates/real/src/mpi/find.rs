//! Finding the MPI that this process already uses, and telling which binary interface it has.
//!
//! Nothing is loaded here. A process may hold several MPI libraries (a wheel ships two complete ones), of which only
//! one has been initialised; opening a library by its name could pick the idle one and would then say "not
//! initialised" for ever. So the places are searched in the order of their certainty, and the first library that is
//! initialised is taken.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use crate::wire::WireError;

/// Environment variable that names the binary interface of an MPI that is not recognised.
const ABI_VARIABLE: &str = "HYPERSLAB_MPI_ABI";
/// Longest answer of `MPI_Get_library_version` in any of the three interfaces \[B\].
const VERSION_BYTES: usize = 8192;

/// The three binary interfaces of MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Abi {
    /// MPICH and its relatives (Intel, Cray, MVAPICH, ParaStation): handles are integers.
    Mpich,
    /// Open MPI: handles are pointers to objects of the library.
    OpenMpi,
    /// The interface of the MPI-5 standard: handles are pointers, constants are small numbers.
    Standard,
}

impl Abi {
    fn from_name(name: &str) -> Result<Abi, WireError> {
        match name {
            "mpich" => Ok(Abi::Mpich),
            "openmpi" => Ok(Abi::OpenMpi),
            "standard" => Ok(Abi::Standard),
            _ => Err(WireError(format!("{ABI_VARIABLE} is {name:?}, but may be mpich, openmpi or standard"))),
        }
    }
}

/// Who may call MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Callers {
    /// Only the thread that initialised it (`MPI_THREAD_SINGLE`, `MPI_THREAD_FUNNELED`).
    Main,
    /// One at a time (`MPI_THREAD_SERIALIZED`).
    One,
    /// Any thread at any time (`MPI_THREAD_MULTIPLE`).
    Any,
}

/// A loaded object through which the functions of one MPI are found. It is never closed: MPI must stay where it is.
pub(super) struct Library {
    handle: *mut c_void,
    /// How it was found, for error messages.
    pub(super) origin: String,
}

impl Library {
    /// The address of a symbol, or `None`.
    pub(super) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is RTLD_DEFAULT or came from dlopen and was never closed; the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// The function with this name.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to a function with the signature that this MPI gives it.
    pub(super) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, WireError> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>(), "F is a pointer to a function");
        let address = self.symbol(name).ok_or_else(|| {
            let name = name.to_string_lossy();
            WireError(format!("the MPI found through {} has no function {name}; MPI 3.1 is needed", self.origin))
        })?;
        // SAFETY: same size, and the caller vouches for the signature; dlsym gives functions as data pointers.
        Ok(unsafe { std::mem::transmute_copy(&address) })
    }

    /// Asks a yes-or-no question of the kind that is allowed at any time.
    fn flag(&self, name: &CStr) -> Result<bool, WireError> {
        // SAFETY: MPI_Initialized, MPI_Finalized and MPI_Is_thread_main have this signature in every interface.
        let ask: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { self.function(name)? };
        let mut answer = 0;
        // SAFETY: it writes one int, to a place that is ours.
        unsafe { ask(&mut answer) };
        Ok(answer != 0)
    }

    /// Whether MPI has been initialised and not yet finalised.
    fn is_running(&self) -> Result<bool, WireError> {
        Ok(self.flag(c"MPI_Initialized")? && !self.flag(c"MPI_Finalized")?)
    }

    /// Whether this is the thread that initialised MPI.
    pub(super) fn is_main_thread(&self) -> Result<bool, WireError> {
        self.flag(c"MPI_Is_thread_main")
    }

    /// Who may call MPI, at the level of thread support that it was initialised with.
    pub(super) fn callers(&self, abi: Abi) -> Result<Callers, WireError> {
        // SAFETY: the signature of MPI_Query_thread in every interface.
        let ask: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { self.function(c"MPI_Query_thread")? };
        let mut level = 0;
        // SAFETY: it writes one int, to a place that is ours.
        unsafe { ask(&mut level) };
        let unit = if abi == Abi::Standard { 1024 } else { 1 };
        Ok(match level / unit {
            0 | 1 => Callers::Main,
            2 => Callers::One,
            _ => Callers::Any,
        })
    }

    /// The first line of what the library says of itself.
    pub(super) fn version(&self) -> Result<String, WireError> {
        // SAFETY: the signature of MPI_Get_library_version in every interface.
        let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
            unsafe { self.function(c"MPI_Get_library_version")? };
        let (mut text, mut length) = (vec![0u8; VERSION_BYTES + 1], 0);
        // SAFETY: the text has room for the longest answer, and one more zero.
        unsafe { ask(text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text);
        Ok(text.split(['\n', '\0']).next().unwrap_or_default().trim().to_owned())
    }

    /// Which interface it has: as the environment says, or else as the library shows.
    pub(super) fn abi(&self) -> Result<Abi, WireError> {
        if let Ok(name) = std::env::var(ABI_VARIABLE) {
            return Abi::from_name(&name);
        }
        // MPICH 5 answers -1 in its own interface, older libraries lack the function.
        // SAFETY: the signature of MPI_Abi_get_version in the standard.
        let ask =
            unsafe { self.function::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(c"MPI_Abi_get_version") };
        if let Ok(ask) = ask {
            let (mut major, mut minor) = (-1, -1);
            // SAFETY: it writes two ints, to places that are ours.
            unsafe { ask(&mut major, &mut minor) };
            if major > 0 {
                return Ok(Abi::Standard);
            }
        }
        if self.symbol(c"ompi_mpi_comm_world").is_some() {
            return Ok(Abi::OpenMpi);
        }
        let version = self.version()?;
        let known = ["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation", "psmpi"];
        if known.iter().any(|name| version.to_uppercase().contains(&name.to_uppercase())) {
            return Ok(Abi::Mpich);
        }
        Err(WireError(format!(
            "the MPI found through {} calls itself {version:?}, which is neither Open MPI, nor MPI 5's standard \
             interface, nor a known relative of MPICH; hint: if you know its binary interface, set {ABI_VARIABLE} to \
             mpich, openmpi or standard",
            self.origin
        )))
    }
}

/// The MPI of this process that is initialised and not finalised.
///
/// `hint` is the path of a loaded object that uses MPI, such as `mpi4py.MPI.__file__`.
pub(super) fn running(hint: Option<&str>) -> Result<Library, WireError> {
    let mut idle = Vec::new();
    for library in candidates(hint) {
        if library.is_running()? {
            return Ok(library);
        }
        idle.push(library.origin);
    }
    Err(WireError(if idle.is_empty() {
        "no MPI is loaded in this process; hint: import mpi4py.MPI, or link the program with MPI, and initialise it \
         before its ranks are used"
            .to_owned()
    } else {
        format!("MPI is loaded, but not initialised or already finalised (looked at {})", idle.join(", "))
    }))
}

/// Every place where MPI's functions can be found, the most certain first.
fn candidates(hint: Option<&str>) -> Vec<Library> {
    let mut found = vec![Library { handle: libc::RTLD_DEFAULT, origin: "the global symbols".to_owned() }];
    let hint = hint.and_then(|path| CString::new(path).ok());
    let others = loaded_objects().into_iter().filter(|path| {
        let path = path.to_string_lossy();
        Path::new(&*path).file_name().is_some_and(|name| name.to_string_lossy().contains("libmpi"))
    });
    for path in hint.into_iter().chain(others) {
        // SAFETY: RTLD_NOLOAD runs no code, it only finds what is loaded; the path ends with a zero.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !handle.is_null() {
            found.push(Library { handle, origin: path.to_string_lossy().into_owned() });
        }
    }
    // Relatives such as libmpicxx or libmpi_mpifh answer through the libmpi that they need, which is as good.
    found.retain(|library| library.symbol(c"MPI_Comm_rank").is_some());
    found
}

/// Paths of all objects that are loaded.
fn loaded_objects() -> Vec<CString> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, whose name is null or ends with a zero, and `list` is the
        // vector below, which nobody else uses meanwhile.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() {
                (*list.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: the callback has the right signature and gets a pointer to a vector that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_mpi_is_told_so() {
        let error = running(Some("/nonexistent/MPI.so")).err().expect("the tests are not linked with MPI");
        assert!(error.0.starts_with("no MPI is loaded in this process; hint: "), "{error}");
    }

    #[test]
    fn loaded_objects_include_the_c_library() {
        assert!(loaded_objects().iter().any(|path| path.to_string_lossy().contains("libc")));
    }

    #[test]
    fn names_of_interfaces() {
        assert_eq!(Abi::from_name("openmpi"), Ok(Abi::OpenMpi));
        let error = Abi::from_name("lam").unwrap_err();
        assert_eq!(error.0, "HYPERSLAB_MPI_ABI is \"lam\", but may be mpich, openmpi or standard");
    }
}
