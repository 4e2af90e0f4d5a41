"""A certificate authority that lives as long as a control plane: server, clients, and the key of ServiceAccount tokens."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = dt.timedelta(days=2)
EARLIER = dt.timedelta(minutes=5)
"""Certificates count from a little before now, for clocks that differ."""


class Pair(NamedTuple):
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


class Authority:
    """Signs what the parts of one control plane show each other."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("numaweb test authority")
        uses = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(uses, critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = _pem(self._certificate)

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """What makes the API server call its bearer `user`, a member of `groups`."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def server(self, names: Sequence[str], addresses: Sequence[str]) -> Pair:
        """For a server that is reached under these names and IP addresses."""
        known: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        known += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        return self._issue(_name(names[0]), ExtendedKeyUsageOID.SERVER_AUTH, known)

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, known: Sequence[x509.GeneralName]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        # Python's strict check of chains, which aiohttp and others turn on from 3.13, wants it.
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if known:
            builder = builder.add_extension(x509.SubjectAlternativeName(known), critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def signing_key() -> str:
    """A fresh RSA key, PEM: with it the API server signs the tokens of ServiceAccounts."""
    return _key_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - EARLIER).not_valid_after(now + LIFE)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: PrivateKeyTypes) -> str:
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, encryption).decode()
