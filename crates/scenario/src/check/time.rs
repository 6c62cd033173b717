//! Checks that a path takes time, and carries no more than can be simulated.

use airpath_base::Duration;

use crate::flow::is_transfer;
use crate::problem::Problems;
use crate::proxy::{self, Section};
use crate::read::Fields;
use crate::spec::{Chosen, FASTEST_BPS, FlowDirection, StageKind};
use crate::stage::{Stage, server_delay};

/// Most packets per second of a flow that only TCP's window limits: no host sends more, and such a
/// run would be slower than the time that it simulates (docs/adr/0117).
const MOST_PACKETS_PER_S: f64 = 1e8;

/// The fastest link that still limits a flow, in bits per second: over a faster one,
/// acknowledgements of 52 bytes may exceed that many packets, too.
const FASTEST_OF_ACKS: u64 = 2_000_000_000;

/// The shortest time per packet of a host or a modem that still limits a flow.
const SHORTEST_PROCESSING: Duration = Duration::from_nanos(100);

/// The smallest packet that may fill a modem's block, in bytes: headers of IPv4 and TCP.
const SMALLEST_PACKET: u64 = 40;

/// The largest burst of a shaper that still limits a flow, in bytes: a larger one lets everything
/// pass at once for longer than any run that anybody waits for.
const LARGEST_BURST: u64 = 1 << 33;

/// The largest window that can be advertised, in bytes (RFC 7323 2.3); without the option the limit
/// is RFC 9293's.
const LARGEST_WINDOW: u64 = 1 << 30;
const LARGEST_UNSCALED: u64 = 65_535;

/// Refuses a path on which TCP would send without end. Over a path that takes no time, TCP would
/// send everything at its first instant; one end and a proxy would do so up to their buffers. Over
/// a path that takes little time and has no link, TCP would send a window in each of countless
/// round trips.
pub(crate) fn check(
    down: &[Stage],
    up: &[Stage],
    radio: bool,
    run: &Fields,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let sections = proxy::sections(down, up);
    // The radio takes time, and has a rate; it is in the section at the UE's end.
    let wired = if radio { sections.len() - 1 } else { sections.len() };
    for section in &sections[..wired] {
        let round_trip = round_trip(section);
        for flow in flows.iter().filter(|flow| flow.variant.is_some_and(is_transfer)) {
            let (to, back) = match flow.chosen() {
                Some(FlowDirection::Up) => (section.up, section.down),
                Some(FlowDirection::Down) | None => (section.down, section.up),
            };
            let bounded = |stage: &Stage| has_rate(stage, FASTEST_BPS);
            if to.iter().any(bounded) || back.iter().any(|stage| has_rate(stage, FASTEST_OF_ACKS)) {
                continue;
            }
            let id = flow.text("id").unwrap_or_default();
            if round_trip <= 0.0 {
                problems.add_with_help(
                    flow.origin_of("kind"),
                    format!(
                        "{} has no delay and no link, so flow {id:?} would send everything at the same instant",
                        section.name
                    ),
                    "add a stage to [[path.down]] or [[path.up]], e.g. stage = \"link\" with \
                     rate_mbps, or stage = \"delay\" with delay_ms",
                );
                // The problem is the same for all flows.
                break;
            }
            let window = window(flow);
            let per_s = packets_per_s(flow, run, window, round_trip);
            if per_s > MOST_PACKETS_PER_S {
                problems.add_with_help(
                    flow.origin_of("kind"),
                    format!(
                        "nothing on {} limits the rate, so flow {id:?} could send {} \
                         every {} ms: {} million packets per second",
                        section.name,
                        match flow.count("streams") {
                            None | Some(1) => format!("its window of {window} bytes"),
                            Some(streams) => {
                                format!("the windows of its {streams} streams, {window} bytes each,")
                            }
                        },
                        (round_trip * 1e6).round() / 1e3,
                        (per_s * 1e-6).round(),
                    ),
                    format!(
                        "at most {} million are allowed: add a stage to [[path.down]] or [[path.up]] with \
                         stage = \"link\" and rate_mbps, or set a longer delay or a smaller \
                         `window_bytes`",
                        MOST_PACKETS_PER_S * 1e-6,
                    ),
                );
            }
        }
    }
}

/// Packets per second of a flow that sends one window per round trip of so many seconds. What is
/// sent in less than a second counts as if it took one.
fn packets_per_s(flow: &Fields, run: &Fields, window: u64, round_trip: f64) -> f64 {
    let seconds = |fields: &Fields, name| fields.time(name).map(Duration::as_secs_f64);
    let left = seconds(run, "duration_s").unwrap_or(0.0) - seconds(flow, "start_s").unwrap_or(0.0);
    let sends = seconds(flow, "duration_s").map_or(left, |own| own.min(left));
    let bytes = window as f64 * (sends / round_trip + 1.0);
    let bytes = flow.count("size_bytes").map_or(bytes, |size| bytes.min(size as f64));
    let segment = flow.count("mss_bytes").unwrap_or(1).max(1);
    let streams = flow.count("streams").unwrap_or(1);
    bytes / segment as f64 * streams as f64 / sends.max(1.0)
}

/// The most bytes that a sender can have in flight.
fn window(flow: &Fields) -> u64 {
    let scaled = flow.flag("options.window_scaling") != Some(false);
    let fixed = flow.count("fixed_window_segments").zip(flow.count("mss_bytes"));
    let buffers = ["send_buffer_bytes", "receive_buffer_bytes"].map(|name| flow.count(name));
    let fixed = fixed.map(|(segments, bytes)| segments * bytes);
    let most = if scaled { LARGEST_WINDOW } else { LARGEST_UNSCALED };
    buffers.into_iter().chain([fixed]).flatten().fold(most, u64::min)
}

fn stages<'a>(section: &Section<'a>) -> impl Iterator<Item = &'a Stage> {
    section.down.iter().chain(section.up)
}

/// The shortest round trip over stages without a rate, in seconds.
fn round_trip(section: &Section<'_>) -> f64 {
    let delays: f64 = stages(section).map(delay).sum();
    // Departures of a batch are at least its interval apart, however short the other delays.
    let intervals = stages(section).filter_map(|stage| stage.fields.time("interval_ms"));
    intervals.map(Duration::as_secs_f64).fold(delays, f64::max)
}

/// Seconds by which a stage delays a packet.
fn delay(stage: &Stage) -> f64 {
    let time = |name| stage.fields.time(name).map_or(0.0, Duration::as_secs_f64);
    let site = stage.fields.chosen().map(server_delay);
    time("delay_ms")
        + time("jitter_ms")
        + time("coalescing_ms")
        + time("transfer_ms")
        + site.map_or(0.0, Duration::as_secs_f64)
}

/// Whether a stage sends one packet at a time, at no more than `fastest` bits per second. A shaper
/// with a large burst does not: it lets the burst pass at once.
fn has_rate(stage: &Stage, fastest: u64) -> bool {
    let fields = &stage.fields;
    let slow = || fields.rate("rate_mbps").is_some_and(|rate| rate.bps() <= fastest);
    match fields.variant.and_then(StageKind::of) {
        Some(StageKind::Link) => slow(),
        Some(StageKind::Trace) => true,
        Some(StageKind::Shaper) => slow() && fields.count("burst_bytes") <= Some(LARGEST_BURST),
        Some(StageKind::Host) => fields.time("processing_ms") >= Some(SHORTEST_PROCESSING),
        Some(StageKind::Modem) => {
            let packets = [fields.count("block_packets"), fields.count("block_bytes")];
            let [packets, bytes] = packets.map(|most| most.unwrap_or(u64::MAX));
            let most = packets.min(bytes / SMALLEST_PACKET).max(1);
            fields.time("transfer_ms") >= Some(SHORTEST_PROCESSING * most)
        }
        _ => false,
    }
}
