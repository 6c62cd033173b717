//! Nothing is allocated per packet in steady state.

#![allow(unsafe_code, reason = "a global allocator is unsafe by its trait")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_longer_run_allocates_no_more_per_packet() {
    let proxy = |direction| format!("[[path.{direction}]]\nstage = \"proxy\"\n");
    let far = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n";
    no_more_per_packet(WIRE);
    no_more_per_packet(&format!("{far}{}{WIRE}{}", proxy("down"), proxy("up")));
}

const WIRE: &str = "
[run]
sample_interval_ms = 1000
[[path.down]]
stage = \"link\"
rate_mbps = 100
queue_packets = 200
[[path.down]]
stage = \"delay\"
delay_ms = 10
jitter_ms = 1
[[path.down]]
stage = \"loss\"
probability = 0.0005
[[path.up]]
stage = \"delay\"
delay_ms = 10
[[flow]]
kind = \"bulk\"
[[flow]]
kind = \"udp\"
rate_mbps = 5
";

fn no_more_per_packet(text: &str) {
    let measure = |seconds: u32| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let summary = common::run(text, &[&format!("run.duration_s={seconds}")]);
        let flows = summary.flows.iter().map(|flow| flow.segments_sent);
        let proxies = summary.proxies.iter().map(|proxy| proxy.segments_sent);
        let packets: u64 = flows.chain(proxies).sum();
        (ALLOCATIONS.load(Ordering::Relaxed) - before, packets)
    };
    let (short, packets) = measure(20);
    let (long, more_packets) = measure(80);
    let (allocations, packets) = (long.saturating_sub(short), more_packets - packets);
    // Rows of tables grow their buffers now and then.
    assert!(packets > 200_000, "{packets} packets are too few to tell");
    assert!(allocations < 1_000, "{allocations} allocations for {packets} packets more");
}
