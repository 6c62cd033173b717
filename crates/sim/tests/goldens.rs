//! Goodput over buffer × loss × RTT, as a small table: a change of behaviour is a changed line in
//! the diff. `make bless` rewrites it.

mod common;

use std::fmt::Write;
use std::path::Path;

const LINK_MBPS: f64 = 10.0;

#[test]
fn goodput_over_buffer_loss_and_rtt() {
    let mut table = String::from(
        "# Goodput in kb/s over 60 s at 10 Mb/s; buffer in BDP, at least two packets; loss in 1/1000.\n\
         # congestion rtt_ms buffer_bdp loss_permille goodput_kbps retransmissions timeouts\n",
    );
    for congestion in ["reno", "cubic"] {
        for rtt_ms in [20, 80, 320] {
            for buffer_bdp in [0.25, 1.0, 4.0] {
                for loss_permille in [0, 1, 10] {
                    let row = row(congestion, rtt_ms, buffer_bdp, loss_permille);
                    let _ = writeln!(table, "{row}");
                }
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens.txt");
    if std::env::var_os("AIRPATH_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the golden can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == table, "behaviour changed; now:\n{table}\n(make bless accepts it)");
}

fn row(congestion: &str, rtt_ms: u32, buffer_bdp: f64, loss_permille: u32) -> String {
    let bdp_packets = LINK_MBPS * 1e3 * f64::from(rtt_ms) / 8.0 / 1500.0;
    let packets = (bdp_packets * buffer_bdp).round().max(2.0);
    let delay = f64::from(rtt_ms) / 2.0;
    let mut text = format!(
        "[run]\nduration_s = 60\nseed = 7\n\
         [[path.down]]\nstage = \"link\"\nrate_mbps = {LINK_MBPS}\nqueue_packets = {packets:.0}\n\
         [[path.down]]\nstage = \"delay\"\ndelay_ms = {delay}\n\
         [[path.up]]\nstage = \"delay\"\ndelay_ms = {delay}\n"
    );
    if loss_permille > 0 {
        let probability = f64::from(loss_permille) / 1000.0;
        let _ = writeln!(text, "[[path.down]]\nstage = \"loss\"\nprobability = {probability}");
    }
    let _ = writeln!(text, "[[flow]]\nkind = \"bulk\"\ncongestion = \"{congestion}\"\n");
    let flow = common::flow(&text, &[]);
    let goodput = flow.goodput_mbps.expect("it ran");
    assert!(goodput <= LINK_MBPS * 1448.0 / 1500.0 + 1e-9, "more than the link carries: {text}");
    format!(
        "{congestion} {rtt_ms} {buffer_bdp} {loss_permille} {:.0} {} {}",
        goodput * 1e3,
        flow.retransmitted_segments.expect("a TCP flow"),
        flow.rto_count.expect("a TCP flow"),
    )
}
