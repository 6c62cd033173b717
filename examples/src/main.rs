//! Downloads with Reno and with Vegas, over a link and over one with outages, one line each.
#![expect(clippy::print_stdout, reason = "the program's output")]

use airpath_base::Duration;
use airpath_examples::{Download, Outage, Vegas, download, link};
use airpath_path::Path;
use airpath_tcp::{CongestionConfig, CongestionControl, EndpointConfig};

fn main() {
    let config = EndpointConfig { congestion: CongestionConfig::RENO, ..EndpointConfig::default() };
    println!("control  path     Mb/s  SRTT ms  retransmitted");
    for (path, outages) in [("link", false), ("outages", true)] {
        for (name, vegas) in [("Reno", false), ("Vegas", true)] {
            let control = vegas.then(|| Box::new(Vegas::default()) as Box<dyn CongestionControl>);
            let wire = link(20, Duration::from_millis(20), 480);
            let wire: Box<dyn Path> = if outages {
                Box::new(Outage::new(wire, Duration::from_secs(5), Duration::from_millis(300)))
            } else {
                Box::new(wire)
            };
            let Download { goodput_mbps, srtt, retransmitted } =
                download(&config, control, wire, Duration::from_secs(20));
            let srtt = srtt.unwrap_or_default().as_millis_f64();
            println!("{name:<8} {path:<8} {goodput_mbps:4.1} {srtt:8.1}  {retransmitted:13}");
        }
    }
}
