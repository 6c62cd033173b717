//! Checks that the keys of a TCP endpoint fit together.

use airpath_base::Duration;

use crate::problem::Problems;
use crate::read::Fields;

/// Reports combinations that no endpoint can have. `fields` is a flow, a proxy or a profile,
/// complete.
pub(crate) fn check(fields: &Fields, problems: &mut Problems) {
    // Where the first of these keys given in this table stands.
    let place = |names: &[&str]| {
        names.iter().find_map(|name| fields.given(name)).unwrap_or(&fields.origin).clone()
    };
    let ms = |time: Duration| time.as_millis_f64();
    if let (Some(min), Some(max)) = (fields.time("rto.min_ms"), fields.time("rto.max_ms"))
        && min > max
    {
        let message =
            format!("`rto.min_ms` ({}) is larger than `rto.max_ms` ({})", ms(min), ms(max));
        problems.add(&place(&["rto.min_ms", "rto.max_ms"]), message);
    }
    if let (Some(initial), Some(max)) = (fields.time("rto.initial_ms"), fields.time("rto.max_ms"))
        && initial > max
    {
        let message =
            format!("`rto.initial_ms` ({}) is larger than `rto.max_ms` ({})", ms(initial), ms(max));
        problems.add(&place(&["rto.initial_ms", "rto.max_ms"]), message);
    }
    let (Some(mss), Some(header)) =
        (fields.count("mss_bytes"), fields.count("options.header_bytes"))
    else {
        return;
    };
    if mss + header > 65535 {
        problems.add(
            &place(&["mss_bytes", "options.header_bytes"]),
            format!(
                "`mss_bytes` ({mss}) and `options.header_bytes` ({header}) make a packet of {} bytes; an \
                 IP packet has at most 65535",
                mss + header
            ),
        );
    }
    // 20 bytes of IPv4, 20 of TCP, 12 of option (RFC 7323 appendix A).
    if fields.flag("options.timestamps") == Some(true) && header < 52 {
        problems.add_with_help(
            &place(&["options.header_bytes", "options.timestamps"]),
            format!("timestamps do not fit into `options.header_bytes` = {header}"),
            "at least 52 bytes are needed: 20 (IPv4) + 20 (TCP) + 12 (timestamps); or set options.timestamps = false",
        );
    }
    for name in ["send_buffer_bytes", "receive_buffer_bytes", "buffer.initial_receive_bytes"] {
        if let Some(buffer) = fields.count(name).filter(|&bytes| bytes > 0)
            && buffer < mss
        {
            problems.add(
                &place(&[name, "mss_bytes"]),
                format!("`{name}` ({buffer}) is smaller than one segment (`mss_bytes` = {mss})"),
            );
            // A `window_bytes` sets both keys: report it once.
            break;
        }
    }
}
