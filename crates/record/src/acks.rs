//! The table of acknowledgements.

use crate::column::Name;
use crate::table::table;

table! {
    /// If `run.ack_table` is set, the table has one row for each acknowledgement that a TCP sender received. If an
    /// emulation reads its sockets at intervals (`emulation.observer` is `poll`), it has one row for each reading
    /// that found something acknowledged. The last six columns show HyStart or HyStart++ (RFC 9406) as the
    /// acknowledgement left it. Without HyStart they are null: for flows that have neither, after the
    /// acknowledgement that ended slow start, and where an emulation does not observe by BPF, because TCP_INFO
    /// does not show it. Of the kernel's own CUBIC the state is read; the two limits are computed from it,
    /// because the kernel keeps neither.
    AckRow => Acks {
        /// When it came.
        time_ns: i64,
        /// Flow.
        flow: Name,
        /// Payload acknowledged since the start.
        acked_bytes: u64,
        /// Congestion window after it was processed.
        cwnd_segments: u32,
        /// Slow start threshold after it was processed. Null: before the first congestion.
        ssthresh_segments: Option<u32>,
        /// Smoothed RTT. Null: before the first RTT.
        srtt_ms: Option<f64>,
        /// This acknowledgement's own RTT. Null: if it gave none.
        rtt_ms: Option<f64>,
        /// Segments in flight (RFC 6675 pipe).
        inflight_segments: u32,
        /// Smallest RTT sample of the round so far; with `hystart-4.19` and `hystart-5.6` of its first eight
        /// samples alone. An acknowledgement's sample is that of the newest segment it covers. HyStart++:
        /// currentRoundMinRTT. Null: without HyStart, and in a round without a sample.
        round_min_rtt_ms: Option<f64>,
        /// The connection's smallest RTT plus an eighth of it, at least 4 ms and at most 16 ms: once sampling is
        /// over, a round whose smallest RTT is above it ends slow start. HyStart++: lastRoundMinRTT + RttThresh,
        /// from which conservative slow start (CSS) begins; in CSS cssBaselineMinRtt, below which it ends. Null:
        /// without HyStart, without a delay test, before the first RTT, and in the first round of HyStart++.
        round_rtt_threshold_ms: Option<f64>,
        /// RTT samples of the round, at most 8: below 8 it is in its sampling phase. Null: without HyStart,
        /// without a delay test, and below a cwnd of 16 segments, where HyStart takes none.
        round_samples: Option<u32>,
        /// Time from the round's start to the last acknowledgement of the train that began with it. Null: without
        /// HyStart, without that test, below a cwnd of 16 segments, before the first round, and for HyStart++.
        ack_train_ms: Option<f64>,
        /// A longer train ends slow start. Null: without HyStart, without that test, before the first RTT, and for
        /// HyStart++.
        ack_train_limit_ms: Option<f64>,
        /// True in CSS, where cwnd grows a fourth as fast. Null: for flows without HyStart++, and after slow start.
        css: Option<bool>,
    }
}
