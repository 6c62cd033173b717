//! TLS of both ends: rustls and ring, with random numbers from the connection's stream.

use std::sync::Arc;

use airpath_base::Stream;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup, WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, NamedGroup, PeerMisbehaved,
    ServerConfig, SignatureScheme,
};
use x25519_dalek::{PublicKey, StaticSecret};

use super::certificate::{certificate, private_key};
use super::random;

/// The server's name in the certificate and in the client's hello.
pub(super) const SERVER_NAME: &str = "airpath";

/// The server's key and certificate. Both ends of a connection draw the same ones from a stream of
/// the same name.
pub(super) struct Identity {
    key: PrivatePkcs8KeyDer<'static>,
    certificate: CertificateDer<'static>,
}

impl Identity {
    /// Draws a key and signs a certificate of that size with it.
    pub(super) fn draw(stream: &mut Stream, size: usize) -> Self {
        let seed = random::draw(stream);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed has 32 bytes");
        let sign = |message: &[u8]| pair.sign(message).as_ref().to_vec();
        let public = pair.public_key().as_ref();
        let certificate = certificate(SERVER_NAME, public, size, &sign);
        Self { key: private_key(&seed).into(), certificate: certificate.into() }
    }

    /// TLS of a client that accepts this server only.
    pub(super) fn client(self) -> QuicClientConfig {
        let provider = seeded();
        let verifier = Pinned {
            certificate: self.certificate,
            algorithms: provider.signature_verification_algorithms,
        };
        let config = ClientConfig::builder_with_details(provider, Arc::new(FixedTime))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        QuicClientConfig::try_from(config).expect("ring has the initial cipher suite")
    }

    /// TLS of the server.
    pub(super) fn server(self) -> QuicServerConfig {
        let config = ServerConfig::builder_with_details(seeded(), Arc::new(FixedTime))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key.into())
            .expect("the key belongs to the certificate");
        QuicServerConfig::try_from(config).expect("ring has the initial cipher suite")
    }
}

/// ring's cipher suites and signatures, with random numbers and a key exchange of the stream.
fn seeded() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![&SeededX25519],
        secure_random: &Seeded,
        ..provider::default_provider()
    })
}

#[derive(Debug)]
struct Seeded;

impl SecureRandom for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        random::fill(bytes).then_some(()).ok_or(GetRandomFailed)
    }
}

/// X25519 (RFC 7748). ring's own draws its keys from the operating system.
#[derive(Debug)]
struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut bytes = [0; 32];
        Seeded.fill(&mut bytes)?;
        let secret = StaticSecret::from(bytes);
        let public = PublicKey::from(&secret);
        Ok(Box::new(KeyExchange { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct KeyExchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for KeyExchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: [u8; 32] = peer.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer));
        if !shared.was_contributory() {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared.as_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// A run has no calendar: certificates and tickets are valid all the time.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(1)))
    }
}

/// Accepts one certificate, and checks that the server has its key.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity != self.certificate {
            return Err(CertificateError::UnknownIssuer.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
