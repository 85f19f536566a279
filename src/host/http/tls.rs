//! TLS connections: trusted certificates and the TLS wrapper.
//!
//! The client's own wrapper accepts only a list of authorities. This one also trusts a server that presents a trusted
//! certificate itself, of the system or from `ca_file`, even if the certificate could sign others.

use std::{
    io::{self, Read, Write},
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, ClientConnection, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
    client::{
        WantsClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use super::{HttpError, agent::ConnectionOptions, distrust::Distrust, probe::Trust};
use crate::host::input;

/// Maximum size of a file with certificates.
const LARGEST: u64 = 64 << 20;

/// Authorities that the system trusts, read for the first HTTPS connection.
#[derive(Default)]
pub(super) struct Authorities(OnceLock<Vec<CertificateDer<'static>>>);

impl Authorities {
    fn of_the_system(&self) -> &[CertificateDer<'static>] {
        // Unreadable certificates are not trusted, and the connection reports that.
        self.0.get_or_init(|| rustls_native_certs::load_native_certs().certs)
    }

    /// Returns the configuration that trusts these authorities and those in a file.
    pub(super) fn trusting(&self, options: &ConnectionOptions) -> Result<Arc<ClientConfig>, HttpError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| HttpError::from_tls(&error, options.url))?;
        if options.trust == Trust::Anybody {
            let builder =
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody { provider }));
            return finish(builder, options.identity);
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.of_the_system().iter().cloned());
        let mut given = self.of_the_system().to_vec();
        if let Some(path) = options.ca_file {
            let own = certificates(path)?;
            roots.add_parsable_certificates(own.iter().cloned());
            given.extend(own);
        }
        if roots.is_empty() && options.ca_file.is_none() {
            return finish(builder.with_root_certificates(roots), options.identity);
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let file = options.ca_file.unwrap_or(Path::new("/etc/ssl/certs"));
        let usual = usual.map_err(|error| unusable(file, error.to_string()))?;
        let verifier = Arc::new(Verifier { usual, given });
        finish(builder.dangerous().with_custom_certificate_verifier(verifier), options.identity)
    }
}

/// Client certificate and its key.
#[derive(Clone, Copy)]
pub(super) struct ClientIdentity<'a> {
    pub(super) certificate: &'a Path,
    pub(super) key: &'a Path,
}

fn finish(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<ClientIdentity>,
) -> Result<Arc<ClientConfig>, HttpError> {
    let Some(ClientIdentity { certificate, key }) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = certificates(certificate)?;
    let text = input::read_file(key, LARGEST).map_err(|error| unusable(key, error.to_string()))?;
    let secret = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| unusable(key, "it holds no private key in PEM form".to_owned()))?;
    let config = builder.with_client_auth_cert(chain, secret);
    config.map(Arc::new).map_err(|error| unusable(certificate, error.to_string()))
}

/// Accepts every certificate, because the user requested it, but still verifies signatures.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer,
        _: &[CertificateDer],
        _: &ServerName,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Reads the certificates in a file.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let text = input::read_file(path, LARGEST).map_err(|error| unusable(path, error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(unusable(path, "it holds no certificate in PEM form".to_owned()))
        }
        Ok(found) => Ok(found),
        Err(_) => Err(unusable(path, "it is not in PEM form".to_owned())),
    }
}

fn unusable(path: &Path, reason: String) -> HttpError {
    HttpError::CaFile { path: path.to_owned(), reason }
}

/// Trusts certificates of the authorities, and the given certificates themselves.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    /// All trusted certificates.
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        name: &ServerName,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.usual.verify_server_cert(shown, intermediates, name, ocsp, now);
        match verified {
            // The dates were already verified at this point, but not the name.
            Err(error) if Distrust::of(&error) == Distrust::Authority && self.given.contains(shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified.map_err(|error| Distrust::explain(error, shown)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Wraps connections to HTTPS servers.
#[derive(Clone, Debug)]
pub(super) struct Tls(pub(super) Option<Arc<ClientConfig>>);

impl<In: Transport> Connector<In> for Tls {
    type Out = Either<In, Secure>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let config = self.0.clone().ok_or(ureq::Error::TlsRequired)?;
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ureq::Error::Tls("no certificate can be for a host of this name"))?;
        let mut connection = ClientConnection::new(config, name)?;
        let mut socket = TransportAdapter::new(
            Box::new(transport) as Box<dyn Transport>,
            Arc::clone(&details.current_time),
        );
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::ConnectionAborted, "it hung up instead of speaking TLS")
            }
            _ => error,
        })?;
        let sizes = (details.config.input_buffer_size(), details.config.output_buffer_size());
        let buffers = LazyBuffers::new(sizes.0, sizes.1);
        Ok(Some(Either::B(Secure { buffers, stream: StreamOwned::new(connection, socket) })))
    }
}

/// A connection wrapped in TLS.
pub(super) struct Secure {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for Secure {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Secure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Secure").finish_non_exhaustive()
    }
}
