//! The identity and the privileges of a program, set between `clone` and `exec` by system calls
//! alone. The library's functions change all threads of a process, but here there are no other
//! threads to notify.

use std::ptr::null;

use libc::{c_char, c_int, c_long, c_ulong};

use super::shared::Credentials;

/// linux/capability.h.
const CAP_SETGID: c_ulong = 6;
const CAP_SETUID: c_ulong = 7;
const CAP_NET_RAW: c_ulong = 13;
/// More than any kernel has so far.
const MOST_CAPABILITIES: c_ulong = 63;

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Prepared before `clone`.
pub(super) struct Rights<'a> {
    credentials: &'a Credentials,
    environment: Vec<*const c_char>,
}

impl<'a> Rights<'a> {
    pub(super) fn new(credentials: &'a Credentials) -> Self {
        let environment = credentials.environment.iter().map(|entry| entry.as_ptr());
        Self { credentials, environment: environment.chain([null()]).collect() }
    }

    /// The environment for `execvpe`.
    pub(super) const fn environment(&self) -> *const *const c_char {
        self.environment.as_ptr()
    }

    /// Gives the calling process, which has one thread, the identity of the programs. Returns false
    /// on failure, with the reason in `errno`.
    ///
    /// # Safety
    ///
    /// The process must have one thread, because the system calls only change the calling thread.
    pub(super) unsafe fn take(&self) -> bool {
        let Credentials { user, limited, .. } = self.credentials;
        // SAFETY: `groups` has the given length and outlives the call; the others take numbers. The
        // process has one thread, as required.
        unsafe {
            if *limited && !drop_bounds(user.is_some()) {
                return false;
            }
            if let Some((uid, gid, groups)) = user {
                let (uid, gid) = (c_long::from(*uid), c_long::from(*gid));
                let kept = libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0
                    && libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
                    && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
                    && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0;
                if !kept {
                    return false;
                }
            }
            (!*limited || keep(user.is_some())) && (user.is_none() || gain_nothing())
        }
    }
}

/// From now on no file grants more privileges: neither set-user-ID nor file capabilities.
///
/// # Safety
///
/// As for [`Rights::take`].
unsafe fn gain_nothing() -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 }
}

/// Removes capabilities that no program may regain, whatever its file grants.
///
/// # Safety
///
/// As for [`Rights::take`].
unsafe fn drop_bounds(is_user: bool) -> bool {
    (0..=MOST_CAPABILITIES).filter(|&capability| !is_kept(capability, is_user)).all(|capability| {
        // SAFETY: the call takes numbers, and accesses no memory.
        let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        // SAFETY: this is the address of this thread's own errno.
        done == 0 || unsafe { *libc::__errno_location() } == libc::EINVAL
    })
}

/// Whether a capability is kept. Root's programs may give up root: tcpdump insists on it.
const fn is_kept(capability: c_ulong, is_user: bool) -> bool {
    capability == CAP_NET_RAW || (!is_user && matches!(capability, CAP_SETGID | CAP_SETUID))
}

/// Makes every program inherit the remaining capabilities: including ping and tcpdump of an
/// ordinary user.
///
/// # Safety
///
/// As for [`Rights::take`].
unsafe fn keep(is_user: bool) -> bool {
    let kept = (0..=31).filter(|&capability| is_kept(capability, is_user));
    let bits = kept.fold(0, |bits, capability| bits | 1 << capability);
    let sets = Sets { effective: bits, permitted: bits, inheritable: 1 << CAP_NET_RAW };
    let none = Sets { effective: 0, permitted: 0, inheritable: 0 };
    let (header, sets) = (Header { version: VERSION, pid: 0 }, [sets, none]);
    // SAFETY: capset reads a header and, in this version, two sets, all of them locals; prctl takes
    // numbers.
    unsafe {
        let raise = libc::PR_CAP_AMBIENT_RAISE as c_ulong;
        libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) == 0
            && libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0
            && libc::prctl(libc::PR_CAP_AMBIENT, raise, CAP_NET_RAW, 0, 0) == 0
    }
}
