//! Congestion control in a shared library, for airpath: ABI version 1.
//!
//! A library implements [`CongestionControl`] for a type and exports it with
//! `congestion_control!`. It is a `cdylib`; airpath loads it with
//! `airpath run SCENARIO --set flow.0.congestion=./libNAME.so`. This file needs nothing but the
//! standard library: copy it into your crate. Everything between the two is C, so a library may be
//! written in C, too: it exports one [`Library`] with the name `airpath_congestion_control`.
//!
//! Times are nanoseconds since the start of the run; windows are segments.
#![allow(unsafe_code, reason = "the functions of a C interface take pointers")]
#![allow(dead_code, unreachable_pub, reason = "a library uses a part of it, in a private module")]

use std::ffi::{c_char, c_void};

/// Version of this interface: airpath loads only libraries of the same version.
pub const ABI: u32 = 1;

/// A time that is not known.
pub const NO_TIME: u64 = u64::MAX;

/// The beginning of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Seed for the connection's random numbers.
    pub seed: u64,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// cwnd of a new connection (RFC 6928).
    pub initial_window_segments: u32,
}

/// An acknowledgement of new data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now_ns: u64,
    /// Offset in the stream of the first byte that is not acknowledged (SND.UNA).
    pub snd_una_bytes: u64,
    /// Offset in the stream of the next byte to send for the first time (SND.NXT).
    pub snd_nxt_bytes: u64,
    /// RTT of the newest segment that it delivers; [`NO_TIME`] if that was retransmitted.
    pub rtt_ns: u64,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Smallest RTT of the connection.
    pub min_rtt_ns: u64,
    /// How long pacing delays the next transmission.
    pub pacing_wait_ns: u64,
    /// Delivery rate in payload bits per second; NaN without a sample, or if loss-based.
    pub delivery_rate_bps: f64,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// Segments by which a loss-based window may grow.
    pub acked_segments: u32,
    /// Segments newly known to be delivered, cumulatively or by SACK.
    pub delivered_segments: u32,
    /// Segments newly marked lost.
    pub lost_segments: u32,
    /// Segments in flight, before anything is sent in response.
    pub in_flight_segments: u32,
    /// State of the sender: 0 no recovery, 1 fast recovery, 2 after a time-out.
    pub state: u32,
    /// Whether cwnd limited the sender in the window that this acknowledges.
    pub cwnd_limited: bool,
    /// Whether the sender paces.
    pub paced: bool,
    /// Whether it reports packets marked by ECN.
    pub ecn_echo: bool,
    /// Whether the application limited the sender when the segment was sent.
    pub app_limited: bool,
}

impl Ack {
    /// RTT of the newest segment that it delivers, if there is one.
    pub fn rtt(&self) -> Option<u64> {
        (self.rtt_ns != NO_TIME).then_some(self.rtt_ns)
    }
}

/// A congestion event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was inferred.
    pub now_ns: u64,
    /// Segments that were sent and not acknowledged (FlightSize, RFC 5681 2).
    pub flight_segments: u32,
    /// Whether the retransmission timer expired; otherwise a loss or marks were reported.
    pub by_timeout: bool,
}

/// The window that a library decides.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window, from 1 to 10,000,000; fractions accumulate.
    pub cwnd_segments: f64,
    /// Slow start threshold, 1 or more; infinite before the first congestion.
    pub ssthresh_segments: f64,
    /// Pacing rate in payload bits per second; NaN: as the profile paces. Only for a model-based
    /// algorithm.
    pub pacing_bps: f64,
}

/// An end of slow start that the library decides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlowStartExit {
    /// Why; 0: slow start goes on.
    pub reason: Reason,
    /// RTT that a test of the delay compared with `base_rtt_ns`; [`NO_TIME`] without one.
    pub round_rtt_ns: u64,
    /// The RTT that it was compared with; [`NO_TIME`] without one.
    pub base_rtt_ns: u64,
}

/// Why slow start ended: one of the constants.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u32);

impl Reason {
    /// Slow start goes on.
    pub const NONE: Self = Self(0);
    /// The RTT of a round rose.
    pub const DELAY: Self = Self(1);
    /// The smallest RTT fell, which left the round's RTT above it.
    pub const FALLING_MINIMUM: Self = Self(2);
    /// The train of acknowledgements of a round became too long.
    pub const ACK_TRAIN: Self = Self(3);
    /// The RTT stayed high throughout conservative slow start (RFC 9406).
    pub const CSS: Self = Self(4);
    /// The delivery rate stopped growing.
    pub const FULL_PIPE: Self = Self(5);
}

/// Decides how many segments may be in flight on one connection.
///
/// The sender measures, detects losses and retransmits. A loss-based algorithm gets acknowledgements
/// while the window may grow, and after [`Self::on_loss`] the sender reduces cwnd to ssthresh. A
/// [model-based](Self::MODEL_BASED) one gets every acknowledgement and controls cwnd alone, except
/// after a time-out.
pub trait CongestionControl: Sized {
    /// Name in tables, which ends with a zero byte: `c"mine"`.
    const NAME: &'static std::ffi::CStr;
    /// Whether the algorithm alone controls cwnd.
    const MODEL_BASED: bool = false;

    /// A new connection, before its handshake.
    fn start(start: &Start) -> Self;

    /// The handshake is complete; its RTT, if it was measured.
    fn on_established(&mut self, _rtt_ns: Option<u64>) {}

    /// Data was delivered. Returns an exit if the algorithm itself ends slow start here.
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Option<SlowStartExit>;

    /// Congestion, once per recovery: sets ssthresh.
    fn on_loss(&mut self, loss: &Loss, window: &mut Window);

    /// The last congestion event was spurious (RFC 4015 3.3).
    fn on_undo(&mut self, _window: &mut Window) {}

    /// A recovery that began with congestion has ended.
    fn on_recovered(&mut self, _now_ns: u64, _window: &mut Window) {}

    /// Data is sent after nothing was in flight (RFC 9438 5.8).
    fn on_restart(&mut self, _now_ns: u64, _last_sent_ns: u64, _window: &mut Window) {}
}

/// What a library exports. Each function returns 0, or something else if it failed; then the run
/// ends. `state` is what `start` returned, which is not null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Version of the interface: [`ABI`].
    pub abi: u32,
    /// Size of this structure in bytes.
    pub size: u32,
    /// Name in tables: printable ASCII, ended by a zero byte.
    pub name: *const c_char,
    /// Whether the algorithm alone controls cwnd.
    pub model_based: bool,
    /// [`CongestionControl::start`]; null if it failed.
    pub start: unsafe extern "C" fn(*const Start) -> *mut c_void,
    /// Frees what `start` returned.
    pub end: unsafe extern "C" fn(*mut c_void),
    /// [`CongestionControl::on_established`]; [`NO_TIME`] without an RTT.
    pub on_established: unsafe extern "C" fn(*mut c_void, u64) -> i32,
    /// [`CongestionControl::on_ack`]; the exit is [`Reason::NONE`] before the call.
    pub on_ack:
        unsafe extern "C" fn(*mut c_void, *const Ack, *mut Window, *mut SlowStartExit) -> i32,
    /// [`CongestionControl::on_loss`]
    pub on_loss: unsafe extern "C" fn(*mut c_void, *const Loss, *mut Window) -> i32,
    /// [`CongestionControl::on_undo`]
    pub on_undo: unsafe extern "C" fn(*mut c_void, *mut Window) -> i32,
    /// [`CongestionControl::on_recovered`]
    pub on_recovered: unsafe extern "C" fn(*mut c_void, u64, *mut Window) -> i32,
    /// [`CongestionControl::on_restart`]
    pub on_restart: unsafe extern "C" fn(*mut c_void, u64, u64, *mut Window) -> i32,
}

// SAFETY: it holds a name and functions, which never change.
unsafe impl Sync for Library {}

impl Library {
    /// The library of an algorithm.
    pub const fn of<T: CongestionControl>() -> Self {
        Self {
            abi: ABI,
            size: size_of::<Self>() as u32,
            name: T::NAME.as_ptr(),
            model_based: T::MODEL_BASED,
            start: glue::start::<T>,
            end: glue::end::<T>,
            on_established: glue::on_established::<T>,
            on_ack: glue::on_ack::<T>,
            on_loss: glue::on_loss::<T>,
            on_undo: glue::on_undo::<T>,
            on_recovered: glue::on_recovered::<T>,
            on_restart: glue::on_restart::<T>,
        }
    }
}

/// Exports an algorithm as the one of this library: `crate::congestion_control!(Mine);`
#[macro_export]
macro_rules! congestion_control {
    ($algorithm:ty) => {
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, missing_docs)]
        pub static airpath_congestion_control: $crate::abi::Library =
            $crate::abi::Library::of::<$algorithm>();
    };
}

/// The functions of a [`Library`] for an algorithm in Rust. A panic becomes a failure.
mod glue {
    #![allow(clippy::missing_safety_doc, reason = "`Library` says what each pointer is")]

    use std::ffi::c_void;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{Ack, CongestionControl, Loss, NO_TIME, SlowStartExit, Start, Window};

    pub(super) unsafe extern "C" fn start<T: CongestionControl>(
        start: *const Start,
    ) -> *mut c_void {
        // SAFETY: airpath passes a pointer to a Start that outlives the call.
        let start = unsafe { &*start };
        let new = catch_unwind(|| Box::into_raw(Box::new(T::start(start))).cast());
        new.unwrap_or(std::ptr::null_mut())
    }

    pub(super) unsafe extern "C" fn end<T>(state: *mut c_void) {
        // SAFETY: `start` made it of a box, and airpath ends it once.
        let ended = catch_unwind(|| drop(unsafe { Box::from_raw(state.cast::<T>()) }));
        // Its memory is lost, and nothing else.
        let _ = ended;
    }

    pub(super) unsafe extern "C" fn on_established<T: CongestionControl>(
        state: *mut c_void,
        rtt_ns: u64,
    ) -> i32 {
        call(state, |control: &mut T| {
            control.on_established((rtt_ns != NO_TIME).then_some(rtt_ns));
        })
    }

    pub(super) unsafe extern "C" fn on_ack<T: CongestionControl>(
        state: *mut c_void,
        ack: *const Ack,
        window: *mut Window,
        exit: *mut SlowStartExit,
    ) -> i32 {
        // SAFETY: airpath passes three pointers to different structures that outlive the call.
        let (ack, window, exit) = unsafe { (&*ack, &mut *window, &mut *exit) };
        call(state, |control: &mut T| {
            if let Some(ended) = control.on_ack(ack, window) {
                *exit = ended;
            }
        })
    }

    pub(super) unsafe extern "C" fn on_loss<T: CongestionControl>(
        state: *mut c_void,
        loss: *const Loss,
        window: *mut Window,
    ) -> i32 {
        // SAFETY: as above.
        let (loss, window) = unsafe { (&*loss, &mut *window) };
        call(state, |control: &mut T| control.on_loss(loss, window))
    }

    pub(super) unsafe extern "C" fn on_undo<T: CongestionControl>(
        state: *mut c_void,
        window: *mut Window,
    ) -> i32 {
        // SAFETY: as above.
        let window = unsafe { &mut *window };
        call(state, |control: &mut T| control.on_undo(window))
    }

    pub(super) unsafe extern "C" fn on_recovered<T: CongestionControl>(
        state: *mut c_void,
        now_ns: u64,
        window: *mut Window,
    ) -> i32 {
        // SAFETY: as above.
        let window = unsafe { &mut *window };
        call(state, |control: &mut T| control.on_recovered(now_ns, window))
    }

    pub(super) unsafe extern "C" fn on_restart<T: CongestionControl>(
        state: *mut c_void,
        now_ns: u64,
        last_sent_ns: u64,
        window: *mut Window,
    ) -> i32 {
        // SAFETY: as above.
        let window = unsafe { &mut *window };
        call(state, |control: &mut T| control.on_restart(now_ns, last_sent_ns, window))
    }

    /// 0, or 1 after a panic.
    fn call<T>(state: *mut c_void, work: impl FnOnce(&mut T)) -> i32 {
        // SAFETY: `start` made it of a box of this type, and airpath makes one call at a time.
        let control = unsafe { &mut *state.cast::<T>() };
        i32::from(catch_unwind(AssertUnwindSafe(|| work(control))).is_err())
    }
}
