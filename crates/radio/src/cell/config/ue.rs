//! The configuration of one UE, as the base station sets it.

use airpath_base::{Direction, Duration};

use super::CellConfig;
use super::carrier::{Access, LteCarrier, LteDuplex, NrCarrier};
use super::cdma::{UmtsCarrier, UmtsDownlink, UmtsUplink};
use crate::adaptation::{McsMode, OuterLoopConfig, ReportConfig};
use crate::bearer::OneWayConfig;
use crate::buffer::{BufferConfig, Discipline, EcnConfig};
use crate::channel::{ChannelConfig, Quality};
use crate::harq::{Combining, Decoding, HarqConfig, HarqTiming};
use crate::lte;
use crate::mac::Occasions;
use crate::mac::bsr::{BsrConfig, BsrFormat, BsrTables, LogicalChannel, Piggyback, RegularTrigger};
use crate::mac::drx::DrxConfig;
use crate::mac::rach::RachConfig;
use crate::mac::sr::SrConfig;
use crate::pdcp::{PdcpConfig, Release, StatusReport};
use crate::rlc::{ArqConfig, LteMode, NrAmSn, NrMode, RlcConfig, Subheaders, UmtsAm, UmtsPdu};
use crate::rrc::RrcConfig;
use crate::scheduler::RateCap;
use crate::scheduler::grants::{EstimateConfig, PeriodicGrant};
use crate::{Generation, evdo, umts};

/// A UE with one bearer.
#[derive(Clone, Debug, PartialEq)]
pub struct UeConfig {
    /// From the base station to the UE.
    pub downlink: UeLinkConfig,
    /// From the UE to the base station.
    pub uplink: UeLinkConfig,
    /// Scheduling request.
    pub sr: SrConfig,
    /// Buffer status report. Logical channel 0 is the bearer; others stay empty.
    pub bsr: BsrConfig,
    /// How the base station interprets requests and reports.
    pub estimate: EstimateConfig,
    /// Dedicated grants that the base station gives unasked; each takes PRBs and, if unused, is
    /// wasted. An occasion in a slot without uplink counts for the next slot with uplink.
    pub proactive: Option<PeriodicGrant>,
    /// A configured grant, type 1 (TS 38.321 5.8.2): like a proactive one, but without a PDCCH, and
    /// the UE sends nothing if it has no data.
    pub configured: Option<PeriodicGrant>,
    /// Random access. `None`: a UE whose scheduling request fails repeats it endlessly.
    pub random_access: Option<RachConfig>,
    /// Time alignment. `None`: always aligned. It requires random access.
    pub alignment: Option<AlignmentConfig>,
    /// DRX. `None`: always awake.
    pub drx: Option<DrxConfig>,
    /// RRC. `None`: always connected.
    pub rrc: Option<RrcConfig>,
    /// Processing times of the UE.
    pub processing: UeProcessing,
    /// The cell's first secondary carriers, as many as the UE uses.
    pub secondary: Vec<UeCarrierConfig>,
}

/// A UE on a secondary carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct UeCarrierConfig {
    /// From the base station to the UE.
    pub downlink: UeRadioConfig,
    /// From the UE to the base station.
    pub uplink: UeRadioConfig,
    /// Whether the UE sends on it. Without, it is aggregated in the downlink only.
    pub sends: bool,
}

/// What one direction of a UE has on each carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct UeRadioConfig {
    /// The radio channel.
    pub channel: ChannelConfig,
    /// How an MCS is chosen.
    pub mcs: McsMode,
    /// When the base station learns about the channel.
    pub report: ReportConfig,
    /// HARQ. Synchronous timing requires the carrier's slot.
    pub harq: HarqConfig,
}

/// One direction of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeLinkConfig {
    /// The radio channel.
    pub channel: ChannelConfig,
    /// How an MCS is chosen.
    pub mcs: McsMode,
    /// When the base station learns about the channel. It measures the uplink itself (SRS, DM-RS):
    /// the delay is then its own.
    pub report: ReportConfig,
    /// HARQ. Synchronous timing requires the cell's slot.
    pub harq: HarqConfig,
    /// Buffer, PDCP and RLC.
    pub bearer: OneWayConfig,
    /// MAC subheaders of the data, in NR.
    pub subheaders: Subheaders,
    /// UE-AMBR of this direction (TS 23.501 5.7.2.6). `None`: no limit.
    pub cap: Option<RateCap>,
}

/// Time alignment of a UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlignmentConfig {
    /// timeAlignmentTimer; `None`: infinity.
    pub timer: Option<Duration>,
    /// Smallest time between Timing Advance Commands. The base station sends one with a downlink
    /// block, or when it has received an uplink block. Without traffic the timer expires. A command
    /// takes neither bytes nor time here.
    pub command_every: Duration,
}

/// Processing times of a UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UeProcessing {
    /// From the end of a slot with a downlink block until its packets have left the radio, and
    /// until a STATUS can acknowledge them. HARQ feedback has its own time: K_1.
    pub downlink: Duration,
    /// From the arrival of an uplink packet until a block can hold it. Requests and reports include
    /// it at once.
    pub uplink: Duration,
}

impl UeLinkConfig {
    /// What it has on the primary carrier.
    pub(crate) fn radio(&self) -> UeRadioConfig {
        let Self { channel, mcs, report, harq, .. } = self;
        UeRadioConfig { channel: channel.clone(), mcs: *mcs, report: *report, harq: *harq }
    }
}

impl UeConfig {
    /// This UE on a secondary carrier of that access, with the values of [`plain`](Self::plain).
    pub fn plain_carrier(access: &Access) -> UeCarrierConfig {
        let plain = Self::plain(access);
        UeCarrierConfig {
            downlink: plain.downlink.radio(),
            uplink: plain.uplink.radio(),
            sends: false,
        }
    }

    /// A UE in a good constant channel (30 dB), with RLC AM, adaptive MCS, SR every 10 ms, no
    /// grants in advance, always connected, aligned and awake.
    pub fn plain(access: &Access) -> Self {
        match access {
            Access::Nr(carrier) => Self::nr(carrier),
            Access::Lte(carrier) => Self::lte(carrier),
            Access::Umts(carrier) => Self::umts(carrier),
            Access::Evdo => Self::evdo(),
        }
    }

    /// HARQ processes of one direction, of all carriers.
    pub(crate) fn processes(&self) -> usize {
        let most = |down: &HarqConfig, up: &HarqConfig| {
            usize::from(down.processes.max(up.processes).max(1))
        };
        let primary = most(&self.downlink.harq, &self.uplink.harq);
        let secondary = self.secondary.iter().map(|own| most(&own.downlink.harq, &own.uplink.harq));
        primary + secondary.sum::<usize>()
    }

    /// This UE with a leg of a split bearer: in NR, the PDCP above restores the order.
    pub(crate) fn leg(&self) -> Self {
        let mut leg = self.clone();
        for link in [&mut leg.downlink, &mut leg.uplink] {
            if let RlcConfig::Nr { release, .. } = &mut link.bearer.rlc {
                *release = Release::OutOfOrder;
            }
        }
        leg
    }

    fn nr(carrier: &NrCarrier) -> Self {
        let slot = carrier.numerology.slot();
        let harq = HarqConfig {
            processes: 16,
            max_transmissions: 4,
            timing: HarqTiming::Asynchronous { processing: slot },
            decoding: Decoding::Curve(Combining::IncrementalRedundancy { mother_rate: 1.0 / 3.0 }),
            nack_to_ack: 0.0,
        };
        let rlc = RlcConfig::Nr {
            mode: NrMode::Am {
                sn: NrAmSn::Bits18,
                t_reassembly: Duration::from_millis(40),
                arq: arq(),
            },
            release: Release::InOrder { t_reordering: Some(Duration::from_millis(100)) },
        };
        // 18 bits of SN and an SDAP header
        let bearer = bearer(rlc, 4);
        let links = [link(harq, bearer), link(harq, bearer)];
        Self {
            sr: sr(Some(&CellConfig::nr(carrier.clone()))),
            bsr: bsr(Generation::Nr, Duration::from_millis(80)),
            ..Self::bare(links, [slot, slot])
        }
    }

    fn umts(carrier: &UmtsCarrier) -> Self {
        let report = ReportConfig {
            period: Duration::from_millis(4),
            offset: Duration::ZERO,
            delay: Duration::from_millis(8),
        };
        // TS 34.108 6.10.2.4.5: 656 bits for the fast rates, 336 for the others
        let bytes = match carrier.downlink {
            UmtsDownlink::HsDsch { .. } => 82,
            UmtsDownlink::Dch(_) => 42,
        };
        let link = |direction| {
            let (bytes, shared) = match direction {
                Direction::Downlink => (bytes, bytes > 42),
                Direction::Uplink => (42, matches!(carrier.uplink, UmtsUplink::EDch { .. })),
            };
            let mac_header_bytes = if shared { 3 } else { 0 };
            let rlc = RlcConfig::Umts(umts_am(UmtsPdu::Fixed { bytes }, mac_header_bytes));
            UeLinkConfig { report, ..link(umts_harq(carrier, direction), bearer(rlc, 0)) }
        };
        let every = Occasions::new(carrier.uplink.tti(), Duration::ZERO);
        let bytes = carrier.uplink.most_bytes();
        Self {
            configured: Some(PeriodicGrant { occasions: every, bytes, keep: None }),
            ..Self::bare(
                [Direction::Downlink, Direction::Uplink].map(link),
                [4, 2].map(Duration::from_millis),
            )
        }
    }

    /// RLP (3GPP2 C.S0024-A 4) numbers bytes, requests what is missing once, and then continues.
    /// RLC in its place numbers PDUs and requests them repeatedly: they differ in the second loss
    /// of a byte, one in ten thousand.
    fn evdo() -> Self {
        let report =
            ReportConfig { period: evdo::SLOT, offset: Duration::ZERO, delay: evdo::SLOT * 2 };
        // RLP and MAC headers; FCS and tail of 22 bits
        let rlc = RlcConfig::Umts(umts_am(UmtsPdu::Flexible { most: 1_503 }, 5));
        let bearer = bearer(rlc, 0);
        let ir = Combining::IncrementalRedundancy { mother_rate: 0.2 };
        let harq = HarqConfig {
            processes: evdo::FORWARD_INTERLACES as u8,
            // Fewer for shorter packets.
            max_transmissions: 16,
            timing: HarqTiming::Asynchronous { processing: Duration::ZERO },
            decoding: Decoding::Curve(ir),
            nack_to_ack: 0.0,
        };
        let turn = evdo::SLOT * u64::from(evdo::SUBFRAME_SLOTS);
        let reverse = HarqConfig {
            processes: evdo::REVERSE_INTERLACES as u8,
            max_transmissions: evdo::REVERSE_SUBPACKETS as u8,
            timing: HarqTiming::Synchronous { slot: turn },
            ..harq
        };
        // The packet error rate for which a DRC is defined
        let target_bler = 0.01;
        let mcs = McsMode::Adaptive(OuterLoopConfig { target_bler, ..OuterLoopConfig::default() });
        let link = |harq| UeLinkConfig { report, mcs, ..link(harq, bearer) };
        let bytes = evdo::REVERSE_BITS[11] / 8;
        let occasions = Occasions::new(turn, Duration::ZERO);
        Self {
            configured: Some(PeriodicGrant { occasions, bytes, keep: None }),
            ..Self::bare([harq, reverse].map(link), [5, 2].map(Duration::from_millis))
        }
    }

    fn lte(carrier: &LteCarrier) -> Self {
        let report = ReportConfig {
            period: Duration::from_millis(10),
            offset: Duration::ZERO,
            delay: Duration::from_millis(6),
        };
        let rlc =
            RlcConfig::Lte(LteMode::Am { t_reordering: Duration::from_millis(50), arq: arq() });
        let bearer = bearer(rlc, 2);
        let link =
            |direction| UeLinkConfig { report, ..link(lte_harq(carrier, direction), bearer) };
        // TR 36.912 table B.2.1-1
        let processing = [1_500, 1_000].map(Duration::from_micros);
        Self {
            sr: sr(Some(&CellConfig::lte(*carrier))),
            ..Self::bare([Direction::Downlink, Direction::Uplink].map(link), processing)
        }
    }

    /// Links and processing times, each downlink first, and nothing that a UE may do without.
    fn bare([downlink, uplink]: [UeLinkConfig; 2], processing: [Duration; 2]) -> Self {
        let [received, sent] = processing;
        Self {
            downlink,
            uplink,
            sr: sr(None),
            bsr: bsr(Generation::Lte, Duration::from_millis(320)),
            estimate: EstimateConfig::default(),
            proactive: None,
            configured: None,
            random_access: None,
            alignment: None,
            drx: None,
            rrc: None,
            processing: UeProcessing { downlink: received, uplink: sent },
            secondary: Vec::new(),
        }
    }
}

/// UMTS's HARQ in `direction`: none on a DCH.
fn umts_harq(carrier: &UmtsCarrier, direction: Direction) -> HarqConfig {
    let asynchronous = HarqTiming::Asynchronous { processing: Duration::ZERO };
    let (processes, max_transmissions, timing) = match (direction, carrier.downlink, carrier.uplink)
    {
        (Direction::Downlink, UmtsDownlink::HsDsch { .. }, _) => {
            (umts::HS_ROUND_TRIP as u8, 4, asynchronous)
        }
        (Direction::Uplink, _, UmtsUplink::EDch { tti, .. }) => {
            (tti.processes(), 4, HarqTiming::Synchronous { slot: tti.duration() })
        }
        // One block in transit, one that just ends.
        _ => (2, 1, asynchronous),
    };
    let decoding = Decoding::Curve(Combining::Chase);
    HarqConfig { processes, max_transmissions, timing, decoding, nack_to_ack: 0.0 }
}

/// LTE's HARQ in `direction`.
fn lte_harq(carrier: &LteCarrier, direction: Direction) -> HarqConfig {
    let processing = lte::SUBFRAME * 3;
    let asynchronous = HarqTiming::Asynchronous { processing };
    let synchronous = HarqTiming::Synchronous { slot: lte::SUBFRAME };
    let fdd = lte::FDD_HARQ_PROCESSES as u8;
    let (processes, timing) = match (carrier.duplex, direction) {
        // TS 36.213 7, 8: n + 4, n + 8
        (LteDuplex::Fdd, Direction::Downlink) => (fdd, asynchronous),
        (LteDuplex::Fdd, Direction::Uplink) => (fdd, synchronous),
        (LteDuplex::Tdd { configuration, .. }, Direction::Downlink) => {
            (configuration.downlink_harq_processes() as u8, asynchronous)
        }
        (LteDuplex::Tdd { configuration, .. }, Direction::Uplink) => match configuration.number() {
            // Processes move through the frame (TS 36.213 8.0), which is not modelled: a
            // retransmission is sent when there is a subframe.
            0 | 6 => {
                let timing = HarqTiming::Asynchronous { processing: Duration::ZERO };
                (configuration.uplink_harq_processes() as u8, timing)
            }
            // The same subframe of the next frame (TS 36.213 tables 8-2, 9.1.2-1): ten slots per
            // round, of which those with uplink are used.
            _ => (10, synchronous),
        },
    };
    HarqConfig {
        processes,
        max_transmissions: 4,
        timing,
        decoding: Decoding::Curve(Combining::IncrementalRedundancy { mother_rate: 1.0 / 3.0 }),
        nack_to_ack: 0.0,
    }
}

fn link(harq: HarqConfig, bearer: OneWayConfig) -> UeLinkConfig {
    UeLinkConfig {
        channel: ChannelConfig::Constant(Quality::Sinr(30.0)),
        mcs: McsMode::Adaptive(OuterLoopConfig::default()),
        report: ReportConfig {
            period: Duration::from_millis(20),
            offset: Duration::ZERO,
            delay: Duration::from_millis(4),
        },
        harq,
        bearer,
        subheaders: Subheaders::default(),
        cap: None,
    }
}

fn arq() -> ArqConfig {
    ArqConfig {
        t_poll_retransmit: Duration::from_millis(45),
        poll_pdu: Some(64),
        poll_bytes: Some(125_000),
        t_status_prohibit: Duration::from_millis(10),
        max_retx_threshold: 32,
    }
}

fn umts_am(pdu: UmtsPdu, mac_header_bytes: u32) -> UmtsAm {
    UmtsAm {
        pdu,
        mac_header_bytes,
        window: 2_047,
        t_reordering: Duration::from_millis(60),
        arq: ArqConfig {
            t_poll_retransmit: Duration::from_millis(200),
            poll_bytes: None,
            t_status_prohibit: Duration::from_millis(40),
            ..arq()
        },
    }
}

fn bearer(rlc: RlcConfig, header_bytes: u32) -> OneWayConfig {
    OneWayConfig {
        rlc,
        pdcp: PdcpConfig { header_bytes, discard: None, status_report: StatusReport::Required },
        buffer: BufferConfig {
            packets: None,
            bytes: Some(3_000_000),
            discipline: Discipline::DropTail,
            ecn: EcnConfig::default(),
        },
    }
}

/// Scheduling requests as the cell supports them; without a cell there is no PUCCH.
fn sr(cell: Option<&CellConfig>) -> SrConfig {
    let ms = Duration::from_millis;
    SrConfig {
        occasions: cell.map(|cell| Occasions::new(ms(10), cell.request_offset(ms(4)))),
        prohibit: None,
        transmissions_max: 64,
        preparation: Duration::ZERO,
        miss_probability: 0.0,
    }
}

fn bsr(generation: Generation, retransmission: Duration) -> BsrConfig {
    BsrConfig {
        regular: RegularTrigger::NewData,
        format: BsrFormat { generation, tables: BsrTables::of(generation) },
        channels: vec![LogicalChannel {
            group: 0,
            priority: 1,
            delays_request: false,
            masks_request: false,
        }],
        periodic: Some(Duration::from_millis(10)),
        retransmission,
        request_delay: Duration::ZERO,
        piggyback: Piggyback::Padding,
    }
}
