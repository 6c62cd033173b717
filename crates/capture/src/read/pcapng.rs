//! The pcapng format (draft-ietf-opsawg-pcapng): sections, their interfaces, and blocks.

use super::interface::{Clock, Interface};
use super::order::ByteOrder;

pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// Byte-order magic of a section header block.
pub(crate) const MAGIC: u32 = 0x1a2b_3c4d;

/// Bytes of a section header block up to the version field.
pub(super) const SECTION_BYTES: usize = 16;

/// Option codes (4.2, 4.3 and 4.6).
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// The byte order of a section; `None` if this is not a section header.
pub(super) fn byte_order(bytes: &[u8; SECTION_BYTES]) -> Option<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.word(&bytes[8..]) == MAGIC)
}

/// Parses the body of an interface description block (4.2).
pub(super) fn interface(order: ByteOrder, body: &[u8]) -> Option<Interface> {
    let mut clock = Clock::default();
    let mut interface = Interface { link_type: order.half(body.get(..2)?), ..Interface::default() };
    for (code, value) in options(order, body.get(8..)?) {
        match code {
            IF_NAME => {
                let name = String::from_utf8_lossy(&value[..value.len().min(80)]);
                interface.name = Some(name.trim_end_matches('\0').to_owned());
            }
            IF_TSRESOL if !value.is_empty() => clock.set_resolution(value[0]),
            IF_TSOFFSET if value.len() == 8 => {
                clock.offset = i128::from(order.long(value).cast_signed()) * 1_000_000_000;
            }
            _ => {}
        }
    }
    interface.clock = clock;
    Some(interface)
}

/// Parses the body of an interface statistics block (4.6): the interface, and how many packets it
/// dropped.
pub(super) fn statistics(order: ByteOrder, body: &[u8]) -> Option<(u32, u64)> {
    let interface = order.word(body.get(..4)?);
    let dropped = options(order, body.get(12..)?)
        .filter(|(code, value)| matches!(*code, ISB_IFDROP | ISB_OSDROP) && value.len() == 8)
        .fold(0_u64, |dropped, (_, value)| dropped.saturating_add(order.long(value)));
    Some((interface, dropped))
}

/// Packets that were dropped before this one, from the options of its block (4.3).
pub(super) fn dropped_before(order: ByteOrder, bytes: &[u8]) -> u64 {
    options(order, bytes)
        .find(|(code, value)| *code == EPB_DROPCOUNT && value.len() == 8)
        .map_or(0, |(_, value)| order.long(value))
}

/// Iterates over options until their end. An option that is longer than the block ends them too
/// (3.5).
fn options(order: ByteOrder, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, length) = (order.half(rest.get(..2)?), order.half(rest.get(2..4)?));
        let value = rest.get(4..4 + usize::from(length))?;
        rest = rest.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    })
}
