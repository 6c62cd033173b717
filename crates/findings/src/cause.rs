//! Possible causes that hold a run back, by name.

use std::fmt;

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident;)*) => {
        /// A cause that can hold a run back. `docs/reference/causes.md` explains each.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Cause {
            $($(#[$doc])* $variant,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The cause's stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class of the cause.
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }
        }
    };
}

/// How causes are ranked against each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Something on the path, at the hosts or in the traffic that could be absent.
    Fault,
    /// How TCP behaves: named if no removal of a fault explains as much.
    Behaviour,
    /// What limits every run: stated last, never ranked.
    Bound,
}

causes! {
    /// A firewall lets a flow through one way only.
    OneWayPath = "one-way-path", Fault;
    /// Two NATs in a row, of which one forgets.
    DoubleNat = "double-nat", Fault;
    /// A NAT forgets a flow that still lives.
    NatBinding = "nat-binding", Fault;
    /// A hop drops what is larger than its MTU.
    Mtu = "mtu", Fault;
    /// Packets are cut in two, and one lost fragment loses both.
    Fragmentation = "fragmentation", Fault;
    /// The headers of a VPN, and MTUs that leave no room for them.
    Vpn = "vpn", Fault;
    /// A card or a TUN device whose offload breaks packets.
    Offload = "offload", Fault;
    /// Losses that no queue makes.
    RandomLoss = "random-loss", Fault;
    /// A token bucket without a queue drops the excess.
    Policer = "policer", Fault;
    /// A token bucket with a queue holds the rate below the link's.
    Shaper = "shaper", Fault;
    /// Packets overtake each other.
    Reordering = "reordering", Fault;
    /// A forwarding host stands still now and then.
    StallingHost = "stalling-host", Fault;
    /// The receive ring of a forwarding host is shorter than the bursts that it has to hold.
    ReceiveRing = "receive-ring", Fault;
    /// A forwarding host has no processor time for more packets.
    HostProcessor = "host-processor", Fault;
    /// A network card delays its interrupts, so that packets wait.
    InterruptModeration = "interrupt-moderation", Fault;
    /// A modem's driver holds packets back to fill a block.
    AggregationTimer = "aggregation-timer", Fault;
    /// A modem's bus or processor has no time for more transfers.
    ModemCeiling = "modem-ceiling", Fault;
    /// A TCP proxy on the way.
    Proxy = "proxy", Fault;
    /// Datagrams that do not give way.
    CrossTraffic = "cross-traffic", Fault;
    /// The receiver's buffer is smaller than the path holds.
    ReceiveWindow = "receive-window", Fault;
    /// The sender's buffer is smaller than the path holds.
    SendBuffer = "send-buffer", Fault;
    /// The application reads or writes more slowly than the path carries.
    ApplicationLimited = "application-limited", Fault;
    /// The sender has kept an ssthresh of an earlier connection.
    KeptSsthresh = "kept-ssthresh", Fault;
    /// A queue that is shorter than bursts need.
    ShortQueue = "short-queue", Fault;
    /// A queue that is longer than the rate needs.
    Bufferbloat = "bufferbloat", Fault;
    /// The way back cannot carry the acknowledgements.
    AckStarvation = "ack-starvation", Fault;
    /// Acknowledgements, or data, come in batches.
    AckBatching = "ack-batching", Fault;
    /// The UE sleeps.
    Drx = "drx", Fault;
    /// The UE asks before it may send.
    UplinkAccess = "uplink-access", Fault;
    /// Blocks that the radio has to send again, or gives up.
    RadioLoss = "radio-loss", Fault;
    /// Packets that arrived wait for a PDCP PDU that never arrives.
    PdcpGap = "pdcp-gap", Fault;
    /// A leg of a split bearer delays what the other has delivered.
    SplitBearer = "split-bearer", Fault;
    /// A connection has to be set up before anything is sent.
    RrcPromotion = "rrc-promotion", Fault;
    /// What a change of cell interrupts or loses.
    Handover = "handover", Fault;
    /// A cell is out of service.
    CellOutage = "cell-outage", Fault;
    /// The radio link is given up and found again.
    RadioLinkFailure = "radio-link-failure", Fault;
    /// Flows of different congestion controls share a queue, unevenly.
    CongestionMix = "congestion-control", Fault;
    /// The server stands far from where the radio network ends.
    Placement = "placement", Fault;
    /// The host of an emulation was too late to count; only emulated runs have it.
    EmulationHost = "emulation-host", Fault;
    /// Slow start ends before the path is full.
    SlowStartExit = "slow-start-exit", Behaviour;
    /// The transfer ends before slow start has opened the window.
    SlowStart = "slow-start", Behaviour;
    /// Another congestion control does better here.
    CongestionControl = "congestion-control", Behaviour;
    /// The test ends before the ramp does not count any more.
    TestTooShort = "test-too-short", Behaviour;
    /// A link of the path is full.
    LinkCapacity = "link-capacity", Bound;
    /// The radio is full.
    RadioCapacity = "radio-capacity", Bound;
}

impl Cause {
    /// Whether a cause does harm through a more general one, and is itself what can be remedied:
    /// fragments through losses, outages, radio link failures and PDCP gaps through failing blocks, a slow
    /// application through a closing window, batches through a queue that does not hold them.
    pub(crate) const fn special(self) -> bool {
        matches!(
            self,
            Self::Fragmentation
                | Self::Vpn
                | Self::PdcpGap
                | Self::DoubleNat
                | Self::CellOutage
                | Self::RadioLinkFailure
                | Self::ApplicationLimited
                | Self::AckBatching
                | Self::InterruptModeration
                | Self::AggregationTimer
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
