//! A self-signed certificate for one connection (RFC 5280), in DER.

/// Identifier of Ed25519 (RFC 8410 3).
const ED25519: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x70];
/// `commonName`.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
/// `subjectAltName`.
const ALTERNATIVE_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];
/// `nsComment`: text that nothing interprets.
const COMMENT: [u8; 11] = [0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x0d];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const IA5_STRING: u8 = 0x16;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const DNS_NAME: u8 = 0x82;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// A private key of Ed25519 in PKCS #8 (RFC 8410 7).
pub(super) fn private_key(seed: &[u8; 32]) -> Vec<u8> {
    let seed = element(OCTET_STRING, &[&element(OCTET_STRING, &[seed])]);
    element(SEQUENCE, &[&element(INTEGER, &[&[0]]), &element(SEQUENCE, &[&ED25519]), &seed])
}

/// The certificate of `public` for `name`, of `size` bytes, or of a few less where no length of the
/// comment that fills it gives that size; if it is smaller than possible, the smallest.
pub(super) fn certificate(
    name: &str,
    public: &[u8],
    size: usize,
    sign: &dyn Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let smallest = signed(name, public, None, sign);
    // The comment's own headers, and longer lengths of what contains it.
    const OVERHEAD: usize = 32;
    let longest = size.saturating_sub(smallest.len());
    let shortest = longest.saturating_sub(OVERHEAD);
    let filled = (shortest..=longest).rev().map(|length| signed(name, public, Some(length), sign));
    filled.into_iter().find(|certificate| certificate.len() <= size).unwrap_or(smallest)
}

fn signed(
    name: &str,
    public: &[u8],
    comment: Option<usize>,
    sign: &dyn Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let algorithm = element(SEQUENCE, &[&ED25519]);
    let attribute = element(SEQUENCE, &[&COMMON_NAME, &element(UTF8_STRING, &[name.as_bytes()])]);
    let distinguished = element(SEQUENCE, &[&element(SET, &[&attribute])]);
    let validity = element(
        SEQUENCE,
        &[&element(UTC_TIME, &[b"700101000000Z"]), &element(UTC_TIME, &[b"491231235959Z"])],
    );
    let key = element(SEQUENCE, &[&algorithm, &element(BIT_STRING, &[&[0], public])]);
    let names = element(SEQUENCE, &[&element(DNS_NAME, &[name.as_bytes()])]);
    let alternative = element(SEQUENCE, &[&ALTERNATIVE_NAME, &element(OCTET_STRING, &[&names])]);
    let comment = comment.map_or_else(Vec::new, |length| {
        let text = element(IA5_STRING, &[&vec![b'-'; length]]);
        element(SEQUENCE, &[&COMMENT, &element(OCTET_STRING, &[&text])])
    });
    let extensions = element(EXTENSIONS, &[&element(SEQUENCE, &[&alternative, &comment])]);
    let body = element(
        SEQUENCE,
        &[
            &element(VERSION, &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&[1]]),
            &algorithm,
            &distinguished,
            &validity,
            &distinguished,
            &key,
            &extensions,
        ],
    );
    let signature = element(BIT_STRING, &[&[0], &sign(&body)]);
    element(SEQUENCE, &[&body, &algorithm, &signature])
}

/// One element: tag, length, contents (X.690 8.1).
fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let length: usize = contents.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    match length {
        0..0x80 => bytes.push(length as u8),
        0x80..0x100 => bytes.extend([0x81, length as u8]),
        _ => {
            bytes.push(0x82);
            bytes.extend((length as u16).to_be_bytes());
        }
    }
    for part in contents {
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_size_that_was_asked_for() {
        let sign = |_: &[u8]| vec![0; 64];
        let of = |size| certificate("airpath", &[7; 32], size, &sign);
        let smallest = of(0).len();
        assert!((200..300).contains(&smallest), "{smallest} bytes");
        for size in [400, 1000, 2329, 4022, 60_000] {
            let certificate = of(size);
            assert!(
                (size - 2..=size).contains(&certificate.len()),
                "{} of {size}",
                certificate.len()
            );
        }
    }

    #[test]
    fn lengths_have_the_shortest_form() {
        assert_eq!(element(INTEGER, &[&[5]]), [0x02, 1, 5]);
        assert_eq!(element(OCTET_STRING, &[&[0; 200]])[..3], [0x04, 0x81, 200]);
        assert_eq!(element(OCTET_STRING, &[&[0; 300]])[..4], [0x04, 0x82, 1, 44]);
    }
}
