//! Nothing is allocated per packet in steady state.

mod common;

use airpath_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

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
        let before = allocations();
        let summary = common::run(text, &[&format!("run.duration_s={seconds}")]);
        let flows = summary.flows.iter().map(|flow| flow.segments_sent);
        let proxies = summary.proxies.iter().map(|proxy| proxy.segments_sent);
        let packets: u64 = flows.chain(proxies).sum();
        (allocations() - before, packets)
    };
    let (short, packets) = measure(20);
    let (long, more_packets) = measure(80);
    let (allocations, packets) = (long.saturating_sub(short), more_packets - packets);
    // Tables grow their buffers now and then.
    assert!(packets > 200_000, "{packets} packets are too few to tell");
    assert!(allocations < 1_000, "{allocations} allocations for {packets} packets more");
}
