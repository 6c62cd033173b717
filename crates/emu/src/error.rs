//! What can go wrong between the model and the operating system.

use std::io;

/// Why there is no BPF here.
#[cfg(not(feature = "bpf"))]
pub(crate) const BPF_NOT_BUILT: &str = "this airpath was built without BPF (apt-get install clang libelf-dev zlib1g-dev make, then `make build`)";

/// Why an emulation could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// A device argument that is none.
    #[error("`{0}` is not a device: write NAMESPACE:DEVICE, where the device has at most 15 bytes")]
    Device(String),
    /// A namespace that is not there or may not be entered.
    #[error("network namespace `{name}`: {source} (`ip netns list` lists them)")]
    Namespace {
        /// As it was given.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The TUN driver is missing or refuses.
    #[error(
        "/dev/net/tun for `{device}`: {source} (it needs the tun module, a device that you may \
         open, and root or CAP_NET_ADMIN; emulation.io = \"packet\" needs none of these)"
    )]
    Tun {
        /// Its name inside the namespace, or a path under /dev.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No packet socket.
    #[error("a packet socket: {0} (root, or CAP_NET_RAW)")]
    PacketSocket(io::Error),
    /// Reading packets failed: the device is gone.
    #[error("reading from `{device}`: {source}")]
    Read {
        /// Its name inside the namespace, or a path under /dev.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A TCP proxy in the path.
    #[error(
        "`{stage}`: a TCP proxy can be simulated, not emulated; remove it from [[path.down]] and \
         [[path.up]]"
    )]
    Proxy {
        /// Its name.
        stage: String,
    },
    /// No network namespace.
    #[error("a network namespace for `{name}`: {source} (root, or CAP_SYS_ADMIN)")]
    Unshare {
        /// Whose.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// `ip` failed or is not there.
    #[error("ip -batch: {said} (apt-get install iproute2)")]
    Ip {
        /// What it said.
        said: String,
    },
    /// `nft` failed or is not there.
    #[error("nft for `{name}`: {said} (apt-get install nftables)")]
    Nft {
        /// The NAT.
        name: String,
        /// What it said.
        said: String,
    },
    /// A sysctl without which a node does not work.
    #[error("sysctl {setting} in `{name}`: {said}")]
    Sysctl {
        /// Whose.
        name: String,
        /// Key and value.
        setting: String,
        /// What the kernel said.
        said: String,
    },
    /// No UDP socket for GTP-U.
    #[error("a UDP socket at {address}: {source}")]
    Tunnel {
        /// IPv4 address and port that it was to have.
        address: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// More NATs in a row than there are addresses for.
    #[error("{nats} NATs in a row can be simulated; emulation supports up to {most}")]
    Nats {
        /// How many.
        nats: usize,
        /// How many there can be.
        most: usize,
    },
    /// Larger packets than the forwarder has room for.
    #[error(
        "flow `{flow}`: packets of {mtu} bytes (mss_bytes + header_bytes) can be simulated; \
         emulation supports up to {most}"
    )]
    Mtu {
        /// Its id in the scenario.
        flow: String,
        /// Its packets' size.
        mtu: u32,
        /// The largest.
        most: usize,
    },
    /// A congestion control that is ours only.
    #[error("flow `{flow}`: the kernel has no `{name}`; emulation supports reno, cubic, bbr")]
    Congestion {
        /// Its id in the scenario.
        flow: String,
        /// Its congestion control.
        name: String,
    },
    /// Packets that would be cut into fragments.
    #[error(
        "flow `{flow}`: packets of {bytes} bytes (packet_bytes) can be simulated; the kernel \
         would fragment them: at most {mtu}, the MTU, can be emulated"
    )]
    Packet {
        /// Its id in the scenario.
        flow: String,
        /// Its packets' size.
        bytes: u32,
        /// The largest.
        mtu: u32,
    },
    /// More flows than there are ports.
    #[error("the scenario has {flows} flows; emulation supports up to {most}")]
    Flows {
        /// How many.
        flows: usize,
        /// How many there are ports for.
        most: usize,
    },
    /// A socket could not be opened or set.
    #[error("flow `{flow}`: {step}: {source}")]
    Socket {
        /// Its id in the scenario.
        flow: String,
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A flow would have been another one than was asked for.
    #[error("flow `{flow}`: {said}")]
    Differs {
        /// Its id in the scenario.
        flow: String,
        /// What differs.
        said: String,
    },
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// A slow start of CUBIC that none of ours has.
    #[error(
        "flow `{flow}`: emulation.slow_start = \"profile\" takes slow_start none, hystart-4.19, \
         hystart-5.6, hystart-5.8, hystart-5.16, hystart-6.14 and hystart++ as they are, and \
         hystart-4.19 with hystart.falling_minimum_exits = false, alone or with \
         hystart.late_reset = false"
    )]
    SlowStart {
        /// Its id in the scenario.
        flow: String,
    },
    /// More UEs than there are addresses.
    #[error(
        "the scenario has {ues} UEs; emulation supports up to {most}, because each has a network \
            namespace"
    )]
    Ues {
        /// How many.
        ues: usize,
        /// How many there can be.
        most: usize,
    },
    /// A UE with the name of another namespace.
    #[error(
        "a UE is called `{name}`, but emulation uses this name for another namespace: choose \
            another name"
    )]
    UeName {
        /// As it was given.
        name: String,
    },
    /// A place that is none.
    #[error("the network has no end `{name}`; its ends are {known}")]
    UnknownEnd {
        /// As given.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Only services, and nobody whose end could be waited for.
    #[error(
        "no program would end the run: set `ends_run = true` in one [[program]], add one without \
         `wait_for = \"listen\"`, or give a COMMAND"
    )]
    Endless,
    /// A file for what a program writes.
    #[error("{file}: {source}")]
    Output {
        /// Its path.
        file: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A word of the command that no program can be given.
    #[error("the command word `{0}` contains a NUL byte, which cannot be passed to a program")]
    Word(String),
    /// The programs could not be started.
    #[error("{step}: {source}")]
    Start {
        /// What was tried.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The forwarder's thread ended before the command.
    #[error("the forwarder stopped: this is a bug")]
    Forwarder,
    /// Waiting failed.
    #[error("ppoll: {0}")]
    Wait(io::Error),
    /// BPF is not there or not allowed.
    #[error("{said}")]
    Bpf {
        /// Why.
        said: String,
    },
    /// Sockets could not be asked.
    #[error("NETLINK_SOCK_DIAG: {source} (CONFIG_INET_DIAG)")]
    Diag {
        /// What the kernel said.
        source: io::Error,
    },
    /// A capture could not be written.
    #[error("capture {file}: {source}")]
    Capture {
        /// Its path.
        file: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl EmuError {
    /// What was asked for makes no sense; asking for the same again will not help.
    pub const fn is_bad_use(&self) -> bool {
        matches!(
            self,
            Self::Device(_)
                | Self::Proxy { .. }
                | Self::Mtu { .. }
                | Self::Congestion { .. }
                | Self::SlowStart { .. }
                | Self::Ues { .. }
                | Self::Nats { .. }
                | Self::Packet { .. }
                | Self::Flows { .. }
                | Self::UeName { .. }
                | Self::UnknownEnd { .. }
                | Self::Word(_)
                | Self::Endless
        )
    }
}
