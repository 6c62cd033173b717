//! A flow prepared for drawing: all of it in bins of several widths, and single packets where they
//! matter, in a size that does not grow with the capture.

use serde::Serialize;

use crate::Segments;
use crate::column::{Column, Rough};
use crate::tcp::Limit;

/// Shortest gap between two segments that counts as a stall. The minimum time-out of RFC 6298 (2.4)
/// is longer: a second.
const STALL_NS: u64 = 200_000_000;
/// Most segments of slow start, and around a loss or a stall, that are shown one by one.
const FIRST_SEGMENTS: usize = 2_000;
const AROUND: usize = 80;
/// One bin for each pixel of a wide screen, and the finest level for a part that is drawn larger.
const COARSE: usize = 1_024;

/// How much of a flow is kept.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Bins of the finest level.
    pub bins: usize,
    /// Most packets that are kept one by one.
    pub packets: usize,
}

/// What happened in each bin; NaN where nothing did. Bytes count from the first one of the flow.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ViewLevel"))]
pub struct Level {
    /// Width of a bin.
    pub bin_ms: f64,
    /// The lowest and the highest byte that was sent.
    pub low: Rough,
    pub high: Rough,
    /// Cumulative acknowledgement at the end of the bin, and the window's right edge then.
    pub acked: Rough,
    pub edge: Rough,
    /// Segments that were retransmitted.
    pub again: Rough,
    /// Maximum of the bytes in flight.
    pub flight: Rough,
    /// The shortest and the longest round-trip time that ended in the bin, in ms.
    pub rtt_low: Rough,
    pub rtt_high: Rough,
    /// Payload that was acknowledged, cumulatively or selectively, in bytes.
    pub delivered: Rough,
    /// What limited the sender for most of the bin: 0 path or congestion window, 1 receive window,
    /// 2 nothing to send, 3 recovery. Next to the receiver this says nothing.
    pub limit: Rough,
}

/// Single packets, complete within the given ranges of time (ms). Times are ms after `begin_ms`.
/// There are at most twice as many acknowledgements as segments, and at most as many selective
/// ones.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ViewPackets"))]
pub struct Packets {
    /// Start and end of each range, in pairs.
    pub ranges: Column,
    /// When each segment was sent, its first byte, its length, 1 if it was a retransmission, its
    /// frame number in the file, and its round-trip time in ms (NaN: none).
    pub sent: Column,
    pub offset: Column,
    pub length: Rough,
    pub again: Rough,
    pub frame: Column,
    pub rtt: Rough,
    /// When each acknowledgement passed, the byte that it acknowledges, and the window's right
    /// edge.
    pub acked_at: Column,
    pub acked: Column,
    pub edge: Column,
    /// Selective acknowledgements: when each passed, the first byte of the block, and the byte
    /// after its last one.
    pub sack_at: Column,
    pub sack_from: Column,
    pub sack_to: Column,
}

/// One end's data, prepared for drawing.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct View {
    /// Time of the first segment or acknowledgement, after the capture's first packet.
    pub begin_ms: f64,
    /// Time from the first to the last of them.
    pub duration_ms: f64,
    /// Levels of bins, the coarsest first.
    pub levels: Vec<Level>,
    /// The packets that are drawn one by one.
    pub packets: Packets,
}

/// Bins and packets of a flow; `window_scale` is the shift of the receiver's windows, if it is
/// known.
pub fn view(segments: &Segments, window_scale: Option<u8>, detail: Detail) -> View {
    // Times in a file may go backwards.
    let begin =
        [segments.sent_ns.iter().min(), segments.ack_ns.iter().min()].into_iter().flatten().min();
    let end =
        [segments.sent_ns.iter().max(), segments.ack_ns.iter().max()].into_iter().flatten().max();
    let (Some(&begin), Some(&end)) = (begin, end) else { return View::default() };
    let span = (end - begin).max(1);
    let limits = limits(segments, window_scale);
    let level = |bins| Level {
        limit: of_bins(&limits, begin, span, bins),
        ..level(segments, window_scale, begin, span, bins)
    };
    let mut levels = Vec::new();
    let mut bins = COARSE;
    while bins < detail.bins && bins < segments.sent_ns.len() {
        levels.push(level(bins));
        bins *= 8;
    }
    levels.push(level(detail.bins.min(segments.sent_ns.len().max(1))));
    View {
        begin_ms: begin as f64 / 1e6,
        duration_ms: span as f64 / 1e6,
        levels,
        packets: packets(segments, window_scale, begin, detail.packets),
    }
}

/// The right edge of the window; none for the SYN, whose window is not scaled, or if the scale is
/// not known.
fn edge(segments: &Segments, at: usize, scale: Option<u8>) -> Option<u64> {
    let scale = scale.filter(|_| at > 0)?;
    Some(segments.ack_offset[at] + (u64::from(segments.window[at]) << scale))
}

fn level(segments: &Segments, scale: Option<u8>, begin: u64, span: u64, bins: usize) -> Level {
    let nothing = || Rough(vec![f32::NAN; bins]);
    let mut level = Level {
        bin_ms: span as f64 / 1e6 / bins as f64,
        low: nothing(),
        high: nothing(),
        acked: nothing(),
        edge: nothing(),
        again: Rough(vec![0.0; bins]),
        flight: nothing(),
        rtt_low: nothing(),
        rtt_high: nothing(),
        delivered: Rough(vec![0.0; bins]),
        limit: Rough::default(),
    };
    let bin = |at: u64| {
        let share = (at - begin) as f64 / span as f64;
        ((share * bins as f64) as usize).min(bins - 1)
    };
    let (mut highest, mut acks, mut known) = (0u64, 0, 0u64);
    for index in 0..segments.sent_ns.len() {
        let at = segments.sent_ns[index];
        let (from, to) =
            (segments.offset[index], segments.offset[index] + u64::from(segments.payload[index]));
        let here = bin(at);
        lower(&mut level.low.0[here], from as f32);
        raise(&mut level.high.0[here], to as f32);
        level.again.0[here] += f32::from(u8::from(segments.is_again[index]));
        highest = highest.max(to);
        while acks < segments.ack_ns.len() && segments.ack_ns[acks] <= at {
            known = known.max(segments.delivered[acks]);
            acks += 1;
        }
        raise(&mut level.flight.0[here], highest.saturating_sub(known) as f32);
        if let Some(trip) = round_trip(segments, index) {
            let there = bin(at + trip);
            lower(&mut level.rtt_low.0[there], trip as f32 / 1e6);
            raise(&mut level.rtt_high.0[there], trip as f32 / 1e6);
        }
    }
    let mut before = 0;
    for index in 0..segments.ack_ns.len() {
        let here = bin(segments.ack_ns[index]);
        raise(&mut level.acked.0[here], segments.ack_offset[index] as f32);
        if let Some(edge) = edge(segments, index, scale) {
            raise(&mut level.edge.0[here], edge as f32);
        }
        let delivered = segments.delivered[index];
        level.delivered.0[here] += delivered.saturating_sub(before) as f32;
        before = before.max(delivered);
    }
    level
}

/// When each limit on the sender begins, in order.
fn limits(segments: &Segments, scale: Option<u8>) -> Vec<(u64, Limit)> {
    let full = u64::from(segments.payload.iter().copied().max().unwrap_or_default());
    let mut changes: Vec<(u64, Limit)> = Vec::new();
    let (mut sent, mut acks) = (0, 0);
    let (mut highest, mut acked, mut recovers_until, mut right_edge) = (0, 0, 0, u64::MAX);
    while sent < segments.sent_ns.len() || acks < segments.ack_ns.len() {
        let [next_sent, next_ack] =
            [segments.sent_ns.get(sent), segments.ack_ns.get(acks)].map(|at| at.copied());
        let now = next_sent.unwrap_or(u64::MAX).min(next_ack.unwrap_or(u64::MAX));
        if next_ack == Some(now) {
            acked = acked.max(segments.ack_offset[acks]);
            right_edge = edge(segments, acks, scale).unwrap_or(right_edge);
            acks += 1;
        } else {
            highest = highest.max(segments.offset[sent] + u64::from(segments.payload[sent]));
            if segments.is_again[sent] && acked <= segments.offset[sent] {
                recovers_until = highest;
            }
            sent += 1;
        }
        let has_room = right_edge.saturating_sub(highest) >= full;
        let is_closed = acks > 0 && right_edge <= acked;
        let limit = Limit::of(highest, acked, recovers_until, has_room, is_closed);
        if changes.last().is_none_or(|&(_, before)| before != limit) {
            changes.push((now, limit));
        }
    }
    changes
}

/// The limit that lasted longest in each bin.
fn of_bins(changes: &[(u64, Limit)], begin: u64, span: u64, bins: usize) -> Rough {
    let width = span as f64 / bins as f64;
    let mut lasted = vec![[0.0; 4]; bins];
    for (index, &(from, limit)) in changes.iter().enumerate() {
        let to = changes.get(index + 1).map_or(begin.saturating_add(span), |&(to, _)| to);
        // Times in a file may go backwards.
        let [from, to] = [from, to].map(|at| at.saturating_sub(begin).min(span) as f64);
        let first = ((from / width) as usize).min(bins - 1);
        for (bin, lasted) in lasted.iter_mut().enumerate().skip(first) {
            let (left, right) = (bin as f64 * width, (bin + 1) as f64 * width);
            if left >= to {
                break;
            }
            lasted[limit as usize] += (to.min(right) - from.max(left)).max(0.0);
        }
    }
    let longest = |each: &[f64; 4]| {
        let (most, lasted) = (each.iter().enumerate()).fold((0, 0.0), |best, (at, &lasted)| {
            if lasted > best.1 { (at, lasted) } else { best }
        });
        if lasted > 0.0 { most as f32 } else { f32::NAN }
    };
    Rough(lasted.iter().map(longest).collect())
}

/// Time from a segment that was not retransmitted to its acknowledgement, in ns.
fn round_trip(segments: &Segments, index: usize) -> Option<u64> {
    let once = segments.sent_again[index] == 0 && !segments.is_again[index];
    let acked = segments.acked_ns[index].filter(|_| once)?;
    acked.checked_sub(segments.sent_ns[index])
}

fn lower(kept: &mut f32, value: f32) {
    *kept = kept.min(value);
}

fn raise(kept: &mut f32, value: f32) {
    *kept = kept.max(value);
}

/// The first segments, and those around losses and stalls, as far as there is room.
fn packets(segments: &Segments, scale: Option<u8>, begin: u64, most: usize) -> Packets {
    let ranges = ranges(segments, most);
    let ms = |at: u64| at.saturating_sub(begin) as f64 / 1e6;
    let mut kept = Packets::default();
    let times = &segments.sent_ns;
    for &(first, last) in &ranges {
        let (from, to) = (times[first], times[last]);
        kept.ranges.0.extend([ms(from), ms(to)]);
        for (index, &sent) in times.iter().enumerate().take(last + 1).skip(first) {
            kept.sent.0.push(ms(sent));
            kept.offset.0.push(segments.offset[index] as f64);
            kept.length.0.push(segments.payload[index] as f32);
            kept.again.0.push(f32::from(u8::from(segments.is_again[index])));
            kept.frame.0.push(segments.frame[index] as f64);
            let trip = round_trip(segments, index).map_or(f32::NAN, |trip| trip as f32 / 1e6);
            kept.rtt.0.push(trip);
        }
        let acks = segments.ack_ns.partition_point(|&at| at < from)
            ..segments.ack_ns.partition_point(|&at| at <= to);
        for index in acks.take((2 * most).saturating_sub(kept.acked.0.len())) {
            kept.acked_at.0.push(ms(segments.ack_ns[index]));
            kept.acked.0.push(segments.ack_offset[index] as f64);
            kept.edge.0.push(edge(segments, index, scale).map_or(f64::NAN, |edge| edge as f64));
        }
        let blocks = segments.sack_ns.partition_point(|&at| at < from)
            ..segments.sack_ns.partition_point(|&at| at <= to);
        for index in blocks.take(most.saturating_sub(kept.sack_at.0.len())) {
            kept.sack_at.0.push(ms(segments.sack_ns[index]));
            kept.sack_from.0.push(segments.sack_from[index] as f64);
            kept.sack_to.0.push(segments.sack_to[index] as f64);
        }
    }
    kept
}

/// First and last segment of each range; the ranges are ordered and disjoint.
fn ranges(segments: &Segments, most: usize) -> Vec<(usize, usize)> {
    let count = segments.sent_ns.len();
    if count == 0 {
        return Vec::new();
    }
    if count <= most {
        return vec![(0, count - 1)];
    }
    let mut room = most;
    let mut wanted = vec![(0, FIRST_SEGMENTS.min(most) - 1)];
    room -= FIRST_SEGMENTS.min(most);
    let mut behind = 0;
    for index in 1..count {
        let lost = segments.sent_again[index] > 0 && segments.sent_again[index - 1] == 0;
        let silent =
            segments.sent_ns[index].saturating_sub(segments.sent_ns[index - 1]) >= STALL_NS;
        if !(lost || silent) || index < behind {
            continue;
        }
        let (first, last) = (index.saturating_sub(AROUND), (index + 2 * AROUND).min(count - 1));
        let size = last + 1 - first;
        if size > room {
            break;
        }
        room -= size;
        behind = last + 1;
        wanted.push((first, last));
    }
    let mut apart: Vec<(usize, usize)> = Vec::new();
    for (first, last) in wanted {
        match apart.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => apart.push((first, last)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment each ms, acknowledged 10 ms later; number 500 is retransmitted.
    fn segments(count: usize) -> Segments {
        let mut made = Segments::default();
        for index in 0..count {
            let at = index as u64 * 1_000_000;
            made.sent_ns.push(at);
            made.frame.push(index as u64 + 1);
            made.offset.push(index as u64 * 1000);
            made.payload.push(1000);
            made.sent_again.push(u32::from(index == 500));
            made.is_again.push(false);
            made.acked_ns.push(Some(at + 10_000_000));
            made.ack_ns.push(at + 10_000_000);
            made.delivered.push((index as u64 + 1) * 1000);
            made.ack_offset.push((index as u64 + 1) * 1000);
            made.window.push(50);
        }
        made
    }

    #[test]
    fn each_level_has_all_bytes_and_the_same_round_trips() {
        let found = view(&segments(20_000), Some(7), Detail { bins: 8_192, packets: 3_000 });
        assert_eq!(found.levels.len(), 2);
        for level in &found.levels {
            let delivered: f64 = level.delivered.0.iter().map(|&each| f64::from(each)).sum();
            assert_eq!(delivered, 20_000.0 * 1000.0);
            let trips = level.rtt_high.0.iter().filter(|each| !each.is_nan());
            assert!(trips.clone().all(|&trip| (trip - 10.0).abs() < 1e-3));
            assert_eq!(
                level.flight.0.iter().fold(0.0, |most: f32, &each| most.max(each)),
                10_000.0
            );
            let span = level.bin_ms * level.low.0.len() as f64;
            assert!((span - found.duration_ms).abs() < 1e-6);
        }
    }

    #[test]
    fn losses_and_the_beginning_are_shown_packet_by_packet_within_bounds() {
        let found = view(&segments(20_000), Some(7), Detail { bins: 1_024, packets: 2_300 });
        let ranges = &found.packets.ranges.0;
        assert_eq!(ranges[0], 0.0);
        // The loss at 500 ms lies in the first range.
        assert!(ranges[1] >= 660.0);
        assert!(found.packets.sent.0.len() <= 2_300);
        assert_eq!(found.packets.acked.0.len(), found.packets.edge.0.len());
        let windows = found.packets.edge.0.iter().zip(&found.packets.acked.0);
        assert!(windows.skip(1).all(|(edge, acked)| edge - acked == 6_400.0));
    }

    #[test]
    fn what_held_the_sender_back_is_in_each_bin() {
        let mut made = segments(400);
        // A pause after 200 segments, and a window of 3.2 kB from 300 on.
        for index in 0..400 {
            let pause = if index < 200 { 0 } else { 300_000_000 };
            for at in [&mut made.sent_ns[index], &mut made.ack_ns[index]] {
                *at += pause;
            }
            made.window[index] = if index < 300 { 500 } else { 25 };
            made.sent_again[index] = 0;
        }
        made.is_again[100] = true;
        let found = view(&made, Some(7), Detail { bins: 71, packets: 100 });
        let [level] = &found.levels[..] else { panic!("one level") };
        assert!((level.bin_ms - 10.0).abs() < 0.02);
        let limits: Vec<_> = level.limit.0.iter().map(|&each| each as u8).collect();
        // It is retransmitted at 100 ms and acknowledged at 110 ms; everything is acknowledged at
        // 210 ms.
        assert_eq!(limits[9..12], [0, 3, 0]);
        assert_eq!(limits[20..52], [[0; 1].as_slice(), &[2; 29], &[0; 2]].concat());
        assert_eq!(limits[62..70], [1; 8]);
    }

    #[test]
    fn nothing_is_no_view() {
        let found = view(&Segments::default(), None, Detail { bins: 100, packets: 100 });
        assert!(found.levels.is_empty());
    }
}
