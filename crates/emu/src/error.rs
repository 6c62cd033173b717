//! Errors between the model and the operating system.

use std::io;

/// Message for a build without BPF.
#[cfg(not(feature = "bpf"))]
pub(crate) const BPF_NOT_BUILT: &str = "this airpath was built without BPF (apt-get install clang libelf-dev zlib1g-dev make, then `make build`)";

/// Why an emulation could not begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// An invalid device argument.
    #[error("`{0}` is not a device: write NAMESPACE:DEVICE, where the device has at most 15 bytes")]
    Device(String),
    /// A namespace that does not exist or must not be entered.
    #[error("network namespace `{name}`: {source} (`ip netns list` lists them)")]
    Namespace {
        /// The name as given.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The TUN driver is missing or refuses.
    #[error(
        "/dev/net/tun for `{device}`: {source} (it needs the tun module, a device that you may \
         open, and root or CAP_NET_ADMIN; emulation.io = \"packet\" needs none of these)"
    )]
    Tun {
        /// The device's name inside the namespace, or a path under /dev.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A packet socket could not be opened.
    #[error("opening a packet socket: {0} (it needs root or CAP_NET_RAW)")]
    PacketSocket(io::Error),
    /// An interface of the host could not be opened.
    #[error(
        "opening a packet socket on `{name}`: {source} (it needs root, or CAP_NET_RAW and CAP_NET_ADMIN)"
    )]
    Interface {
        /// The interface's name.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// An interface whose MTU does not fit the path.
    #[error(
        "`{name}` has an MTU of {mtu} bytes; the packets of this scenario have {path} bytes, and \
         emulation supports MTUs of up to {most}: run `ip link set {name} mtu {path}`, or set \
         flow.0.mss_bytes"
    )]
    InterfaceMtu {
        /// The interface's name.
        name: String,
        /// The interface's MTU in bytes.
        mtu: u32,
        /// The MTU of the path in bytes.
        path: u32,
        /// The largest packet in bytes.
        most: usize,
    },
    /// Both interfaces of a gateway reach the same network.
    #[error(
        "both interfaces reach the same network: a frame that left through one arrived at the \
         other, and frames would circulate; connect the devices and the server to networks that \
         only the gateway joins"
    )]
    Loop,
    /// A device was assigned to a UE that the scenario does not have.
    #[error("`{name}` is not a UE of this scenario; its UEs are {known}")]
    UnknownUe {
        /// The name as given.
        name: String,
        /// The UEs of the scenario.
        known: String,
    },
    /// A device of a gateway that cannot be recognised, or that is assigned twice.
    #[error("`{name}={device}`: {said}")]
    Attached {
        /// The UE as given.
        name: String,
        /// The device as given.
        device: String,
        /// What is wrong.
        said: &'static str,
    },
    /// A part of the scenario that a gateway does not support.
    #[error("{0}")]
    NoGateway(&'static str),
    /// Reading packets failed: the device is gone.
    #[error("reading from `{device}`: {source}")]
    Read {
        /// The device's name inside the namespace, or a path under /dev.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// There is a TCP proxy in the path.
    #[error(
        "`{stage}`: a TCP proxy can be simulated, not emulated; remove it from [[path.down]] and \
         [[path.up]]"
    )]
    Proxy {
        /// The proxy's name.
        stage: String,
    },
    /// A network namespace could not be created.
    #[error("creating a network namespace for `{name}`: {source} (it needs root or CAP_SYS_ADMIN)")]
    Unshare {
        /// The end for which it was needed.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// `ip` failed or is missing.
    #[error("ip -batch: {said} (apt-get install iproute2)")]
    Ip {
        /// The message of `ip`.
        said: String,
    },
    /// `nft` failed or is missing.
    #[error("nft for `{name}`: {said} (apt-get install nftables)")]
    Nft {
        /// The NAT's name.
        name: String,
        /// The message of `nft`.
        said: String,
    },
    /// A sysctl that a node needs could not be set.
    #[error("sysctl {setting} in `{name}`: {said}")]
    Sysctl {
        /// The node's name.
        name: String,
        /// Key and value.
        setting: String,
        /// The kernel's message.
        said: String,
    },
    /// A UDP socket for GTP-U could not be opened.
    #[error("opening a UDP socket at {address}: {source}")]
    Tunnel {
        /// The IPv4 address and port that it should have.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// There are more NATs in a row than addresses for them.
    #[error("{nats} NATs in a row can be simulated; emulation supports up to {most}")]
    Nats {
        /// The number of NATs.
        nats: usize,
        /// The largest possible number.
        most: usize,
    },
    /// Packets are larger than the forwarder supports.
    #[error(
        "flow `{flow}`: packets of {mtu} bytes (mss_bytes + header_bytes) can be simulated; \
         emulation supports up to {most}"
    )]
    Mtu {
        /// The flow's id in the scenario.
        flow: String,
        /// The size of its packets in bytes.
        mtu: u32,
        /// The largest supported size in bytes.
        most: usize,
    },
    /// A congestion control that only airpath's own TCP has.
    #[error("flow `{flow}`: the kernel has no `{name}`; emulation supports reno, cubic, bbr")]
    Congestion {
        /// The flow's id in the scenario.
        flow: String,
        /// Congestion control of the flow.
        name: String,
    },
    /// A way to keep metrics that only airpath's own TCP has.
    #[error(
        "flow `{flow}`: the kernel does not keep metrics as BSD does; emulation supports \
         route.metrics = none, linux, linux-ssthresh"
    )]
    Metrics {
        /// The flow's id in the scenario.
        flow: String,
    },
    /// A chosen congestion control that the host or an object does not have.
    #[error("congestion control: {said}")]
    NoCongestion {
        /// What is wrong.
        said: String,
    },
    /// A congestion control that the kernel did not accept.
    #[error("congestion control: {said}")]
    RefusedCongestion {
        /// The kernel's reason.
        said: String,
        /// The verifier's log; empty if that is not what refused.
        log: String,
    },
    /// Packets that would be fragmented.
    #[error(
        "flow `{flow}`: packets of {bytes} bytes (packet_bytes) can be simulated; the kernel \
         would fragment them: at most {mtu}, the MTU, can be emulated"
    )]
    Packet {
        /// The flow's id in the scenario.
        flow: String,
        /// The size of its packets in bytes.
        bytes: u32,
        /// The largest size in bytes.
        mtu: u32,
    },
    /// There are more flows than ports.
    #[error("the scenario has {flows} flows; emulation supports up to {most}")]
    Flows {
        /// The number of flows.
        flows: usize,
        /// The number of flows for which there are ports.
        most: usize,
    },
    /// A socket could not be opened or configured.
    #[error("flow `{flow}`: {step}: {source}")]
    Socket {
        /// The flow's id in the scenario.
        flow: String,
        /// The attempted step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// A flow would have differed from the one requested.
    #[error("flow `{flow}`: {said}")]
    Differs {
        /// The flow's id in the scenario.
        flow: String,
        /// What differs.
        said: String,
    },
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// A slow start of CUBIC that none of airpath's congestion controls has.
    #[error(
        "flow `{flow}`: emulation.slow_start = \"profile\" supports slow_start none, hystart-4.19, hystart-5.6, \
         hystart-5.8, hystart-5.16, hystart-6.14 and hystart++ without other hystart keys, and hystart-4.19 with \
         hystart.falling_minimum_exits = false, alone or with hystart.late_reset = false"
    )]
    SlowStart {
        /// The flow's id in the scenario.
        flow: String,
    },
    /// There are more UEs than addresses.
    #[error(
        "the scenario has {ues} UEs; emulation supports up to {most}, because each has a network \
            namespace"
    )]
    Ues {
        /// The number of UEs.
        ues: usize,
        /// The largest possible number.
        most: usize,
    },
    /// A UE has the name of another namespace.
    #[error(
        "a UE is called `{name}`, but emulation uses this name for another namespace: choose \
            another name"
    )]
    UeName {
        /// The name as given.
        name: String,
    },
    /// A place that does not exist.
    #[error("the network has no host `{name}`; its hosts are {known}")]
    UnknownEnd {
        /// The name as given.
        name: String,
        /// The existing places.
        known: String,
    },
    /// There are only services, so no program would end the run.
    #[error(
        "no program would end the run: set `ends_run = true` in one [[program]], add one without \
         `wait_for = \"listen\"`, or give a COMMAND"
    )]
    Endless,
    /// A file for a program's output could not be created.
    #[error("{file}: {source}")]
    Output {
        /// The file's path.
        file: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A word of the command that cannot be passed to a program.
    #[error("the command word `{0}` contains a NUL byte, which cannot be passed to a program")]
    Word(String),
    /// The programs could not be started.
    #[error("{step}: {source}")]
    Start {
        /// The attempted step.
        step: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The forwarder's thread ended before the command.
    #[error("the forwarder stopped: this is a bug")]
    Forwarder,
    /// Waiting failed.
    #[error("ppoll: {0}")]
    Wait(io::Error),
    /// BPF is unavailable or not permitted.
    #[error("{said}")]
    Bpf {
        /// The reason.
        said: String,
    },
    /// The kernel could not be queried for sockets.
    #[error("reading sockets with NETLINK_SOCK_DIAG: {source} (the kernel needs CONFIG_INET_DIAG)")]
    Diag {
        /// The kernel's error.
        source: io::Error,
    },
    /// A capture could not be written.
    #[error("capture {file}: {source}")]
    Capture {
        /// The file's path.
        file: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl EmuError {
    /// Whether the request itself is at fault, so that repeating it will not help.
    pub const fn is_bad_use(&self) -> bool {
        matches!(
            self,
            Self::Device(_)
                | Self::Proxy { .. }
                | Self::Mtu { .. }
                | Self::Congestion { .. }
                | Self::Metrics { .. }
                | Self::NoCongestion { .. }
                | Self::SlowStart { .. }
                | Self::Ues { .. }
                | Self::Nats { .. }
                | Self::Packet { .. }
                | Self::Flows { .. }
                | Self::UeName { .. }
                | Self::UnknownEnd { .. }
                | Self::InterfaceMtu { .. }
                | Self::UnknownUe { .. }
                | Self::Attached { .. }
                | Self::NoGateway(_)
                | Self::Word(_)
                | Self::Endless
        )
    }
}
