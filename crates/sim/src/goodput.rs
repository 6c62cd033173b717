//! What the path could have carried while a flow ran, and what became of it.
//!
//! At each sample, and where a flow begins and ends, a mark records what each link could have
//! carried until then and what has arrived. Of what the slowest link could have carried between two
//! marks, the flow's own packets and those of others are known. The rest was either lost by the
//! radio while packets waited, or not used: that is charged to what the sender was doing at the
//! time at which it would have had to send what could have arrived.

use airpath_base::{Direction, Duration, Instant, Packet, Payload, Site};
use airpath_network::{Capacity, Network};
use airpath_record::{GoodputBreakdown, GoodputPart};
use airpath_scenario::{FlowConfig, Traffic};
use airpath_tcp::Activity;

/// With more flows than this, capacity is not broken down: the marks would take too much memory.
const MOST_FLOWS: usize = 64;

/// What a sender did from when on, with its time-outs including the wait for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activities {
    /// From the beginning of the connection; each lasts until the next.
    pub(crate) spans: Vec<(Instant, Activity)>,
    /// From the start of the timer until it expired.
    pub(crate) time_outs: Vec<(Instant, Instant)>,
    /// The shortest transit time of a segment.
    pub(crate) transit: Option<Duration>,
}

/// The marks of a run.
pub(crate) struct Goodputs {
    flows: Vec<FlowMarks>,
    /// Bytes that arrived so far by flow and direction: packets, and their payload.
    arrived: Vec<[Arrived; 2]>,
    marks: Vec<Mark>,
}

/// The marks of one flow.
struct FlowMarks {
    direction: Direction,
    ue: usize,
    start: Instant,
    /// The marks at which it began and ended, by number.
    begun: Option<usize>,
    ended: Option<usize>,
}

#[derive(Clone, Copy, Default)]
struct Arrived {
    wire: u64,
    payload: u64,
}

/// The state at one instant.
struct Mark {
    at: Instant,
    capacities: Vec<Capacity>,
    arrived: Vec<[Arrived; 2]>,
}

impl Goodputs {
    /// `None` if no flow of the scenario needs it, or there are too many.
    pub(crate) fn new(flows: &[FlowConfig]) -> Option<Self> {
        let transfers =
            |flow: &FlowConfig| matches!(flow.traffic, Traffic::Bulk { .. } | Traffic::File { .. });
        (flows.len() <= MOST_FLOWS && flows.iter().any(transfers)).then(|| Self {
            flows: (flows.iter())
                .map(|flow| FlowMarks {
                    direction: flow.direction,
                    ue: flow.ue,
                    start: Instant::ZERO + flow.start,
                    begun: None,
                    ended: None,
                })
                .collect(),
            arrived: vec![Default::default(); flows.len()],
            marks: Vec::new(),
        })
    }

    /// A packet has reached an endpoint.
    pub(crate) fn on_arrival(&mut self, direction: Direction, packet: &Packet) {
        let payload = match &packet.payload {
            Payload::Tcp(segment) => segment.len,
            Payload::Datagram(_) | Payload::Opaque(_) => 0,
        };
        let arrived = &mut self.arrived[packet.flow.0 as usize][direction];
        arrived.wire += u64::from(packet.size);
        arrived.payload += u64::from(payload);
    }

    /// Something happened to a flow: sets marks when it begins and ends.
    pub(crate) fn follow(
        &mut self,
        now: Instant,
        flow: usize,
        is_measured: bool,
        network: &mut Network,
    ) {
        if self.flows[flow].begun.is_none() && now >= self.flows[flow].start {
            self.flows[flow].begun = Some(self.mark(now, network));
        }
        if is_measured && self.flows[flow].ended.is_none() {
            self.flows[flow].ended = Some(self.mark(now, network));
        }
    }

    /// Sets a mark with the current state; returns its number.
    pub(crate) fn mark(&mut self, at: Instant, network: &mut Network) -> usize {
        let mut capacities = Vec::new();
        network.capacities(at, &mut |capacity| capacities.push(*capacity));
        self.marks.push(Mark { at, capacities, arrived: self.arrived.clone() });
        self.marks.len() - 1
    }

    /// How the capacity of a flow's path was used. `goodput_mbps` is what it delivered in order
    /// until its end.
    pub(crate) fn breakdown(
        &self,
        flow: usize,
        goodput_mbps: f64,
        activities: &Activities,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Option<GoodputBreakdown> {
        let FlowMarks { direction, ue, begun, ended, .. } = self.flows[flow];
        let marks = &self.marks[begun?..=ended.unwrap_or(self.marks.len().checked_sub(1)?)];
        let (first, last) = (marks.first()?, marks.last()?);
        let seconds = last.at.saturating_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let carried = |place: usize| last.capacities[place].bytes - first.capacities[place].bytes;
        let mine = |place: &usize| {
            let Capacity { direction: way, ue: whose, .. } = last.capacities[*place];
            way == direction && whose.is_none_or(|whose| whose == ue)
        };
        let slowest = (0..last.capacities.len())
            .filter(mine)
            .min_by(|&one, &other| carried(one).total_cmp(&carried(other)))?;
        let mut sums = Sums::default();
        for pair in marks.windows(2) {
            self.add(&mut sums, flow, slowest, pair, activities);
        }
        let mbps = |bytes: f64| bytes * 8e-6 / seconds;
        let capacity = mbps(carried(slowest));
        if capacity <= 0.0 {
            return None;
        }
        // What arrived twice, or is not in order yet.
        let again = mbps(sums.payload) - goodput_mbps;
        let mut named = vec![
            ("headers", mbps(sums.headers)),
            ("sharing", mbps(sums.sharing)),
            ("radio", mbps(sums.link)),
        ];
        let by_activity = Activity::ALL.into_iter().zip(sums.unused);
        named.extend(by_activity.map(|(activity, bytes)| (activity.name(), mbps(bytes))));
        named.push(("retransmissions", again));
        let known: f64 = named.iter().map(|(_, mbps)| mbps).sum();
        named.push(("unattributed", capacity - goodput_mbps - known));
        let parts = (named.into_iter())
            .filter(|(_, mbps)| mbps.abs() > 1e-6 * capacity)
            .map(|(part, mbps)| GoodputPart { part, mbps, share: mbps / capacity })
            .collect();
        let place = name(last.capacities[slowest].place);
        Some(GoodputBreakdown { capacity, place, goodput: goodput_mbps, parts })
    }

    /// How the capacity of the slowest link between two marks was used.
    fn add(
        &self,
        sums: &mut Sums,
        flow: usize,
        slowest: usize,
        pair: &[Mark],
        activities: &Activities,
    ) {
        let [before, after] = pair else { return };
        let direction = self.flows[flow].direction;
        let time = after.at.saturating_since(before.at);
        if time == Duration::ZERO {
            return;
        }
        let gained = |of: usize| {
            let (now, then) = (after.arrived[of][direction], before.arrived[of][direction]);
            ((now.wire - then.wire) as f64, (now.payload - then.payload) as f64)
        };
        let (wire, payload) = gained(flow);
        let others: f64 =
            (0..self.flows.len()).filter(|&of| of != flow).map(|of| gained(of).0).sum();
        let (now, then) = (&after.capacities[slowest], &before.capacities[slowest]);
        let capacity = now.bytes - then.bytes;
        sums.headers += wire - payload;
        sums.payload += payload;
        // A surplus that arrived in a burst makes up for what is missing before or after it.
        let left = capacity - wire + std::mem::take(&mut sums.ahead);
        let sharing = others.min(left.max(0.0));
        sums.sharing += sharing;
        let left = left - sharing;
        if left < 0.0 {
            sums.ahead = left;
            return;
        }
        let busy = now.busy.zip(then.busy).map_or(0.0, |(now, then)| {
            (now.saturating_sub(then).as_secs_f64() / time.as_secs_f64()).min(1.0)
        });
        let unused = left.min(capacity * (1.0 - busy));
        sums.link += left - unused;
        let transit = activities.transit.unwrap_or_default();
        let sent = |at: Instant| at.checked_sub(transit).unwrap_or(Instant::ZERO);
        let times = activities.times(sent(before.at), sent(after.at));
        let whole: f64 = times.iter().sum();
        for (sum, time) in sums.unused.iter_mut().zip(times) {
            *sum += if whole > 0.0 { unused * time / whole } else { 0.0 };
        }
        if whole <= 0.0 {
            sums.unused[0] += unused;
        }
    }
}

/// Sums in bytes.
#[derive(Default)]
struct Sums {
    payload: f64,
    headers: f64,
    sharing: f64,
    link: f64,
    /// Unused capacity by activity.
    unused: [f64; Activity::ALL.len()],
    /// Negative: more arrived than could be carried between two marks, because it came in a burst.
    ahead: f64,
}

impl Activities {
    /// Notes what the sender does from `now` on.
    pub(crate) fn note(&mut self, now: Instant, activity: Activity) {
        match self.spans.last_mut() {
            Some((_, last)) if *last == activity => {}
            Some((since, last)) if *since == now => *last = activity,
            _ => self.spans.push((now, activity)),
        }
    }

    /// Seconds of each activity between two times. Before the first one it is the handshake.
    fn times(&self, from: Instant, until: Instant) -> [f64; Activity::ALL.len()] {
        let mut times = [0.0; Activity::ALL.len()];
        let first = self.spans.partition_point(|&(since, _)| since <= from);
        let mut at = from;
        let mut doing = match first.checked_sub(1) {
            Some(index) => self.spans[index].1,
            None => Activity::Handshake,
        };
        for &(since, activity) in self.spans[first..].iter().take_while(|(at, _)| *at < until) {
            self.book(&mut times, at, since, doing);
            (at, doing) = (since, activity);
        }
        self.book(&mut times, at, until, doing);
        times
    }

    /// Reassigns the time spent waiting for a time-out to the time-out.
    fn book(&self, times: &mut [f64], from: Instant, until: Instant, doing: Activity) {
        let whole = until.saturating_since(from).as_secs_f64();
        let waited = if doing == Activity::TimeOut {
            0.0
        } else {
            let overlap = |&(start, end): &(Instant, Instant)| {
                end.min(until).saturating_since(start.max(from)).as_secs_f64()
            };
            self.time_outs.iter().map(overlap).sum::<f64>().min(whole)
        };
        times[Activity::TimeOut as usize] += waited;
        times[doing as usize] += whole - waited;
    }
}
