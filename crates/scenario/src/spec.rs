//! Every key of a scenario file, as data. Validation, the JSON schema and the reference are all
//! derived from these tables; nothing else in the crate knows what a key may hold.

/// Defines the enumerations of what keys can hold. The file's spelling, the messages, the reference
/// and the model use the same list: a new value does not compile until something is built from it.
macro_rules! choices {
    ($(
        $(#[$meta:meta])*
        $name:ident($key:literal) { $($variant:ident = $value:literal: $doc:literal,)+ }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $name {
            $(#[doc = $doc] $variant,)+
        }

        impl $crate::spec::Chosen for $name {
            const KEY: &'static str = $key;
            const CHOICES: &'static [$crate::spec::Choice] =
                &[$($crate::spec::Choice { value: $value, doc: $doc }),+];
            const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    )+};
}

mod core_network;
mod flow;
mod program;
mod quic;
mod radio;
mod root;
mod stage;
mod subscription;
mod tcp;
#[cfg(test)]
mod tests;

pub(crate) use core_network::{
    OffloadFaultKind, OuterHeader, PolicerExcess, ServerSite, StallDistribution, StallTimes,
    TooBigPacket, TunnelSide,
};
pub(crate) use flow::{FLOW, FlowDirection, FlowKind, Opener, PROFILE};
pub(crate) use program::{PROGRAM, WaitFor};
pub(crate) use quic::QuicCongestion;
pub(crate) use radio::{
    AccessKind, BlerCurve, BsrPiggyback, BsrRegular, BufferAqm, ChannelModel, DataForwarding,
    Duplex, Fading, Frequencies, GrantRequests, HarqCombining, InitialRrc, InitialUmts,
    LteMcsTable, MissingValue, NrMcsTable, PathLossModel, PrimaryPath, RlcMode, Scheduler,
    SignalColumn, TraceEnd, UmtsDown, UmtsSetup, UmtsUp,
};
pub(crate) use radio::{
    CARRIER, CELL, HANDOVER, MOBILITY, NEIGHBOUR, OUTAGE, PARTS, Part, RADIO, SPLIT, UE,
};
pub(crate) use root::{EMULATION, Io, Observer, PATH, ROOT, RUN, SlowStartSource};
pub(crate) use stage::{JitterDistribution, LinkAqm, STAGE, StageKind};
pub(crate) use subscription::CORE;
pub(crate) use tcp::{
    AfterIdle, Arithmetic, Congestion, CwndReduction, Detection, Ecn, Estimator, FromFirstHop,
    KeptMetrics, RenoGrowsBy, RenoHalves, SUBTABLES, SlowStart, TuningRule,
};

/// One TOML table.
pub(crate) struct Table {
    /// The header as written in a file: `[[flow]]`.
    pub(crate) header: &'static str,
    /// Dotted path for `--set`; `N` is an index counted from 0.
    pub(crate) path: &'static str,
    /// What the table is for, in one or two sentences.
    pub(crate) doc: &'static str,
    /// The key that decides which of the others apply, e.g. `kind`. For the radio's tables it is in
    /// `[radio.cell]`.
    pub(crate) selector: Option<&'static str>,
    /// The table's keys, in canonical order.
    pub(crate) groups: &'static [Group],
}

/// Keys that apply together.
pub(crate) struct Group {
    /// Values of the selector for which the group applies; empty: always.
    pub(crate) variants: &'static [&'static str],
    /// How many of the keys must be given.
    pub(crate) rule: Rule,
    /// The keys.
    pub(crate) keys: &'static [Key],
}

/// How many keys of a group must be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Each key has its own default.
    Each,
    /// Exactly one.
    ExactlyOne,
}

/// A table within a table: `recovery` holds `recovery.frto`.
pub(crate) struct Subtable {
    /// The part of its keys' names before the dot.
    pub(crate) name: &'static str,
    /// What the table is for, in one sentence.
    pub(crate) doc: &'static str,
}

/// One key.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Name, unit included. A key of a [`Subtable`] begins with the subtable's name and a dot.
    pub(crate) name: &'static str,
    /// Type of the value.
    pub(crate) kind: Kind,
    /// What applies if the key is not given.
    pub(crate) default: Default,
    /// The condition under which the key may be given.
    pub(crate) needs: Option<Need>,
    /// Keys that set the same thing in another way.
    pub(crate) excludes: &'static [&'static str],
    /// The RRC parameter whose enumeration lists the allowed values.
    pub(crate) enumeration: Option<&'static str>,
    /// Whether the value may appear in results.
    pub(crate) privacy: Privacy,
    /// True if no socket option or sysctl is equivalent: in an emulation the kernel does what its
    /// version does.
    pub(crate) simulated_only: bool,
    /// What the key sets, in one sentence.
    pub(crate) doc: &'static str,
}

/// How a value appears in what a run writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Privacy {
    /// The value itself.
    Open,
    /// The hash of the value ([`crate::secret`]).
    Secret,
    /// Left out, because it says where secrets are.
    Location,
}

/// What a key holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A line of text.
    Text,
    /// A name that is used in tables and file names.
    Name,
    /// One of the listed values.
    Choice(&'static [Choice]),
    /// True or false.
    Flag,
    /// A whole number.
    Count {
        /// What is counted.
        unit: Unit,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A length of time.
    Time {
        /// The unit that the key's name ends in.
        unit: TimeUnit,
        /// Smallest value in ns.
        min_ns: u64,
        /// Largest value in ns.
        max_ns: u64,
    },
    /// Megabits per second, at least one bit per second.
    Rate,
    /// A probability.
    Fraction,
    /// A number that may have a fraction.
    Real {
        /// For "a number of …"; empty for a plain number.
        unit: &'static str,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// This word, or a value.
    OrWord {
        /// The word, e.g. `infinity`.
        word: &'static str,
        /// The kind of the value.
        kind: &'static Kind,
    },
    /// A file, relative to the scenario's directory, or `builtin:NAME`.
    File,
    /// The name of a profile.
    Profile,
    /// The name of a radio preset.
    Preset,
    /// A table of its own.
    Table,
    /// A list of tables.
    List,
}

/// A value of a [`Kind::Choice`].
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    /// The value as written in a file.
    pub(crate) value: &'static str,
    /// What the value means.
    pub(crate) doc: &'static str,
}

/// The values of a key, as an enumeration.
pub(crate) trait Chosen: Copy + PartialEq + 'static {
    /// The key's name; if several keys have these values, the first one's.
    const KEY: &'static str;
    /// How the values are written, and what they mean.
    const CHOICES: &'static [Choice];
    /// The values, in the same order.
    const ALL: &'static [Self];

    /// The value that is written as `text`.
    fn of(text: &str) -> Option<Self> {
        let at = Self::CHOICES.iter().position(|choice| choice.value == text)?;
        Self::ALL.get(at).copied()
    }

    /// How the value is written.
    fn text(self) -> &'static str {
        let written = Self::ALL.iter().zip(Self::CHOICES).find(|(known, _)| **known == self);
        written.map_or("", |(_, choice)| choice.value)
    }
}

/// What a [`Kind::Count`] counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// TCP segments.
    Segments,
    /// Packets.
    Packets,
    /// Slots.
    Slots,
    /// OFDM symbols.
    Symbols,
    /// LTE subframes.
    Subframes,
    /// RLC PDUs.
    Pdus,
    /// No unit.
    Plain,
}

/// Unit of a [`Kind::Time`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// What applies if a key is not given.
#[derive(Clone, Copy)]
pub(crate) enum Default {
    /// The key is required.
    Required,
    /// There is no value; the text says what that means.
    Absent(&'static str),
    /// This value, written in TOML.
    Value(&'static str),
    /// A value that depends on other keys; the text says how.
    Derived(&'static str),
    /// The value of the profile that the table refers to.
    Inherited,
    /// The value of the radio's preset, which always has one.
    Preset,
}

/// A condition on another key of the same table.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// The key has this value.
    Is(&'static str, &'static str),
    /// The key's value begins with this text.
    Begins(&'static str, &'static str),
    /// The key is in the file.
    Given(&'static str),
    /// The key has a value other than this.
    Not(&'static str, &'static str),
    /// The flag is true. While it is false the dependent key may be given, without effect.
    On(&'static str),
}

impl Key {
    /// A key without conditions.
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        default: Default,
        doc: &'static str,
    ) -> Self {
        let privacy = Privacy::Open;
        Self {
            name,
            kind,
            default,
            needs: None,
            excludes: &[],
            enumeration: None,
            privacy,
            simulated_only: false,
            doc,
        }
    }

    /// The same, under a condition.
    pub(crate) const fn needs(self, need: Need) -> Self {
        Self { needs: Some(need), ..self }
    }

    /// Restricts the values to those of an RRC parameter (TS 36.331 and 38.331, 6.3.2).
    pub(crate) const fn values_of(self, enumeration: &'static str) -> Self {
        Self { enumeration: Some(enumeration), ..self }
    }

    /// Marks the key as secret, or as the location of secrets.
    pub(crate) const fn private(self, privacy: Privacy) -> Self {
        Self { privacy, ..self }
    }

    /// Marks the key as one that only a simulated endpoint can follow.
    pub(crate) const fn simulated_only(self) -> Self {
        Self { simulated_only: true, ..self }
    }

    /// Adds the keys that cannot be given together with this one.
    pub(crate) const fn excludes(self, others: &'static [&'static str]) -> Self {
        Self { excludes: others, ..self }
    }
}

impl Table {
    /// Keys that apply to `variant`, in canonical order; all keys if there is no variant.
    pub(crate) fn keys(&self, variant: Option<&str>) -> impl Iterator<Item = &'static Key> {
        self.groups_of(variant).flat_map(|group| group.keys)
    }

    /// Groups that apply to `variant`; all groups if there is no variant.
    pub(crate) fn groups_of(&self, variant: Option<&str>) -> impl Iterator<Item = &'static Group> {
        self.groups.iter().filter(move |group| {
            variant.is_none_or(|variant| {
                group.variants.is_empty() || group.variants.contains(&variant)
            })
        })
    }

    /// The key of that name.
    pub(crate) fn find(&self, name: &str, variant: Option<&str>) -> Option<&'static Key> {
        self.keys(variant).find(|key| key.name == name)
    }

    /// True for the name of a table within this one.
    pub(crate) fn has_subtable(&self, name: &str) -> bool {
        self.keys(None).any(|key| key.subtable() == Some(name))
    }

    /// Variants to which a key of that name applies.
    pub(crate) fn variants_of(&self, name: &str) -> Vec<&'static str> {
        self.groups
            .iter()
            .filter(|group| group.keys.iter().any(|key| key.name == name))
            .flat_map(|group| group.variants.iter().copied())
            .collect()
    }

    /// The selector's values; empty without a selector.
    pub(crate) fn variants(&self) -> &'static [Choice] {
        match self.selector.and_then(|name| self.find(name, None)).map(|key| key.kind) {
            Some(Kind::Choice(choices)) => choices,
            _ => &[],
        }
    }
}

impl Key {
    /// The name of the subtable that holds the key.
    pub(crate) fn subtable(&self) -> Option<&'static str> {
        self.name.split_once('.').map(|(table, _)| table)
    }
}

impl Kind {
    /// The kind of the value where it is not a word.
    pub(crate) const fn plain(self) -> Self {
        match self {
            Self::OrWord { kind, .. } => *kind,
            other => other,
        }
    }
}

impl TimeUnit {
    /// Powers of ten from this unit down to nanoseconds.
    pub(crate) const fn power(self) -> u32 {
        match self {
            Self::Ms => 6,
            Self::S => 9,
        }
    }
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// 10^7 s, 115 days: far from overflow, longer than any sensible experiment.
const LONGEST_NS: u64 = 10_000_000 * S;
/// 10^6 Mb/s.
pub(crate) const FASTEST_BPS: u64 = 1_000_000_000_000;

/// Milliseconds, 0 allowed.
const MS_FROM_0: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: LONGEST_NS };
/// Milliseconds, more than 0.
const MS_ABOVE_0: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: 1, max_ns: LONGEST_NS };
/// Seconds, 0 allowed.
const S_FROM_0: Kind = Kind::Time { unit: TimeUnit::S, min_ns: 0, max_ns: LONGEST_NS };
/// Seconds, more than 0.
const S_ABOVE_0: Kind = Kind::Time { unit: TimeUnit::S, min_ns: 1, max_ns: LONGEST_NS };

/// The `enabled` key of every stage, flow, program and outage.
const ENABLED: Key = Key::new(
    "enabled",
    Kind::Flag,
    Default::Value("true"),
    "False removes this table from the scenario, as if it were not in the file. Other tables keep \
     their numbers in `--set` and in names.",
);

const fn or(word: &'static str, kind: &'static Kind) -> Kind {
    Kind::OrWord { word, kind }
}

const fn real(unit: &'static str, min: f64, max: f64) -> Kind {
    Kind::Real { unit, min, max }
}

const fn count(unit: Unit, min: u64, max: u64) -> Kind {
    Kind::Count { unit, min, max }
}
