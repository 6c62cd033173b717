//! Fills blocks with many SDUs at once.

use airpath_base::fast_paths;

use super::{AmTransmitter, Format};
use crate::buffer::Sdus;
use crate::pdcp::PdcpTransmitter;
use crate::rlc::block::TransportBlock;
use crate::rlc::sent_unit::SentUnit;

impl AmTransmitter {
    /// NR: does what [`fill`](Self::fill) does as long as there are only whole SDUs without a poll,
    /// which is the usual case.
    #[inline]
    pub(super) fn fill_whole(
        &mut self,
        mut room: u32,
        block: &mut TransportBlock,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> u32 {
        let Format::Nr(framing) = self.format else { return room };
        let waits = !self.pending.is_empty() || self.cutter.is_open() || self.poll.is_forced();
        if waits || !fast_paths() {
            return room;
        }
        let header = framing.header(0, true);
        let Self { units, poll, next_ack, window, subheaders, .. } = self;
        // The last PDU of the window polls, and so does the last of the buffer, which is not taken
        // here.
        source.next_run(sdus, |sdu, sdu_size| {
            let (known, bytes) = (units.len() as u64, sdu_size + header);
            let takes = known + 1 < *window
                && bytes <= subheaders.largest_pdu(room)
                && poll.counts_before_limit(sdu_size);
            if takes {
                let (sdu_offset, len, sent) = (0, sdu_size, sdu_size);
                let (retx_count, acknowledged) = (None, false);
                let unit =
                    SentUnit { sdu, sdu_size, sdu_offset, len, sent, retx_count, acknowledged };
                block.pdus.push(unit.pdu(*next_ack + known, 0, len));
                units.push_back(unit);
                room -= bytes + subheaders.bytes(bytes);
            }
            takes
        });
        room
    }
}
