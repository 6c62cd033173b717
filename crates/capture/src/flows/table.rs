//! The flows that are alive, and report rows of the flows that have ended.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use airpath_base::Instant;
use hashbrown::HashTable;

use super::flow::Flow;
use super::key::Key;
use crate::report::{FlowReport, Missed, Others};

/// Most flows that are followed at a time: if a further one begins, the half that was silent
/// longest ends.
const MOST_ALIVE: usize = 32_768;

/// Most flows that were closed and may still get a packet.
const MOST_OVER: usize = 1024;

/// Most segments that wait for an acknowledgement, and a lower limit for a single direction of a
/// flow.
const MOST_OUTSTANDING: usize = 1 << 19;
const LEAST_OUTSTANDING: usize = 64;

/// Most flows with a row of their own: those with the most bytes.
const MOST_ROWS: usize = 10_000;

/// Most rows with the same ends that are compared with each other.
const MOST_POINTS: usize = 64;

#[derive(Default)]
pub(super) struct Table {
    /// Indices into `flows`.
    index: HashTable<u32>,
    flows: Vec<Option<Flow>>,
    vacant: Vec<u32>,
    /// The flow of the last packet: the next packet often belongs to the same flow.
    last: Option<u32>,
    over: VecDeque<(u32, u64)>,
    next_id: u64,
    rows: BinaryHeap<Reverse<Row>>,
    others: Others,
    missed: Missed,
    repeated: Repeated,
    /// When the capture ended, once that is known.
    ended: Instant,
}

/// The contents of a table at the end.
pub(super) struct Finished {
    pub(super) flows: Vec<FlowReport>,
    pub(super) others: Others,
    pub(super) missed: Missed,
    pub(super) repeated: Repeated,
}

/// Flows whose packets were all captured more than once, without a difference, and how often.
#[derive(Default)]
pub(super) struct Repeated {
    flows: HashTable<(Key, [u8; 2])>,
}

impl Repeated {
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// How often each packet of a flow's ends was captured.
    pub(super) fn times(&self, key: &Key) -> [u8; 2] {
        self.flows.find(key.hash(), |(known, _)| known == key).map_or([1; 2], |&(_, times)| times)
    }

    fn note(&mut self, key: &Key, times: [u8; 2]) {
        let is_new = times != [1; 2] && self.times(key) == [1; 2];
        if is_new && self.flows.len() < MOST_ALIVE {
            self.flows.insert_unique(key.hash(), (*key, times), |(known, _)| known.hash());
        }
    }
}

/// A flow that has ended. Rows are ordered by bytes.
struct Row {
    bytes: u64,
    packets: u64,
    retransmissions: u64,
    key: Key,
    /// The end that is the client.
    client: usize,
    report: FlowReport,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.bytes, Reverse(self.report.id)).cmp(&(other.bytes, Reverse(other.report.id)))
    }
}

impl Table {
    /// The flow with this key; creates it if there is none.
    #[inline]
    pub(super) fn flow(
        &mut self,
        key: &Key,
        now: Instant,
        from: usize,
        tcp: bool,
        epoch: Instant,
    ) -> u32 {
        if let Some(last) = self.last
            && self.flows[last as usize].as_ref().is_some_and(|flow| flow.key == *key)
        {
            return last;
        }
        let hash = key.hash();
        let flows = &self.flows;
        let is_it =
            |&index: &u32| flows[index as usize].as_ref().is_some_and(|flow| flow.key == *key);
        let index = match self.index.find(hash, is_it) {
            Some(&index) => index,
            None => self.begin(key, hash, now, from, tcp, epoch),
        };
        self.last = Some(index);
        index
    }

    /// The flow with this key, if there is one.
    pub(super) fn known(&mut self, key: &Key) -> Option<&mut Flow> {
        let flows = &self.flows;
        let is_it =
            |&index: &u32| flows[index as usize].as_ref().is_some_and(|flow| flow.key == *key);
        let index = *self.index.find(key.hash(), is_it)?;
        self.flows[index as usize].as_mut()
    }

    /// The flow at an index that `flow` returned.
    #[inline]
    pub(super) fn at(&mut self, index: u32) -> &mut Flow {
        self.flows[index as usize].as_mut().expect("the table returned it")
    }

    /// Most segments that may wait for an acknowledgement in each direction of a flow.
    #[inline]
    pub(super) fn most_outstanding(&self) -> usize {
        // Rounds the number of flows up to a power of 2, to shift instead of dividing.
        let alive = (self.index.len() + 1).next_power_of_two().trailing_zeros();
        (MOST_OUTSTANDING >> alive).max(LEAST_OUTSTANDING)
    }

    fn begin(
        &mut self,
        key: &Key,
        hash: u64,
        now: Instant,
        from: usize,
        tcp: bool,
        epoch: Instant,
    ) -> u32 {
        if self.index.len() >= MOST_ALIVE {
            self.end_silent(epoch);
        }
        let flow = Some(Flow::new(*key, self.next_id, now, from, tcp));
        self.next_id += 1;
        let index = match self.vacant.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        let flows = &self.flows;
        let hash_of =
            |&index: &u32| flows[index as usize].as_ref().map_or(0, |flow| flow.key.hash());
        self.index.insert_unique(hash, index, hash_of);
        index
    }

    /// Notes that a flow is over. It gets its row once enough other flows are over.
    pub(super) fn note_over(&mut self, index: u32, epoch: Instant) {
        let flow = self.at(index);
        flow.is_over = true;
        let id = flow.id;
        self.over.push_back((index, id));
        if self.over.len() > MOST_OVER
            && let Some((index, id)) = self.over.pop_front()
            && self.flows[index as usize].as_ref().is_some_and(|flow| flow.id == id)
        {
            self.end(index, epoch);
        }
    }

    /// Ends a flow and writes its row.
    pub(super) fn end(&mut self, index: u32, epoch: Instant) {
        let Some(flow) = self.flows[index as usize].take() else { return };
        if let Ok(entry) = self.index.find_entry(flow.key.hash(), |&known| known == index) {
            entry.remove();
        }
        self.vacant.push(index);
        self.last = None;
        self.add_row(&flow, epoch);
    }

    fn add_row(&mut self, flow: &Flow, epoch: Instant) {
        self.repeated.note(&flow.key, flow.times_captured());
        let (acks, bytes) = flow.tcp.as_ref().map_or((0, 0), |tcp| tcp.unseen());
        self.missed.acks_of_unseen += acks;
        self.missed.unseen_bytes += bytes;
        self.missed.flows += u64::from(acks > 0);
        let (bytes, packets) = (flow.bytes(), flow.packets());
        let retransmissions = flow.retransmitted();
        let is_full = self.rows.len() == MOST_ROWS;
        if is_full && self.rows.peek().is_some_and(|Reverse(least)| least.bytes >= bytes) {
            self.add_other(bytes, packets, retransmissions);
            return;
        }
        if let Some(Reverse(least)) = is_full.then(|| self.rows.pop()).flatten() {
            self.add_other(least.bytes, least.packets, least.retransmissions);
        }
        let (key, client, report) = (flow.key, flow.client(), flow.report(epoch, self.ended));
        self.rows.push(Reverse(Row { bytes, packets, retransmissions, key, client, report }));
    }

    fn add_other(&mut self, bytes: u64, packets: u64, retransmissions: u64) {
        self.others.flows += 1;
        self.others.bytes += bytes;
        self.others.packets += packets;
        self.others.retransmissions += retransmissions;
    }

    /// Ends half of the flows that was silent longest.
    #[cold]
    fn end_silent(&mut self, epoch: Instant) {
        let mut alive: Vec<_> =
            self.flows.iter().flatten().map(|flow| (flow.last, flow.id)).collect();
        let middle = alive.len() / 2;
        let limit = *alive.select_nth_unstable(middle).1;
        for index in 0..self.flows.len() as u32 {
            let flow = self.flows[index as usize].as_ref();
            if flow.is_some_and(|flow| (flow.last, flow.id) < limit) {
                self.end(index, epoch);
            }
        }
    }

    /// Ends all flows and returns their rows in the order in which the flows began. In flows that
    /// were `repeated`, copies were left out.
    pub(super) fn finish(
        mut self,
        epoch: Instant,
        ended: Instant,
        repeated: &Repeated,
    ) -> Finished {
        self.ended = ended;
        for index in 0..self.flows.len() as u32 {
            self.end(index, epoch);
        }
        let mut rows: Vec<_> = self.rows.into_iter().map(|Reverse(row)| row).collect();
        join_points(&mut rows);
        rows.sort_by_key(|row| row.report.id);
        for row in &mut rows {
            let [first, second] = repeated.times(&row.key);
            let times = if row.client == 0 { [first, second] } else { [second, first] };
            let known = row.report.times_captured;
            row.report.times_captured = [known[0].max(times[0]), known[1].max(times[1])];
        }
        Finished {
            flows: rows.into_iter().map(|row| row.report).collect(),
            others: self.others,
            missed: self.missed,
            repeated: self.repeated,
        }
    }
}

/// Finds rows that are the same flow seen at several points: the same ends, at the same time.
fn join_points(rows: &mut [Row]) {
    rows.sort_by_key(|row| (row.key.addresses, row.key.ports, row.key.protocol, row.report.id));
    for group in rows.chunk_by_mut(|a, b| a.key.same_ends(&b.key)) {
        // Ports that are reused again and again, or hostile input: nobody reads such a list.
        if group.len() > MOST_POINTS {
            continue;
        }
        for at in 0..group.len() {
            let same = group.iter().filter(|other| is_same(&group[at], other));
            group[at].report.same_as = same.map(|other| other.report.id).collect();
        }
    }
}

/// Whether two rows with the same ends were seen at different points and at the same time.
fn is_same(row: &Row, other: &Row) -> bool {
    let point = |row: &Row| (row.key.interface, row.key.tunnel as u8);
    let (a, b) = (&row.report, &other.report);
    point(row) != point(other)
        && a.start_s <= b.start_s + b.duration_s + 1.0
        && b.start_s <= a.start_s + a.duration_s + 1.0
}
