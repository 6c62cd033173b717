//! Observes senders by BPF.

use airpath_bpf::{Detector, Found as Finding, Kind as Reason, Record, SenderObserver};
use std::net::IpAddr;

use super::observed::{Found, Kind, Observation, Round, State, What, congestion_name};
use crate::EmuError;
use crate::clock::tick;

/// The programs, and the length of a jiffy, in which the kernel counts its RTO.
pub(super) struct Bpf {
    observer: SenderObserver,
    tick_ms: f64,
}

impl Bpf {
    /// Begins to observe network namespaces, given by inode.
    pub(super) fn new(networks: &[u32]) -> Result<Self, EmuError> {
        Ok(Self {
            observer: SenderObserver::new(networks).map_err(failed)?,
            tick_ms: tick().as_millis_f64(),
        })
    }

    /// The observations since the last call.
    pub(super) fn take(&mut self) -> Result<impl Iterator<Item = Observation>, EmuError> {
        let mut records = self.observer.take().map_err(failed)?;
        // Two processors may have written at once.
        records.sort_by_key(|record| record.time_ns);
        let tick_ms = self.tick_ms;
        Ok(records.into_iter().map(move |record| seen(&record, tick_ms)))
    }

    /// Records lost for lack of room.
    pub(super) fn lost(&self) -> u64 {
        self.observer.lost()
    }
}

fn failed(error: airpath_bpf::BpfError) -> EmuError {
    EmuError::Bpf { said: error.to_string() }
}

fn seen(record: &Record, tick_ms: f64) -> Observation {
    // An IPv6 socket with an IPv4 peer sends IPv4.
    let remote = record.remote.to_canonical();
    Observation {
        time_ns: record.time_ns,
        end: record.end as usize,
        cookie: record.cookie,
        kind: match record.kind {
            Reason::Ack => Kind::Ack,
            Reason::Congestion { before, after } => Kind::Congestion { before, after },
            Reason::Begin => Kind::Begin,
            Reason::End => Kind::End,
        },
        v6: matches!(remote, IpAddr::V6(_)),
        local_port: record.local_port,
        remote_port: record.remote_port,
        remote,
        congestion: congestion_name(record.congestion()),
        state: State {
            acked_bytes: record.acked_bytes,
            cwnd: record.cwnd,
            ssthresh: record.ssthresh,
            srtt_us: known(record.srtt_us),
            rtt_us: known(record.rtt_us),
            min_rtt_us: record.min_rtt_us,
            in_flight: record.in_flight,
            receive_window: record.peer_window.checked_div(record.mss),
            lost: record.lost,
            delivered: record.delivered,
            prior_cwnd: record.prior_cwnd,
            rto_ms: f64::from(record.rto_ticks) * tick_ms,
            retransmitted: record.retransmitted,
            timeouts: record.timeouts,
            congestion_state: match record.kind {
                Reason::Congestion { after, .. } => after,
                _ => 0,
            },
        },
        found: Found {
            what: match record.found {
                Finding::Nothing => What::Nothing,
                Finding::Something => What::Something,
                Finding::AckTrain => What::Exit("ack_train"),
                Finding::Delay => What::Exit("delay"),
                Finding::FallingMinimum => What::Exit("falling_minimum"),
                Finding::Css => What::Exit("css"),
            },
            base_rtt_us: known(record.base_rtt_us),
            round_rtt_us: known(record.round_rtt_us),
            round: round(record),
        },
    }
}

fn round(record: &Record) -> Option<Round> {
    Some(Round {
        css: match record.detector {
            Detector::None => return None,
            Detector::Hystart => None,
            Detector::PlusPlus => Some(false),
            Detector::Css => Some(true),
        },
        samples: record.samples.into(),
        ack_train_us: record.train_us,
        ack_train_limit_us: record.longest_train_us,
    })
}

fn known(micros: u32) -> Option<u32> {
    Some(micros).filter(|&micros| micros > 0)
}
