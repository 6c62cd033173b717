//! The table of acknowledgements.

use airpath_base::Duration;
use arrow::record_batch::RecordBatch;

use crate::Names;
use crate::column::{AboutTable, Column, Name, ROWS_AT_ONCE};
use crate::large_pages::LargePages;
use crate::table::table;

table! {
    /// If `run.ack_table` is set, the table has one row for each acknowledgement that a TCP sender received. If an
    /// emulation reads its sockets at intervals (`emulation.observer` is `poll`), it has one row for each reading that
    /// found newly acknowledged data. The last six columns show HyStart or HyStart++ (RFC 9406) after the
    /// acknowledgement was processed. Without HyStart they are null: for flows that use neither, after the
    /// acknowledgement that ended slow start, and where an emulation does not observe by BPF, because TCP_INFO does not
    /// show HyStart. In an emulation the state is that of the kernel's own CUBIC; the two limits are computed from it,
    /// because the kernel stores neither.
    AckRow => Acks {
        /// Time at which the acknowledgement arrived.
        time_ns: i64,
        /// Flow.
        flow: Name,
        /// Payload acknowledged since the start.
        acked_bytes: u64,
        /// Congestion window after the acknowledgement was processed.
        cwnd_segments: u32,
        /// Slow start threshold after the acknowledgement was processed. Null: before the first congestion event.
        ssthresh_segments: Option<u32>,
        /// Smoothed RTT. Null: before the first RTT.
        srtt_ms: Option<f64>,
        /// RTT sample of this acknowledgement. Null: if it gave none.
        rtt_ms: Option<f64>,
        /// Segments in flight (RFC 6675 pipe).
        inflight_segments: u32,
        /// Smallest RTT sample of the round so far; with `hystart-4.19` and `hystart-5.6` only of its first eight
        /// samples. An acknowledgement's sample is that of the newest segment it covers. HyStart++: currentRoundMinRTT.
        /// Null: without HyStart, and in a round without a sample.
        round_min_rtt_ms: Option<f64>,
        /// The connection's smallest RTT plus an eighth of it, at least 4 ms and at most 16 ms: once sampling is over,
        /// slow start ends if the round's smallest RTT is above it. HyStart++: lastRoundMinRTT + RttThresh, at which
        /// conservative slow start (CSS) begins; in CSS cssBaselineMinRtt, below which CSS ends. Null: without HyStart,
        /// without a delay test, before the first RTT, and in the first round of HyStart++.
        round_rtt_threshold_ms: Option<f64>,
        /// RTT samples of the round, at most 8; below 8 the round is in its sampling phase. Null: without HyStart,
        /// without a delay test, and below a cwnd of 16 segments, where HyStart takes none.
        round_samples: Option<u32>,
        /// Time from the round's start to the last acknowledgement of the train that began with it. Null: without
        /// HyStart, without the ACK train test, below a cwnd of 16 segments, before the first round, and for HyStart++.
        ack_train_ms: Option<f64>,
        /// Limit of the train: a longer one ends slow start. Null: without HyStart, without the ACK train test, before
        /// the first RTT, and for HyStart++.
        ack_train_limit_ms: Option<f64>,
        /// True in CSS, where cwnd grows a quarter as fast. Null: for flows without HyStart++, and after slow start.
        css: Option<bool>,
    }
}

/// An [`AckRow`] without HyStart's columns, as most rows are, in fewer words.
#[derive(Clone, Copy, Debug)]
pub struct BareAckRow {
    /// When the acknowledgement arrived.
    pub time_ns: i64,
    /// The flow whose sender received it.
    pub flow: Name,
    /// Payload acknowledged since the start.
    pub acked_bytes: u64,
    /// The congestion window after it was processed.
    pub cwnd_segments: u32,
    /// The slow start threshold; `None` before the first congestion.
    pub ssthresh_segments: Option<u32>,
    /// Smoothed RTT; `None` before the first RTT.
    pub srtt: Option<Duration>,
    /// The acknowledgement's own RTT; `None` if it gave none.
    pub rtt: Option<Duration>,
    /// Segments in flight (RFC 6675 pipe).
    pub inflight_segments: u32,
}

impl From<BareAckRow> for AckRow {
    fn from(row: BareAckRow) -> Self {
        Self {
            time_ns: row.time_ns,
            flow: row.flow,
            acked_bytes: row.acked_bytes,
            cwnd_segments: row.cwnd_segments,
            ssthresh_segments: row.ssthresh_segments,
            srtt_ms: row.srtt.map(Duration::as_millis_f64),
            rtt_ms: row.rtt.map(Duration::as_millis_f64),
            inflight_segments: row.inflight_segments,
            round_min_rtt_ms: None,
            round_rtt_threshold_ms: None,
            round_samples: None,
            ack_train_ms: None,
            ack_train_limit_ms: None,
            css: None,
        }
    }
}

/// The table while it is written: it may have a row for every second segment.
///
/// It consists of blocks of [`BLOCK`] rows, or a few less. The first is in ordinary memory, so that
/// a small run needs no large page. The others share large pages: if columns were as long as the
/// table, each would end in a page that is hardly used.
#[derive(Debug, Default)]
pub(crate) struct AckTable {
    full: Vec<Acks>,
    /// The last block.
    rows: Acks,
    /// Later rows that are not in the columns yet.
    bare: Vec<BareAckRow>,
    pages: LargePages,
}

const BLOCK: usize = if cfg!(test) { 300 } else { 1 << 15 };

impl AckTable {
    /// The table's entry in the reference.
    pub(crate) const ABOUT: AboutTable = Acks::ABOUT;

    pub(crate) fn push(&mut self, row: AckRow) {
        self.append_bare();
        self.rows.push(row);
        self.begin_block_where_full();
    }

    #[inline]
    pub(crate) fn push_bare(&mut self, row: BareAckRow) {
        if self.rows.has_waiting() {
            // They come first, and appending few rows at once would take longer.
            self.rows.push(row.into());
            return;
        }
        self.bare.push(row);
        if self.bare.len() == ROWS_AT_ONCE {
            self.append_bare();
        }
    }

    /// The table's blocks, at least one.
    pub(crate) fn finish(&mut self, names: &Names) -> Vec<RecordBatch> {
        self.append_bare();
        self.full.push(std::mem::take(&mut self.rows));
        self.full.drain(..).map(|mut block| block.finish(names)).collect()
    }

    /// Begins a block if the last is full; rows that wait still fit into it.
    #[inline]
    fn begin_block_where_full(&mut self) {
        if self.rows.time_ns.len() > BLOCK - 2 * ROWS_AT_ONCE {
            self.begin_block();
        }
    }

    #[cold]
    fn begin_block(&mut self) {
        let mut full = std::mem::take(&mut self.rows);
        full.append_waiting();
        self.full.push(full);
        // The columns of HyStart have few values.
        let Self { rows, pages, .. } = self;
        rows.time_ns.lie_in(pages, BLOCK);
        rows.flow.lie_in(pages, BLOCK);
        rows.acked_bytes.lie_in(pages, BLOCK);
        rows.cwnd_segments.lie_in(pages, BLOCK);
        rows.ssthresh_segments.lie_in(pages, BLOCK);
        rows.srtt_ms.lie_in(pages, BLOCK);
        rows.rtt_ms.lie_in(pages, BLOCK);
        rows.inflight_segments.lie_in(pages, BLOCK);
    }

    fn append_bare(&mut self) {
        let Self { rows: acks, bare, .. } = self;
        if bare.is_empty() {
            return;
        }
        Column::append_all(bare, |row| row.time_ns, &mut acks.time_ns);
        Column::append_all(bare, |row| row.flow, &mut acks.flow);
        Column::append_all(bare, |row| row.acked_bytes, &mut acks.acked_bytes);
        Column::append_all(bare, |row| row.cwnd_segments, &mut acks.cwnd_segments);
        Column::append_all(bare, |row| row.ssthresh_segments, &mut acks.ssthresh_segments);
        let millis = Duration::as_millis_f64;
        Column::append_all(bare, |row| row.srtt.map(millis), &mut acks.srtt_ms);
        Column::append_all(bare, |row| row.rtt.map(millis), &mut acks.rtt_ms);
        Column::append_all(bare, |row| row.inflight_segments, &mut acks.inflight_segments);
        acks.round_min_rtt_ms.append_nulls(bare.len());
        acks.round_rtt_threshold_ms.append_nulls(bare.len());
        acks.round_samples.append_nulls(bare.len());
        acks.ack_train_ms.append_nulls(bare.len());
        acks.ack_train_limit_ms.append_nulls(bare.len());
        acks.css.append_nulls(bare.len());
        bare.clear();
        self.begin_block_where_full();
    }
}

#[cfg(test)]
mod tests {
    use arrow::compute::concat_batches;
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<(BareAckRow, Option<u32>)>> {
        let some = |most: u64| proptest::option::of(0..most);
        let row = (any::<i32>(), any::<u32>(), some(9), some(1 << 40), some(1 << 40), some(3));
        let row = row.prop_map(|(time, number, ssthresh, srtt, rtt, samples)| {
            let bare = BareAckRow {
                time_ns: i64::from(time),
                flow: Name(number % 2),
                acked_bytes: u64::from(number),
                cwnd_segments: number / 2,
                ssthresh_segments: ssthresh.map(|segments| segments as u32),
                srtt: srtt.map(Duration::from_nanos),
                rtt: rtt.map(Duration::from_nanos),
                inflight_segments: number / 3,
            };
            (bare, samples.map(|samples| samples as u32))
        });
        // Long stretches of one kind of row, with changes between them.
        proptest::collection::vec((proptest::collection::vec(row, 0..150), any::<bool>()), 0..8)
            .prop_map(|stretches| {
                let stretch = |(rows, bare): (Vec<(BareAckRow, Option<u32>)>, bool)| {
                    rows.into_iter().map(move |(row, samples)| (row, samples.filter(|_| !bare)))
                };
                stretches.into_iter().flat_map(stretch).collect::<Vec<_>>()
            })
    }

    proptest! {
        #[test]
        fn rows_at_once_are_the_rows_one_by_one(rows in rows()) {
            let mut names = Names::default();
            for name in ["one", "two"] {
                names.add(name);
            }
            let (mut table, mut singly) = (AckTable::default(), Acks::default());
            for (bare, samples) in rows {
                let row = AckRow {
                    round_samples: samples,
                    css: samples.map(|samples| samples > 0),
                    ..AckRow::from(bare)
                };
                match samples {
                    None => table.push_bare(bare),
                    Some(_) => table.push(row.clone()),
                }
                singly.append_alone(&row);
            }
            let whole = singly.finish(&names);
            let blocks = table.finish(&names);
            prop_assert!(blocks.len() >= whole.num_rows().div_ceil(BLOCK).max(1));
            prop_assert!(blocks.iter().all(|block| block.num_rows() <= BLOCK));
            prop_assert_eq!(concat_batches(&whole.schema(), &blocks).unwrap(), whole);
        }
    }

    impl Acks {
        fn append_alone(&mut self, row: &AckRow) {
            row.time_ns.append(&mut self.time_ns);
            row.flow.append(&mut self.flow);
            row.acked_bytes.append(&mut self.acked_bytes);
            row.cwnd_segments.append(&mut self.cwnd_segments);
            row.ssthresh_segments.append(&mut self.ssthresh_segments);
            row.srtt_ms.append(&mut self.srtt_ms);
            row.rtt_ms.append(&mut self.rtt_ms);
            row.inflight_segments.append(&mut self.inflight_segments);
            row.round_min_rtt_ms.append(&mut self.round_min_rtt_ms);
            row.round_rtt_threshold_ms.append(&mut self.round_rtt_threshold_ms);
            row.round_samples.append(&mut self.round_samples);
            row.ack_train_ms.append(&mut self.ack_train_ms);
            row.ack_train_limit_ms.append(&mut self.ack_train_limit_ms);
            row.css.append(&mut self.css);
        }
    }
}
