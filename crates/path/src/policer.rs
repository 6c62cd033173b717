//! A policer: packets for which a token bucket holds too few tokens are dropped or marked at once.

use airpath_base::{DropReason, Ecn, Instant, Packet};
use airpath_queue::TokenBucket;

use crate::filter::Filter;
use crate::{Excess, PolicerConfig};

/// Passes what conforms to its rate and burst, without delay.
///
/// A policer can enforce an aggregate maximum bit rate (TS 23.501 5.7.2.6). A link with a bucket
/// can, too, but it queues the excess.
#[derive(Debug)]
pub(crate) struct Policer {
    bucket: TokenBucket,
    excess: Excess,
}

impl Policer {
    pub(crate) fn new(config: &PolicerConfig) -> Self {
        let bucket = TokenBucket::new(config.rate, config.burst);
        Self { bucket, excess: config.excess }
    }
}

impl Filter for Policer {
    fn apply(&mut self, at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        if self.bucket.take(at, packet.wire_size()) {
            return Ok(());
        }
        match (self.excess, packet.ecn) {
            // RFC 3168 5: mark instead of dropping, if the endpoints support ECN.
            (Excess::Mark, Ecn::Ect0 | Ecn::Ect1 | Ecn::Ce) => packet.ecn = Ecn::Ce,
            (Excess::Mark, Ecn::NotEct) | (Excess::Drop, _) => return Err(DropReason::Policed),
        }
        Ok(())
    }
}
