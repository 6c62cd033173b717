//! `[radio.channel]` and `[radio.channel_up]`.

use super::super::{
    Chosen, Default, Group, Key, Kind, MS_ABOVE_0, Need, Table, Unit, count, or, real,
};

/// The channel of one direction.
pub(crate) static CHANNEL: Table = Table {
    header: "[radio.channel] and [radio.channel_up]",
    path: "radio.channel or radio.channel_up or radio.ue.N.channel",
    doc: "The quality of the radio. A table that has `sinr_db`, `file` or `distance_m` does not \
          need `model`.",
    selector: None,
    groups: &[Group::always(KEYS)],
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
        ChannelModel::KEY,
        Kind::Choice(ChannelModel::CHOICES),
        Default::Value("\"constant\""),
        "Where the channel's quality comes from.",
    ),
    Key::new(
        "sinr_db",
        real("dB", -30.0, 100.0),
        Default::Value("30"),
        "Signal to interference and noise ratio of each layer.",
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
        SignalColumn::KEY,
        Kind::Choice(SignalColumn::CHOICES),
        Default::Value("\"snr\""),
        "Which column of a G-NetTrack Pro log is used.",
    )
    .needs(TRACE),
    Key::new(
        MissingValue::KEY,
        Kind::Choice(MissingValue::CHOICES),
        Default::Value("\"hold\""),
        "What a row without a value means.",
    )
    .needs(TRACE),
    Key::new(
        TraceEnd::KEY,
        Kind::Choice(TraceEnd::CHOICES),
        Default::Value("\"loop\""),
        "What follows the end of the recording.",
    )
    .needs(TRACE),
    Key::new(
        PathLossModel::KEY,
        Kind::Choice(PathLossModel::CHOICES),
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
        "Where the UE starts on its straight road, measured from the point that is nearest to the \
         base station. A negative value is before that point.",
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
        "Speed of the UE. It moves towards larger distances until it turns.",
    )
    .needs(PROCESS),
    Key::new(
        "turn_m",
        or("never", &PLACE),
        Default::Value("\"never\""),
        "Point of the road at which the UE turns. It then moves back to where it started, and \
         turns again. If this is less than `distance_m`, the UE moves towards the base station \
         first.",
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
        "Transmit power in the whole bandwidth of the carrier. A UE has 23 (TS 38.101-1 6.2.1).",
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
        "Ratio of interference and noise to noise alone.",
    )
    .needs(PROCESS),
    Key::new(
        "shadowing_db",
        real("dB", 0.0, 50.0),
        Default::Value("0"),
        "Standard deviation of the shadowing (TR 38.901 table 7.4.1-1). 0 means no shadowing.",
    )
    .needs(PROCESS),
    Key::new(
        "shadowing_correlation_m",
        real("metres", 0.1, 10_000.0),
        Default::Value("50"),
        "Distance over which the autocorrelation of the shadowing falls to 1/e (TR 38.901 table \
         7.5-6).",
    )
    .needs(PROCESS),
    Key::new(
        Fading::KEY,
        Kind::Choice(Fading::CHOICES),
        Default::Value("\"none\""),
        "Fading by multipath.",
    )
    .needs(PROCESS),
    Key::new(
        "fading_kmh",
        KMH,
        Default::Derived("`speed_kmh`"),
        "Speed that causes the fading: the UE's, or that of objects around it.",
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
    Key::new("step_ms", MS_ABOVE_0, Default::Value("1"), "Time for which the channel is constant.")
        .needs(PROCESS),
    Key::new(
        "sinr_ceiling_db",
        or("none", &CEILING),
        Default::Value("\"none\""),
        "Upper bound of the SINR, from distortion in the transmitter.",
    )
    .needs(PROCESS),
];

choices! {
    /// Values of `model`.
    ChannelModel("model") {
        Constant = "constant": "The SINR is the same at all times.",
        Trace = "trace": "The quality follows a recording.",
        Process = "process": "Path loss, shadowing and fading of a UE that may move.",
    }

    /// Values of `log_column`.
    SignalColumn("log_column") {
        Snr = "snr": "`SNR`. In a non-standalone 5G connection it is the LTE anchor's.",
        Cqi = "cqi": "`CQI`.",
    }

    /// Values of `missing`.
    MissingValue("missing") {
        Hold = "hold": "The value before it holds.",
        Outage = "outage": "There is no channel: nothing that is sent arrives.",
    }

    /// Values of `at_end`.
    TraceEnd("at_end") {
        Loop = "loop": "The recording starts again.",
        Hold = "hold": "The last value stays.",
    }

    /// Values of `path_loss`.
    PathLossModel("path_loss") {
        UmaLos = "uma_los": "Urban macro, line of sight.",
        UmaNlos = "uma_nlos": "Urban macro, no line of sight.",
        UmiLos = "umi_los": "Urban micro, line of sight.",
        UmiNlos = "umi_nlos": "Urban micro, no line of sight.",
        InhLos = "inh_los": "Indoor office, line of sight.",
        InhNlos = "inh_nlos": "Indoor office, no line of sight.",
        Exponent = "exponent": "`path_loss_at_1_m_db` + 10 `path_loss_exponent` log10(d / 1 m).",
    }

    /// Values of `fading`.
    Fading("fading") {
        None = "none": "None.",
        Rayleigh = "rayleigh": "No direct path.",
        Rician = "rician": "A direct path, `rician_k_db` stronger than the others.",
    }
}
