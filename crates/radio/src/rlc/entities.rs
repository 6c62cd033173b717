//! Creates the RLC entities for a configuration.

use airpath_base::Instant;

use super::am_receiver::{AmReceiver, Order};
use super::am_transmitter::{AmTransmitter, Format};
use super::assembler::Assembler;
use super::config::{LteMode, LteUmSn, NrAmSn, NrMode, NrUmSn, RlcConfig, UmtsAm};
use super::framing::{NrFraming, StatusFraming, Subheaders, UmtsFraming};
use super::um_receiver::{LteUmReceiver, NrUmReceiver};
use super::um_transmitter::{UmFormat, UmTransmitter};

/// A transmitting side.
#[derive(Debug)]
pub(crate) enum Transmitter {
    Um(UmTransmitter),
    Am(AmTransmitter),
}

/// A receiving side.
#[derive(Debug)]
pub(crate) enum Receiver {
    NrUm(NrUmReceiver),
    LteUm(LteUmReceiver),
    Am(AmReceiver),
}

/// The technology of the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Technology {
    Nr,
    Lte,
    Umts(UmtsFraming),
}

impl Transmitter {
    pub(crate) fn set_subheaders(&mut self, subheaders: Subheaders) {
        match self {
            Self::Um(transmitter) => transmitter.subheaders = subheaders,
            Self::Am(transmitter) => transmitter.subheaders = subheaders,
        }
    }
}

impl Receiver {
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::NrUm(receiver) => receiver.next_timer(),
            Self::LteUm(receiver) => receiver.next_timer(),
            Self::Am(receiver) => receiver.next_timer(),
        }
    }
}

/// The two ends of an RLC bearer.
pub(crate) fn entities(rlc: &RlcConfig) -> (Transmitter, Receiver, Technology) {
    match *rlc {
        RlcConfig::Nr { mode: NrMode::Um { sn, t_reassembly }, .. } => {
            let framing = NrFraming::Um(sn);
            // UM_Window_Size (TS 38.322 7.2)
            let window = match sn {
                NrUmSn::Bits6 => 32,
                NrUmSn::Bits12 => 2_048,
            };
            (
                Transmitter::Um(UmTransmitter::new(UmFormat::Nr(framing))),
                Receiver::NrUm(NrUmReceiver::new(window, t_reassembly)),
                Technology::Nr,
            )
        }
        RlcConfig::Nr { mode: NrMode::Am { sn, t_reassembly, arq }, .. } => {
            // AM_Window_Size (TS 38.322 7.2)
            let (window, status) = match sn {
                NrAmSn::Bits12 => (2_048, StatusFraming::NR_12),
                NrAmSn::Bits18 => (131_072, StatusFraming::NR_18),
            };
            let format = Format::Nr(NrFraming::Am(sn));
            let prohibit = arq.t_status_prohibit;
            let receiver = AmReceiver::new(Order::Above, status, window, t_reassembly, prohibit);
            (
                Transmitter::Am(AmTransmitter::new(format, window, &arq)),
                Receiver::Am(receiver),
                Technology::Nr,
            )
        }
        RlcConfig::Lte(LteMode::Um { sn, t_reordering }) => {
            // UM_Window_Size (TS 36.322 7.2)
            let window = match sn {
                LteUmSn::Bits5 => 16,
                LteUmSn::Bits10 => 512,
            };
            (
                Transmitter::Um(UmTransmitter::new(UmFormat::Lte(sn))),
                Receiver::LteUm(LteUmReceiver::new(window, t_reordering)),
                Technology::Lte,
            )
        }
        RlcConfig::Lte(LteMode::Am { t_reordering, arq }) => {
            // AM_Window_Size (TS 36.322 7.2)
            let window = 512;
            let order = Order::Here(Assembler::default());
            let (status, prohibit) = (StatusFraming::LTE, arq.t_status_prohibit);
            let receiver = AmReceiver::new(order, status, window, t_reordering, prohibit);
            (
                Transmitter::Am(AmTransmitter::new(Format::Lte, window, &arq)),
                Receiver::Am(receiver),
                Technology::Lte,
            )
        }
        RlcConfig::Umts(UmtsAm { pdu, mac_header_bytes, window, t_reordering, arq }) => {
            let framing = UmtsFraming { pdu, mac_header: mac_header_bytes };
            let order = Order::Here(Assembler::default());
            let (status, prohibit) = (StatusFraming::UMTS, arq.t_status_prohibit);
            let window = u64::from(window.max(1));
            let receiver = AmReceiver::new(order, status, window, t_reordering, prohibit);
            (
                Transmitter::Am(AmTransmitter::new(Format::Umts(framing), window, &arq)),
                Receiver::Am(receiver),
                Technology::Umts(framing),
            )
        }
    }
}
