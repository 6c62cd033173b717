//! The settings of a scenario's TCP profile that the kernel supports.
//!
//! The rest (delayed acknowledgements, the first RTO, slow start of CUBIC) is up to the kernel.

use airpath_base::{Direction, Duration};
use airpath_scenario::{FlowConfig, Scenario, TcpConfig};
use airpath_tcp::{
    EcnConfig, EndpointConfig, IdleRestart, LossDetection, RouteRule, SackCompressionConfig,
};

use crate::EmuError;
use crate::device::slab::SLOT_BYTES;
use crate::host::congestion::Names;

/// The settings of one end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelProfile {
    pub(crate) mtu: u32,
    /// The congestion control's name in the kernel.
    pub(crate) congestion: String,
    /// Names for flows with a different congestion control.
    pub(crate) names: Names,
    pub(crate) sysctls: Vec<(&'static str, String)>,
    /// Attributes of routes.
    pub(crate) route: String,
    /// Route attributes for flows that differ: sockets with the mark [`FIRST_MARK`] use the first
    /// of these.
    pub(crate) others: Vec<String>,
}

/// First mark of sockets, and first number of routing tables.
pub(crate) const FIRST_MARK: u32 = 1000;

/// Ethernet's MTU, unless a flow sets another.
const MTU: u32 = 1500;

/// Default for programs of a scenario without TCP flows.
const CONGESTION: &str = "cubic";

impl KernelProfile {
    /// Settings of the server's end (`None`) or a UE's: those of the first TCP flow of which it is
    /// the sender, otherwise the first that ends there, otherwise the first.
    ///
    /// # Errors
    ///
    /// If the kernel does not have the congestion control, or packets are too large.
    pub(crate) fn of(
        scenario: &Scenario,
        ue: Option<usize>,
        names: &Names,
    ) -> Result<Self, EmuError> {
        let names = names.clone();
        let flows: Vec<_> =
            scenario.flows.iter().filter_map(|flow| Some((flow, flow.traffic.tcp()?))).collect();
        let sends = |direction| (direction == Direction::Downlink) == ue.is_none();
        let here = |index: usize| ue.is_none_or(|ue| ue == index);
        let flow = flows
            .iter()
            .find(|(flow, _)| sends(flow.direction) && here(flow.ue))
            .or_else(|| flows.iter().find(|(flow, _)| here(flow.ue)))
            .or_else(|| flows.first());
        // Programs need not be root: their servers may use every port.
        let base = vec![("net.ipv4.ip_unprivileged_port_start", "0".to_owned())];
        let Some((flow, tcp)) = flow else {
            let (mtu, sysctls) = (MTU, [base, sysctls_of_route(None)].concat());
            let congestion = names.for_all().cloned().unwrap_or_else(|| CONGESTION.to_owned());
            let route = format!("congctl {congestion}");
            let others = Vec::new();
            return Ok(Self { mtu, congestion, names, sysctls, route, others });
        };
        let end = if sends(flow.direction) { &tcp.sender } else { &tcp.receiver };
        // Flows with smaller packets set this on their sockets.
        let mtu = here_mtu(&flows, ue).unwrap_or(end.mss + end.header);
        if mtu as usize > SLOT_BYTES {
            return Err(EmuError::Mtu { flow: flow.id.clone(), mtu, most: SLOT_BYTES });
        }
        let congestion = names.of(&flow.id, end)?;
        if end.route.rule == Some(RouteRule::Bsd) {
            return Err(EmuError::Metrics { flow: flow.id.clone() });
        }
        let mut sysctls = [base, sysctls_of_route(end.route.rule)].concat();
        // Refused unless the host allows it to everybody; the routes set it too.
        sysctls.push(("net.ipv4.tcp_congestion_control", congestion.clone()));
        // Data that arrives here may belong to another flow.
        let arrives =
            |(flow, _): &&(&FlowConfig, &TcpConfig)| !sends(flow.direction) && here(flow.ue);
        let mut receivers = flows.iter().filter(arrives).map(|(_, tcp)| &tcp.receiver);
        let receiver = receivers.next().unwrap_or(end);
        // A socket with an explicit size keeps that, whatever this is.
        let tuned = receiver.receive_buffer.tuned
            || receivers.any(|receiver| receiver.receive_buffer.tuned);
        sysctls.extend(sysctls_of(end));
        sysctls.extend(sysctls_of_receiver(receiver, tuned));
        let route = attributes(&congestion, end);
        let mut profile = Self { mtu, congestion, names, sysctls, route, others: Vec::new() };
        for (flow, tcp) in flows.iter().filter(|(flow, _)| here(flow.ue)) {
            let end = if sends(flow.direction) { &tcp.sender } else { &tcp.receiver };
            let route = profile.route_of(&flow.id, end);
            if route != profile.route && !profile.others.contains(&route) {
                profile.others.push(route);
            }
        }
        Ok(profile)
    }

    /// The congestion control of an end of a flow. A receiver may ask for one that the kernel does
    /// not have: it sends almost nothing, and uses that of the namespace.
    pub(crate) fn congestion_of(&self, flow: &str, end: &EndpointConfig) -> String {
        self.names.of(flow, end).unwrap_or_else(|_| self.congestion.clone())
    }

    /// The mark of sockets of such an end; `None` if they use the namespace's default routes.
    pub(crate) fn mark_of(&self, flow: &str, end: &EndpointConfig) -> Option<u32> {
        let route = self.route_of(flow, end);
        let other = self.others.iter().position(|other| *other == route);
        other.map(|other| FIRST_MARK + other as u32)
    }

    fn route_of(&self, flow: &str, end: &EndpointConfig) -> String {
        attributes(&self.congestion_of(flow, end), end)
    }

    /// Commands for `ip -batch`: `routes`, one per destination, for all flows. The kernel prefers a
    /// route's congestion control to the socket's, so flows that differ get routes of their own.
    pub(crate) fn routes(&self, routes: &[String]) -> String {
        let mut lines = String::new();
        for route in routes {
            lines += &format!("route add {route} {}\n", self.route);
        }
        for (mark, other) in (FIRST_MARK..).zip(&self.others) {
            lines += &format!("rule add fwmark {mark} lookup {mark}\n");
            for route in routes {
                lines += &format!("route add {route} table {mark} {other}\n");
            }
        }
        lines
    }
}

/// Route attributes for an end.
fn attributes(congestion: &str, end: &EndpointConfig) -> String {
    let rto_min_ms = (end.rto.min.as_nanos() / 1_000_000).max(1);
    let window = end.initial_window;
    format!("congctl {congestion} initcwnd {window} rto_min {rto_min_ms}ms")
}

/// The largest packets of the flows that end here.
fn here_mtu(flows: &[(&FlowConfig, &TcpConfig)], ue: Option<usize>) -> Option<u32> {
    let packet = |end: &EndpointConfig| end.mss + end.header;
    let here = flows.iter().filter(|(flow, _)| ue.is_none_or(|ue| ue == flow.ue));
    here.map(|(_, tcp)| packet(&tcp.sender).max(packet(&tcp.receiver))).max()
}

/// What connections keep for later ones. A kernel before 5.6 has the first of these only.
fn sysctls_of_route(rule: Option<RouteRule>) -> Vec<(&'static str, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    let keeps_none = ("net.ipv4.tcp_no_metrics_save", flag(rule.is_none()));
    let with_ssthresh = rule == Some(RouteRule::LinuxSsthresh);
    let keeps_no_ssthresh = ("net.ipv4.tcp_no_ssthresh_metrics_save", flag(!with_ssthresh));
    if rule.is_none() { vec![keeps_none] } else { vec![keeps_none, keeps_no_ssthresh] }
}

/// The end's sysctls (the kernel's Documentation/networking/ip-sysctl).
fn sysctls_of(end: &EndpointConfig) -> Vec<(&'static str, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    let recovery = &end.recovery;
    let mut sysctls = vec![
        ("net.ipv4.tcp_timestamps", flag(end.timestamps)),
        ("net.ipv4.tcp_sack", flag(end.sack)),
        ("net.ipv4.tcp_dsack", flag(end.dsack)),
        ("net.ipv4.tcp_window_scaling", flag(end.window_scaling)),
        ("net.ipv4.tcp_ecn", flag(end.ecn == EcnConfig::Classic)),
        ("net.ipv4.tcp_recovery", flag(recovery.detection == LossDetection::Rack)),
        ("net.ipv4.tcp_early_retrans", if recovery.tail_loss_probe { "3" } else { "0" }.to_owned()),
        ("net.ipv4.tcp_frto", if recovery.frto { "2" } else { "0" }.to_owned()),
        ("net.ipv4.tcp_slow_start_after_idle", flag(end.validation.idle != IdleRestart::Keep)),
        ("net.ipv4.tcp_wmem", {
            let max = end.send_buffer.clamp(4096, MOST_MEMORY);
            let initial = if end.send_buffer_factor.is_some() { max.min(16_384) } else { max };
            format!("4096 {initial} {max}")
        }),
        ("net.ipv4.tcp_invalid_ratelimit", {
            (end.delayed_ack.repeat_limit.as_nanos() / 1_000_000).to_string()
        }),
        ("net.ipv4.tcp_rto_min_us", (end.rto.min.as_nanos() / 1_000).to_string()),
    ];
    if let Some(pacing) = &end.pacing {
        let percent = |ratio: f64| ((ratio * 100.0) as u64).to_string();
        sysctls.push(("net.ipv4.tcp_pacing_ss_ratio", percent(pacing.slow_start_ratio)));
        sysctls.push(("net.ipv4.tcp_pacing_ca_ratio", percent(pacing.congestion_avoidance_ratio)));
    }
    if let Some(offload) = &end.offload {
        sysctls.push(("net.ipv4.tcp_tso_win_divisor", offload.window_divisor.to_string()));
    }
    sysctls
}

/// Sysctls that only affect what an end receives; `tuned`: its receive buffers tune themselves.
fn sysctls_of_receiver(end: &EndpointConfig, tuned: bool) -> Vec<(&'static str, String)> {
    let [initial, max] = [end.receive_buffer.initial, end.receive_buffer.max].map(memory);
    let SackCompressionConfig { delay, acks, slack } = end.sack_compression;
    let acks = if delay == Duration::ZERO { 0 } else { acks };
    vec![
        ("net.ipv4.tcp_moderate_rcvbuf", u8::from(tuned).to_string()),
        ("net.ipv4.tcp_rmem", format!("4096 {} {max}", initial.min(max))),
        ("net.ipv4.tcp_comp_sack_nr", acks.to_string()),
        ("net.ipv4.tcp_comp_sack_delay_ns", delay.as_nanos().to_string()),
        ("net.ipv4.tcp_comp_sack_slack_ns", slack.as_nanos().to_string()),
    ]
}

/// The part left for the window in Linux 6.18, as seen behind a TUN device.
const WINDOW_EIGHTHS: u64 = 5;

/// A sysctl has 31 bits.
const MOST_MEMORY: u64 = i32::MAX as u64;

/// Memory that provides this window: the kernel also counts its own overhead. A kernel before 6.6,
/// which gives half to the window (`tcp_adv_win_scale`), offers four fifths of what is requested.
fn memory(window: u64) -> u64 {
    window.saturating_mul(8).div_ceil(WINDOW_EIGHTHS).clamp(4096, MOST_MEMORY)
}

#[cfg(test)]
mod tests {
    use airpath_scenario::{Source, parse};

    use super::*;

    fn profile(text: &str, ue: Option<usize>) -> Result<KernelProfile, EmuError> {
        let text = format!("[[path.up]]\nstage = \"delay\"\ndelay_ms = 1\n{text}");
        let source = Source { name: "test.toml", text: &text, directory: None };
        let scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
        KernelProfile::of(&scenario, ue, &Names::default())
    }

    fn value<'a>(profile: &'a KernelProfile, key: &str) -> Option<&'a str> {
        profile.sysctls.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_end_is_as_the_flow_that_it_sends() {
        let text = "[[flow]]\nkind = \"bulk\"\ncongestion = \"reno\"\nprofile = \"linux-6.1\"\n\
                    [[flow]]\nkind = \"bulk\"\ndirection = \"up\"\ncongestion = \"bbr\"\n";
        let server = profile(text, None).unwrap();
        assert_eq!(server.congestion, "reno");
        assert_eq!(server.mtu, 1500);
        assert_eq!(server.route, "congctl reno initcwnd 10 rto_min 200ms");
        assert_eq!(value(&server, "net.ipv4.tcp_recovery"), Some("1"));
        assert_eq!(value(&server, "net.ipv4.tcp_ecn"), Some("0"));
        let ue = profile(text, Some(0)).unwrap();
        assert_eq!(ue.congestion, "bbr");
        // RFC 6298 2.4.
        assert_eq!(value(&ue, "net.ipv4.tcp_rto_min_us"), Some("1000000"));
        // By what each end receives.
        let compression = |profile| value(profile, "net.ipv4.tcp_comp_sack_nr");
        assert_eq!((compression(&server), compression(&ue)), (Some("0"), Some("44")));
    }

    #[test]
    fn flows_that_differ_have_routes_of_their_own() {
        let flow = |keys: &str| format!("[[flow]]\nkind = \"bulk\"\n{keys}");
        let text = flow("congestion = \"cubic\"\n")
            + &flow("congestion = \"bbr\"\n")
            + &flow("congestion = \"bbr\"\nstart_s = 1\n")
            + &flow("initial_window_segments = 3\n");
        let server = profile(&text, None).unwrap();
        assert_eq!(
            server.others,
            ["congctl bbr initcwnd 10 rto_min 1000ms", "congctl cubic initcwnd 3 rto_min 1000ms"]
        );
        let lines = server.routes(&["10.0.0.0/8 dev air0".to_owned()]);
        assert_eq!(
            lines.lines().nth(3),
            Some("rule add fwmark 1001 lookup 1001"),
            "one rule for each that differs: {lines}"
        );
        let alike = profile(&(flow("") + &flow("")), None).unwrap();
        assert_eq!(alike.others, [""; 0]);
    }

    #[test]
    fn what_arrives_at_an_end_is_received_as_its_flow_says() {
        let flow =
            |keys: &str| format!("[[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.18\"\n{keys}");
        let down = flow("buffer.receive_tuning = false\n");
        let text = down.clone() + &flow("direction = \"up\"\n");
        let tunes = |text: &str, ue| {
            let profile = profile(text, ue).unwrap();
            value(&profile, "net.ipv4.tcp_moderate_rcvbuf").map(str::to_owned)
        };
        // The server receives the upload, which is tuned; the UE receives the download.
        assert_eq!(tunes(&text, None).as_deref(), Some("1"));
        assert_eq!(tunes(&text, Some(0)).as_deref(), Some("0"));
        // One of two is enough: the other's socket sets its own size.
        assert_eq!(tunes(&(down + &flow("")), Some(0)).as_deref(), Some("1"));
    }

    #[test]
    fn a_profile_of_this_kernel_is_told_as_its_defaults() {
        let server = profile("[[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.18\"\n", None);
        // net.ipv4.tcp_rmem of 6.18: 128 KiB, 32 MiB.
        let memory = server.map(|server| value(&server, "net.ipv4.tcp_rmem").map(str::to_owned));
        assert_eq!(memory.unwrap().as_deref(), Some("4096 131072 33554432"));
    }

    #[test]
    fn metrics_are_kept_if_the_sender_keeps_them() {
        let kept = |rule: &str, ue| {
            let flow = format!("[[flow]]\nkind = \"bulk\"\nroute.metrics = \"{rule}\"\n");
            let profile = profile(&flow, ue).unwrap();
            ["net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_no_ssthresh_metrics_save"]
                .map(|key| value(&profile, key).map(str::to_owned))
        };
        let of = |saves: &str, ssthresh: Option<&str>| {
            [Some(saves.to_owned()), ssthresh.map(str::to_owned)]
        };
        assert_eq!(kept("none", None), of("1", None));
        assert_eq!(kept("linux", None), of("0", Some("1")));
        assert_eq!(kept("linux-ssthresh", None), of("0", Some("0")));
        assert_eq!(kept("linux-ssthresh", Some(0)), of("1", None), "the receiver keeps nothing");
    }

    #[test]
    fn without_a_tcp_flow_little_is_said() {
        let ping = profile("[[flow]]\nkind = \"ping\"\n", None).unwrap();
        assert_eq!((ping.congestion.as_str(), ping.sysctls.len()), ("cubic", 2));
    }

    #[test]
    fn what_the_kernel_cannot_be_is_refused() {
        let bulk = |keys: &str| profile(&format!("[[flow]]\nkind = \"bulk\"\n{keys}"), None);
        let message = |keys| bulk(keys).unwrap_err().to_string();
        assert!(message("congestion = \"bbr3\"\n").contains("reno, cubic, bbr"));
        assert!(message("mss_bytes = 8948\n").contains("9000"));
        assert!(message("route.metrics = \"bsd\"\n").contains("none, linux, linux-ssthresh"));
    }
}
