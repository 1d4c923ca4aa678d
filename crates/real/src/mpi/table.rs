//! The table of MPI's functions and constants, generic over what a handle is.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use super::find::Library;
use crate::wire::WireError;

/// Tag of all datagrams; the communicator is ours alone, so one is enough.
const TAG: c_int = 1;
/// Longest answer of `MPI_Error_string` in any of the three interfaces \[B\].
const ERROR_BYTES: usize = 1024;

/// What a handle of MPI is made of: an integer (MPICH) or a pointer (Open MPI, the standard).
pub(super) trait Handle: Copy + PartialEq + 'static {
    /// A handle of no object, to be overwritten.
    const NONE: Self;
    /// The integer of Fortran taken as the handle itself, where the interface allows that.
    fn from_fortran(integer: c_int) -> Option<Self>;
}

impl Handle for c_int {
    const NONE: Self = 0;
    fn from_fortran(integer: c_int) -> Option<Self> {
        Some(integer)
    }
}

impl Handle for *mut c_void {
    const NONE: Self = null_mut();
    fn from_fortran(_integer: c_int) -> Option<Self> {
        None
    }
}

/// A status: larger and more strictly aligned than that of any interface.
#[repr(C, align(16))]
#[derive(Default)]
pub(super) struct Status([c_int; 16]);

macro_rules! functions {
    ($($field:ident = $symbol:literal ($($argument:ty),*);)*) => {
        struct Functions<H> {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handle> Functions<H> {
            /// # Safety
            /// `H` must be the handle of the library's interface.
            unsafe fn load(library: &Library) -> Result<Self, WireError> {
                // SAFETY: these are the signatures of MPI 3.1, with the handle that the caller vouches for.
                Ok(unsafe { Functions { $($field: library.function($symbol)?,)* } })
            }
        }
    };
}

functions! {
    finalized = c"MPI_Finalized" (*mut c_int);
    error_string = c"MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    comm_rank = c"MPI_Comm_rank" (H, *mut c_int);
    comm_size = c"MPI_Comm_size" (H, *mut c_int);
    comm_get_parent = c"MPI_Comm_get_parent" (*mut H);
    comm_test_inter = c"MPI_Comm_test_inter" (H, *mut c_int);
    comm_set_errhandler = c"MPI_Comm_set_errhandler" (H, H);
    comm_idup = c"MPI_Comm_idup" (H, *mut H, *mut H);
    comm_free = c"MPI_Comm_free" (*mut H);
    isend = c"MPI_Isend" (*const c_void, c_int, H, c_int, c_int, H, *mut H);
    improbe = c"MPI_Improbe" (c_int, c_int, H, *mut c_int, *mut H, *mut Status);
    imrecv = c"MPI_Imrecv" (*mut c_void, c_int, H, *mut H, *mut H);
    get_count = c"MPI_Get_count" (*const Status, H, *mut c_int);
    test = c"MPI_Test" (*mut H, *mut c_int, *mut c_void);
    testsome = c"MPI_Testsome" (c_int, *mut H, *mut c_int, *mut c_int, *mut c_void);
    ireduce_scatter_block = c"MPI_Ireduce_scatter_block" (*const c_void, *mut c_void, c_int, H, H, H, *mut H);
}

/// Values that each interface chose for itself; taken from the libraries' headers.
struct Constants<H> {
    comm_null: H,
    comm_world: H,
    comm_self: H,
    byte: H,
    uint64: H,
    sum: H,
    errors_return: H,
    any_source: c_int,
    /// Both `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`, which are equal in each interface.
    status_ignore: usize,
    /// Which of the ints of a status is the source.
    source_at: usize,
}

/// One MPI: its functions and its constants. `H` is its handle.
pub(super) struct Table<H: Handle> {
    call: Functions<H>,
    is: Constants<H>,
    integer_to_comm: Option<unsafe extern "C" fn(c_int) -> H>,
}

/// A message that was found and is now this caller's to receive.
pub(super) struct Found<H> {
    pub(super) message: H,
    pub(super) from: u32,
    pub(super) bytes: usize,
}

impl Table<c_int> {
    /// The table of MPICH or a relative.
    ///
    /// # Safety
    /// The library must have MPICH's interface.
    pub(super) unsafe fn mpich(library: &Library) -> Result<Self, WireError> {
        let is = Constants {
            comm_null: 0x0400_0000,
            comm_world: 0x4400_0000,
            comm_self: 0x4400_0001,
            byte: 0x4c00_010d,
            uint64: 0x4c00_083e,
            sum: 0x5800_0003,
            errors_return: 0x5400_0001,
            any_source: -2,
            status_ignore: 1,
            source_at: 2,
        };
        // SAFETY: as the caller vouches.
        unsafe { Table::load(library, is) }
    }
}

impl Table<*mut c_void> {
    /// The table of Open MPI, whose constants are addresses of its objects.
    ///
    /// # Safety
    /// The library must have Open MPI's interface.
    pub(super) unsafe fn open_mpi(library: &Library) -> Result<Self, WireError> {
        let object = |name: &CStr| {
            library.symbol(name).ok_or_else(|| {
                let name = name.to_string_lossy();
                WireError(format!("the MPI found through {} has no {name}: it is not Open MPI", library.origin))
            })
        };
        let is = Constants {
            comm_null: object(c"ompi_mpi_comm_null")?,
            comm_world: object(c"ompi_mpi_comm_world")?,
            comm_self: object(c"ompi_mpi_comm_self")?,
            byte: object(c"ompi_mpi_byte")?,
            uint64: object(c"ompi_mpi_uint64_t")?,
            sum: object(c"ompi_mpi_op_sum")?,
            errors_return: object(c"ompi_mpi_errors_return")?,
            any_source: -1,
            status_ignore: 0,
            source_at: 0,
        };
        // SAFETY: as the caller vouches.
        unsafe { Table::load(library, is) }
    }

    /// The table of the MPI-5 standard's interface.
    ///
    /// # Safety
    /// The library must have the standard's interface.
    pub(super) unsafe fn standard(library: &Library) -> Result<Self, WireError> {
        let is = Constants {
            comm_null: without_provenance_mut(0x100),
            comm_world: without_provenance_mut(0x101),
            comm_self: without_provenance_mut(0x102),
            byte: without_provenance_mut(0x247),
            uint64: without_provenance_mut(0x259),
            sum: without_provenance_mut(0x21),
            errors_return: without_provenance_mut(0x143),
            any_source: -1,
            status_ignore: 0,
            source_at: 0,
        };
        // SAFETY: as the caller vouches.
        unsafe { Table::load(library, is) }
    }
}

impl<H: Handle> Table<H> {
    /// # Safety
    /// `H` and `is` must be of the library's interface.
    unsafe fn load(library: &Library, is: Constants<H>) -> Result<Self, WireError> {
        // Older MPICH has only macros for the conversion, the standard's interface has only the second function.
        // SAFETY: both have this signature, with the handle that the caller vouches for.
        let integer_to_comm =
            unsafe { library.function(c"MPI_Comm_f2c").or_else(|_| library.function(c"MPI_Comm_fromint")).ok() };
        // SAFETY: as the caller vouches.
        Ok(Table { call: unsafe { Functions::load(library)? }, is, integer_to_comm })
    }

    /// Turns a return code into an error that names the function and carries MPI's own words.
    fn check(&self, function: &str, code: c_int) -> Result<(), WireError> {
        if code == 0 {
            return Ok(());
        }
        let (mut text, mut length) = (vec![0u8; ERROR_BYTES + 1], 0);
        // SAFETY: the text has room for the longest answer, and one more zero.
        unsafe { (self.call.error_string)(code, text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text);
        let text = text.split('\0').next().unwrap_or_default().trim();
        Err(WireError(format!("{function} failed with code {code}: {text}")))
    }

    /// Whether MPI has been finalised: then nothing else here may be called.
    pub(super) fn is_finalized(&self) -> bool {
        let mut answer = 0;
        // SAFETY: allowed at any time; writes one int.
        unsafe { (self.call.finalized)(&mut answer) };
        answer != 0
    }

    /// The communicator that Fortran calls `integer`, if it is one that joins ranks of one group.
    pub(super) fn communicator(&self, integer: c_int) -> Result<H, WireError> {
        let comm = match self.integer_to_comm {
            // SAFETY: the signature was vouched for at loading.
            Some(convert) => unsafe { convert(integer) },
            None => H::from_fortran(integer)
                .ok_or_else(|| WireError("this MPI has neither MPI_Comm_f2c nor MPI_Comm_fromint".to_owned()))?,
        };
        if comm == self.is.comm_null || comm == H::NONE {
            return Err(WireError(format!("the communicator with the Fortran handle {integer} is MPI_COMM_NULL")));
        }
        let mut inter = 0;
        // SAFETY: a communicator, by the caller's word; writes one int.
        self.check("MPI_Comm_test_inter", unsafe { (self.call.comm_test_inter)(comm, &mut inter) })?;
        if inter != 0 {
            let hint = "hint: merge it with MPI_Intercomm_merge";
            return Err(WireError(format!(
                "the communicator is an intercommunicator, whose ranks are in two groups; {hint}"
            )));
        }
        Ok(comm)
    }

    /// This rank and the number of ranks.
    pub(super) fn rank_and_size(&self, comm: H) -> Result<(u32, u32), WireError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: each writes one int.
        self.check("MPI_Comm_rank", unsafe { (self.call.comm_rank)(comm, &mut rank) })?;
        // SAFETY: as above.
        self.check("MPI_Comm_size", unsafe { (self.call.comm_size)(comm, &mut size) })?;
        Ok((rank as u32, size as u32))
    }

    /// Whether MPI knows of this process only, and the communicator is not `MPI_COMM_SELF`, by which a program says that it
    /// means this process alone. What another program spawned has relatives.
    pub(super) fn is_lone_world(&self, comm: H) -> Result<bool, WireError> {
        if comm == self.is.comm_self || self.rank_and_size(self.is.comm_world)?.1 != 1 {
            return Ok(false);
        }
        let mut parent = self.is.comm_null;
        // SAFETY: writes one handle.
        self.check("MPI_Comm_get_parent", unsafe { (self.call.comm_get_parent)(&mut parent) })?;
        Ok(parent == self.is.comm_null)
    }

    /// Lets errors on this communicator be returned instead of ending the program.
    pub(super) fn return_errors(&self, comm: H) -> Result<(), WireError> {
        // SAFETY: both handles are of this MPI.
        self.check("MPI_Comm_set_errhandler", unsafe { (self.call.comm_set_errhandler)(comm, self.is.errors_return) })
    }

    /// Begins to duplicate a communicator.
    ///
    /// # Safety
    /// `copy` must stay valid and unused until the request that is returned is complete.
    pub(super) unsafe fn idup(&self, comm: H, copy: *mut H) -> Result<H, WireError> {
        let mut request = H::NONE;
        // SAFETY: as the caller vouches.
        self.check("MPI_Comm_idup", unsafe { (self.call.comm_idup)(comm, copy, &mut request) })?;
        Ok(request)
    }

    /// Frees a communicator.
    pub(super) fn free(&self, mut comm: H) -> Result<(), WireError> {
        // SAFETY: a communicator of this MPI, which the caller uses no more.
        self.check("MPI_Comm_free", unsafe { (self.call.comm_free)(&mut comm) })
    }

    /// Begins to send.
    ///
    /// # Safety
    /// The bytes must stay valid and unchanged until the request that is returned is complete.
    pub(super) unsafe fn isend(&self, comm: H, to: u32, bytes: &[u8]) -> Result<H, WireError> {
        let (mut request, length) = (H::NONE, bytes.len() as c_int);
        // SAFETY: as the caller vouches.
        let code = unsafe {
            (self.call.isend)(bytes.as_ptr().cast(), length, self.is.byte, to as c_int, TAG, comm, &mut request)
        };
        self.check("MPI_Isend", code)?;
        Ok(request)
    }

    /// Looks for a message from anybody and takes it out of the queue of those that can be matched.
    pub(super) fn improbe(&self, comm: H) -> Result<Option<Found<H>>, WireError> {
        let (mut found, mut message, mut status) = (0, H::NONE, Status::default());
        // SAFETY: writes an int, a handle and a status, to places that are ours.
        let code = unsafe { (self.call.improbe)(self.is.any_source, TAG, comm, &mut found, &mut message, &mut status) };
        self.check("MPI_Improbe", code)?;
        if found == 0 {
            return Ok(None);
        }
        let mut count = 0;
        // SAFETY: the status was just written; writes one int.
        self.check("MPI_Get_count", unsafe { (self.call.get_count)(&status, self.is.byte, &mut count) })?;
        let bytes = usize::try_from(count)
            .map_err(|_| WireError(format!("MPI_Get_count: {count} is not the size of a datagram")))?;
        Ok(Some(Found { message, from: status.0[self.is.source_at] as u32, bytes }))
    }

    /// Begins to receive a message that was found.
    ///
    /// # Safety
    /// `to` must have room for the message, and stay valid and unused until the request that is returned is complete.
    pub(super) unsafe fn imrecv(&self, mut found: Found<H>, to: *mut u8) -> Result<H, WireError> {
        let (mut request, length) = (H::NONE, found.bytes as c_int);
        // SAFETY: as the caller vouches.
        let code = unsafe { (self.call.imrecv)(to.cast(), length, self.is.byte, &mut found.message, &mut request) };
        self.check("MPI_Imrecv", code)?;
        Ok(request)
    }

    /// Whether a request is complete; it is then gone.
    pub(super) fn test(&self, request: &mut H) -> Result<bool, WireError> {
        let mut done = 0;
        // SAFETY: a request of this MPI; the status is the constant that says that none is wanted.
        let code = unsafe { (self.call.test)(request, &mut done, self.status_ignore()) };
        self.check("MPI_Test", code)?;
        Ok(done != 0)
    }

    /// Which of the requests are complete: their indices, in `done`. They are then gone.
    pub(super) fn testsome(&self, requests: &mut [H], done: &mut Vec<c_int>) -> Result<(), WireError> {
        done.clear();
        done.resize(requests.len(), 0);
        let (mut count, all) = (0, requests.len() as c_int);
        // SAFETY: as many requests and indices as said; no statuses are wanted.
        let code = unsafe {
            (self.call.testsome)(all, requests.as_mut_ptr(), &mut count, done.as_mut_ptr(), self.status_ignore())
        };
        self.check("MPI_Testsome", code)?;
        // MPI_UNDEFINED, which is negative, when there was no request at all.
        done.truncate(usize::try_from(count).unwrap_or(0));
        Ok(())
    }

    /// Begins to add up `all` (one number a rank) over all ranks and to give each rank the sum of its own numbers.
    ///
    /// # Safety
    /// `all` (as many numbers as ranks) and `own` must stay valid and unused until the request is complete.
    pub(super) unsafe fn isum(&self, comm: H, all: *const u64, own: *mut u64) -> Result<H, WireError> {
        let mut request = H::NONE;
        // SAFETY: as the caller vouches.
        let code = unsafe {
            let (all, own) = (all.cast(), own.cast());
            (self.call.ireduce_scatter_block)(all, own, 1, self.is.uint64, self.is.sum, comm, &mut request)
        };
        self.check("MPI_Ireduce_scatter_block", code)?;
        Ok(request)
    }

    fn status_ignore(&self) -> *mut c_void {
        without_provenance_mut(self.is.status_ignore)
    }
}
