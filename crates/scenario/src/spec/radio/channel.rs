//! `[radio.channel]` and `[radio.channel_up]`.

use super::super::{Default, Key, Kind, MS_ABOVE_0, Need, Table, Unit, choice, count, or, real};
use super::{ALL, each};

/// The channel of one direction.
pub(crate) static CHANNEL: Table = Table {
    header: "[radio.channel] and [radio.channel_up]",
    path: "radio.channel or radio.channel_up or radio.ue.N.channel",
    doc: "What the radio is worth. A table that has `sinr_db`, `file` or `distance_m` need not say \
          `model`.",
    selector: None,
    groups: &[each(ALL, KEYS)],
};

const CONSTANT: Need = Need::Is("model", "constant");
const TRACE: Need = Need::Is("model", "trace");
const PROCESS: Need = Need::Is("model", "process");
const HEIGHT: Kind = real("metres", 1.1, 1000.0);
const DB: Kind = real("dB", -100.0, 200.0);
const CEILING: Kind = real("dB", -20.0, 100.0);
const METRES: Kind = real("metres", 0.0, 100_000.0);
const PLACE: Kind = real("m", -100_000.0, 100_000.0);
const KMH: Kind = real("km/h", 0.0, 2_000.0);

const KEYS: &[Key] = &[
    Key::new(
        "model",
        Kind::Choice(&[
            choice("constant", "The same SINR at all times."),
            choice("trace", "A recording."),
            choice("process", "Path loss, shadowing and fading of a UE that may move."),
        ]),
        Default::Value("\"constant\""),
        "Where the quality comes from.",
    ),
    Key::new(
        "sinr_db",
        real("dB", -30.0, 100.0),
        Default::Value("30"),
        "Signal to interference and noise ratio, of each layer.",
    )
    .needs(CONSTANT),
    Key::new(
        "file",
        Kind::File,
        Default::Required,
        "Recording, plain or gzip: CSV with the columns `time_s` and one of `sinr_db`, `cqi` and \
         `mcs`, or a G-NetTrack Pro log. Relative to the scenario file's directory.",
    )
    .needs(TRACE),
    Key::new(
        "log_column",
        Kind::Choice(&[
            choice("snr", "`SNR`; of a non-standalone 5G connection the LTE anchor's."),
            choice("cqi", "`CQI`."),
        ]),
        Default::Value("\"snr\""),
        "Which column of a G-NetTrack Pro log counts.",
    )
    .needs(TRACE),
    Key::new(
        "missing",
        Kind::Choice(&[
            choice("hold", "The value before it holds."),
            choice("outage", "There is no channel: nothing that is sent arrives."),
        ]),
        Default::Value("\"hold\""),
        "What a row without a value means.",
    )
    .needs(TRACE),
    Key::new(
        "at_end",
        Kind::Choice(&[
            choice("loop", "It starts again."),
            choice("hold", "The last value stays."),
        ]),
        Default::Value("\"loop\""),
        "What follows the recording's end.",
    )
    .needs(TRACE),
    Key::new(
        "path_loss",
        Kind::Choice(&[
            choice("uma_los", "Urban macro, line of sight."),
            choice("uma_nlos", "Urban macro, no line of sight."),
            choice("umi_los", "Urban micro, line of sight."),
            choice("umi_nlos", "Urban micro, no line of sight."),
            choice("inh_los", "Indoor office, line of sight."),
            choice("inh_nlos", "Indoor office, no line of sight."),
            choice("exponent", "`path_loss_at_1_m_db` + 10 `path_loss_exponent` log10(d / 1 m)."),
        ]),
        Default::Value("\"uma_nlos\""),
        "Mean loss over distance (TR 38.901 table 7.4.1-1).",
    )
    .needs(PROCESS),
    Key::new(
        "path_loss_at_1_m_db",
        DB,
        Default::Value("40"),
        "Loss at 1 m, for `path_loss = \"exponent\"`.",
    )
    .needs(PROCESS),
    Key::new(
        "path_loss_exponent",
        real("", 0.0, 10.0),
        Default::Value("3.5"),
        "2 in free space, 3 to 4 in towns; for `path_loss = \"exponent\"`.",
    )
    .needs(PROCESS),
    Key::new(
        "carrier_mhz",
        real("MHz", 100.0, 100_000.0),
        Default::Value("3500"),
        "Carrier frequency.",
    )
    .needs(PROCESS),
    Key::new(
        "distance_m",
        PLACE,
        Default::Value("200"),
        "Where the UE starts on its straight road, from the point nearest to the base station; \
         negative: before it.",
    )
    .needs(PROCESS),
    Key::new(
        "beside_m",
        METRES,
        Default::Value("0"),
        "Distance of the base station from that road.",
    )
    .needs(PROCESS),
    Key::new(
        "speed_kmh",
        KMH,
        Default::Value("0"),
        "How fast the UE drives: towards larger distances, until it turns.",
    )
    .needs(PROCESS),
    Key::new(
        "turn_m",
        or("never", &PLACE),
        Default::Value("\"never\""),
        "Where on the road it turns, drives back to where it started, and turns again; less than \
         `distance_m`: it drives towards the base station first.",
    )
    .needs(PROCESS),
    Key::new(
        "base_station_height_m",
        HEIGHT,
        Default::Value("25"),
        "Height of the base station's antenna.",
    )
    .needs(PROCESS),
    Key::new("ue_height_m", HEIGHT, Default::Value("1.5"), "Height of the UE's antenna.")
        .needs(PROCESS),
    Key::new(
        "transmit_dbm",
        real("dBm", -50.0, 100.0),
        Default::Value("46"),
        "Transmit power, all of it in the carrier's bandwidth; 23 is a UE's (TS 38.101-1 6.2.1).",
    )
    .needs(PROCESS),
    Key::new(
        "gain_db",
        DB,
        Default::Value("10"),
        "Gains of both antennas less losses of cables and bodies.",
    )
    .needs(PROCESS),
    Key::new(
        "noise_figure_db",
        real("dB", 0.0, 50.0),
        Default::Value("7"),
        "Noise figure of the receiver, above -174 dBm/Hz.",
    )
    .needs(PROCESS),
    Key::new(
        "interference_db",
        real("dB", 0.0, 100.0),
        Default::Value("0"),
        "Interference and noise over noise alone.",
    )
    .needs(PROCESS),
    Key::new(
        "shadowing_db",
        real("dB", 0.0, 50.0),
        Default::Value("0"),
        "Standard deviation of the shadowing (TR 38.901 table 7.4.1-1); 0: none.",
    )
    .needs(PROCESS),
    Key::new(
        "shadowing_correlation_m",
        real("metres", 0.1, 10_000.0),
        Default::Value("50"),
        "Distance over which its autocorrelation falls to 1/e (TR 38.901 table 7.5-6).",
    )
    .needs(PROCESS),
    Key::new(
        "fading",
        Kind::Choice(&[
            choice("none", "None."),
            choice("rayleigh", "No direct path."),
            choice("rician", "A direct path, `rician_k_db` stronger than the others."),
        ]),
        Default::Value("\"none\""),
        "Fading by multipath.",
    )
    .needs(PROCESS),
    Key::new(
        "fading_kmh",
        KMH,
        Default::Derived("`speed_kmh`"),
        "Speed of the UE, or of what moves around it, that makes it fade.",
    )
    .needs(PROCESS),
    Key::new(
        "fading_branches",
        count(Unit::Plain, 1, 64),
        Default::Value("2"),
        "Independent branches whose powers are averaged: antennas, or coherence bandwidths in the \
         carrier.",
    )
    .needs(PROCESS),
    Key::new(
        "rician_k_db",
        real("dB", -30.0, 60.0),
        Default::Value("9"),
        "Power of the direct path over that of the others, for `fading = \"rician\"` (TR 38.901 \
         table 7.5-6: 9 in UMa and UMi, 7 indoors).",
    )
    .needs(PROCESS),
    Key::new("step_ms", MS_ABOVE_0, Default::Value("1"), "The channel is constant for this long.")
        .needs(PROCESS),
    Key::new(
        "sinr_ceiling_db",
        or("none", &CEILING),
        Default::Value("\"none\""),
        "Upper bound by what the transmitter distorts.",
    )
    .needs(PROCESS),
];
