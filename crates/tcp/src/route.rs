//! What a host keeps about a destination from one connection to the next (RFC 9040 2, temporal
//! sharing).

use airpath_base::Duration;

use crate::Window;

/// What a host knows about a destination when a connection begins, and what it keeps of it when the
/// connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RouteConfig {
    /// The rule; `None`: the host keeps nothing and uses nothing.
    pub rule: Option<RouteRule>,
    /// What the host knows.
    pub known: RouteMetrics,
}

/// How a host keeps metrics, and how a connection begins with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteRule {
    /// Linux since 5.6: the RTT, for the first time-out. `tcp_no_metrics_save` is 0 and
    /// `tcp_no_ssthresh_metrics_save` 1, the defaults (the kernel's ip-sysctl). The details were
    /// observed with 6.18 (`ip tcp_metrics show`).
    Linux,
    /// Linux before 5.6, or with `tcp_no_ssthresh_metrics_save` = 0: ssthresh too.
    LinuxSsthresh,
    /// 4.4BSD and its descendants until they replaced the metrics of routes by a host cache, Mac OS
    /// X 10.5 among them: ssthresh, the RTT and its variation, each averaged with what was known
    /// (Wright and Stevens, TCP/IP Illustrated 2, 27.9). As in Mac OS X, a first ssthresh is kept if
    /// it is less than half of the send buffer.
    Bsd,
}

/// Metrics of one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RouteMetrics {
    /// Slow start threshold in segments.
    pub ssthresh: Option<f64>,
    /// Smoothed RTT.
    pub rtt: Option<Duration>,
    /// Mean deviation of the RTT.
    pub rttvar: Option<Duration>,
}

/// The state in which a connection ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) window: Window,
    pub(crate) rtt: Option<Duration>,
    pub(crate) rttvar: Duration,
    /// Number of RTT samples.
    pub(crate) samples: u64,
    /// Payload bytes of a full segment.
    pub(crate) mss: u32,
    /// Size of the send buffer in bytes.
    pub(crate) send_buffer: u64,
}

/// BSD takes the RTT and ssthresh of a connection with this many RTT samples (4.4BSD, `tcp_close`).
const BSD_SAMPLES: u64 = 16;
/// IPv4 and TCP headers, which BSD adds to each segment of ssthresh.
const BSD_HEADERS: u32 = 40;
/// BSD's ssthresh before the first congestion: the largest scaled window (RFC 7323 2.3).
const BSD_INITIAL_SSTHRESH: f64 = (65_535_u64 << 14) as f64;

impl RouteConfig {
    /// The slow start threshold of a new connection, in segments.
    pub(crate) fn ssthresh(&self) -> Option<f64> {
        match self.rule? {
            RouteRule::Linux => None,
            RouteRule::LinuxSsthresh => self.known.ssthresh,
            RouteRule::Bsd => self.known.ssthresh.map(|ssthresh| ssthresh.max(2.0)),
        }
    }

    /// What the host knows after a connection, if it knew `known` when the connection ended.
    pub(crate) fn keep(&self, known: RouteMetrics, ended: &Ended) -> RouteMetrics {
        match self.rule {
            None => known,
            Some(RouteRule::Linux) => RouteMetrics { rtt: linux_rtt(known, ended), ..known },
            Some(RouteRule::LinuxSsthresh) => RouteMetrics {
                rtt: linux_rtt(known, ended),
                ssthresh: linux_ssthresh(known.ssthresh, ended.window),
                ..known
            },
            Some(RouteRule::Bsd) if ended.samples < BSD_SAMPLES => known,
            Some(RouteRule::Bsd) => RouteMetrics {
                ssthresh: bsd_ssthresh(known.ssthresh, ended),
                rtt: ended.rtt.map(|rtt| known.rtt.map_or(rtt, |known| (known + rtt) / 2)),
                rttvar: Some(known.rttvar.map_or(ended.rttvar, |known| (known + ended.rttvar) / 2)),
            },
        }
    }
}

/// A longer RTT counts at once; a shorter one by an eighth of the difference.
fn linux_rtt(known: RouteMetrics, ended: &Ended) -> Option<Duration> {
    let Some(rtt) = ended.rtt else { return known.rtt };
    Some(known.rtt.filter(|&known| known > rtt).map_or(rtt, |known| known - (known - rtt) / 8))
}

/// A connection that has left slow start replaces what was known by the larger of ssthresh and half
/// of cwnd. One that has not can only raise it.
fn linux_ssthresh(known: Option<f64>, window: Window) -> Option<f64> {
    let half = (window.cwnd.floor() / 2.0).floor();
    if !window.in_slow_start() {
        Some(window.ssthresh.floor().max(half))
    } else if window.ssthresh.is_infinite() {
        known.map(|known| known.max(half))
    } else {
        known.map(|known| known.max(window.ssthresh.floor()))
    }
}

/// ssthresh counts in whole segments, at least two, with their headers.
fn bsd_ssthresh(known: Option<f64>, ended: &Ended) -> Option<f64> {
    let mss = f64::from(ended.mss);
    let bytes = (ended.window.ssthresh * mss).min(BSD_INITIAL_SSTHRESH);
    if known.is_none() && bytes >= (ended.send_buffer / 2) as f64 {
        return None;
    }
    let segments = (bytes / mss).round().max(2.0) * f64::from(ended.mss + BSD_HEADERS) / mss;
    Some(known.map_or(segments, |known| f64::midpoint(known, segments)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn ended(cwnd: f64, ssthresh: f64, rtt: Duration) -> Ended {
        Ended {
            window: Window { cwnd, ssthresh },
            rtt: Some(rtt),
            rttvar: MS(10),
            samples: 16,
            mss: 1000,
            send_buffer: 64_000,
        }
    }

    fn after(rule: RouteRule, known: RouteMetrics, ended: &Ended) -> RouteMetrics {
        RouteConfig { rule: Some(rule), known }.keep(known, ended)
    }

    fn knowing(ssthresh: f64) -> RouteMetrics {
        RouteMetrics { ssthresh: Some(ssthresh), ..RouteMetrics::default() }
    }

    const INF: f64 = f64::INFINITY;

    /// Seen with `ip tcp_metrics show` of 6.18: cwnd and ssthresh at the end, what was known, and
    /// what was kept.
    #[test]
    fn linux_keeps_what_the_kernel_was_seen_to_keep() {
        for (cwnd, ssthresh, known, kept) in [
            (163.0, 63.0, None, Some(81.0)),
            (77.0, 63.0, Some(81.0), Some(63.0)),
            (63.0, 41.0, None, Some(41.0)),
            (31.0, 50.0, Some(50.0), Some(50.0)),
            (218.0, INF, Some(5.0), Some(109.0)),
            (701.0, INF, None, None),
        ] {
            let known = RouteMetrics { ssthresh: known, ..RouteMetrics::default() };
            let kept_now = after(RouteRule::LinuxSsthresh, known, &ended(cwnd, ssthresh, MS(50)));
            assert_eq!(kept_now.ssthresh, kept, "{cwnd} {ssthresh} {known:?}");
            let rtt_alone = after(RouteRule::Linux, known, &ended(cwnd, ssthresh, MS(50)));
            assert_eq!(rtt_alone.ssthresh, known.ssthresh);
        }
    }

    #[test]
    fn linux_raises_the_rtt_at_once_and_lowers_it_by_an_eighth() {
        let after = |known, rtt| {
            let known = RouteMetrics { rtt: known, ..RouteMetrics::default() };
            after(RouteRule::Linux, known, &ended(10.0, INF, rtt)).rtt
        };
        assert_eq!(after(None, MS(80)), Some(MS(80)));
        assert_eq!(after(Some(MS(80)), MS(160)), Some(MS(160)));
        assert_eq!(after(Some(MS(160)), MS(80)), Some(MS(150)));
    }

    #[test]
    fn bsd_waits_for_bad_news_and_then_averages() {
        let none = RouteMetrics::default();
        // Half of the send buffer is 32 segments: with a smaller buffer it is not kept.
        assert_eq!(after(RouteRule::Bsd, none, &ended(60.0, 32.0, MS(50))).ssthresh, None);
        let news = ended(60.0, 31.0, MS(50));
        assert_eq!(after(RouteRule::Bsd, none, &news).ssthresh, Some(31.0 * 1.04));
        assert_eq!(after(RouteRule::Bsd, none, &Ended { samples: 15, ..news }), none);
        let large = Ended { send_buffer: 4_000_000, ..ended(60.0, 32.0, MS(50)) };
        assert_eq!(after(RouteRule::Bsd, none, &large).ssthresh, Some(32.0 * 1.04));
        // Once it is kept, good news counts too.
        let kept = after(RouteRule::Bsd, knowing(10.0), &ended(90.0, 50.0, MS(50)));
        assert_eq!(kept.ssthresh, Some((10.0 + 50.0 * 1.04) / 2.0));
        assert_eq!((kept.rtt, kept.rttvar), (Some(MS(50)), Some(MS(10))));
        let again = after(RouteRule::Bsd, kept, &ended(90.0, 50.0, MS(150)));
        assert_eq!(again.rtt, Some(MS(100)));
    }

    #[test]
    fn a_connection_begins_with_what_the_rule_uses() {
        let ssthresh = |rule, known| RouteConfig { rule, known: knowing(known) }.ssthresh();
        assert_eq!(ssthresh(None, 20.0), None);
        assert_eq!(ssthresh(Some(RouteRule::Linux), 20.0), None);
        assert_eq!(ssthresh(Some(RouteRule::LinuxSsthresh), 20.0), Some(20.0));
        assert_eq!(ssthresh(Some(RouteRule::Bsd), 1.0), Some(2.0));
    }
}
