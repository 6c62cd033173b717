"""Authentication and key agreement: Milenage, the keys that follow from it, and NAS integrity.

Milenage is TS 35.206 with AES-128; the key hierarchies are TS 33.401 annex A (EPS) and TS 33.501
annex A (5G). NAS messages are protected by 128-EIA2 or 128-NIA2 (TS 33.401 B.2.3, TS 33.501 D.3).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

SEQUENCE_NUMBER = bytes(6)
"""SQN of each first authentication. A USIM in use has a higher one, and refuses such a vector."""

MANAGEMENT_FIELD = b"\x80\x00"
"""AMF with the separation bit, which EPS and 5G need (TS 33.401 6.1.1, TS 33.501 6.1.3.2)."""

ABBA = bytes(2)
"""Parameter against bidding down (TS 33.501 A.7.1)."""

INTEGRITY_ALGORITHM = 2
"""128-EIA2 or 128-NIA2. Ciphering is null: 128-EEA0 or 128-NEA0."""


@dataclass(frozen=True)
class Vector:
    """What a network computes to authenticate a UE (TS 33.102 6.3.2)."""

    rand: bytes
    autn: bytes
    """SQN concealed by AK, AMF, MAC."""
    res: bytes
    keys: bytes = field(repr=False)
    """CK and IK."""

    @property
    def concealed_sequence_number(self) -> bytes:
        """SQN exclusive-or AK, which key derivation takes."""
        return self.autn[:6]


def vector(key: bytes, opc: bytes, rand: bytes, sqn: bytes = SEQUENCE_NUMBER) -> Vector:
    """Compute RES, AUTN, CK and IK from K and OPc (TS 35.206 4.1)."""

    def output(block: bytes, rotation_bytes: int, constant: int) -> bytes:
        rotated = block[rotation_bytes:] + block[:rotation_bytes]
        return _xor(_aes(key, _xor(rotated, constant.to_bytes(16))), opc)

    hidden = _aes(key, _xor(rand, opc))
    # f1 has another input than f2 to f5: OUT1 = E(TEMP xor rot(IN1 xor OPc, r1) xor c1) xor OPc.
    first = _xor((sqn + MANAGEMENT_FIELD) * 2, opc)
    mac = _xor(_aes(key, _xor(hidden, first[8:] + first[:8])), opc)[:8]
    masked = _xor(hidden, opc)
    second, third, fourth = output(masked, 0, 1), output(masked, 4, 2), output(masked, 8, 4)
    autn = _xor(sqn, second[:6]) + MANAGEMENT_FIELD + mac
    return Vector(rand, autn, second[8:], third + fourth)


@dataclass(frozen=True)
class SecurityKeys:
    """Keys of a security context."""

    integrity: bytes = field(repr=False)
    """K_NASint, 128 bits."""
    base_station: bytes = field(repr=False)
    """K_eNB or K_gNB, 256 bits, from uplink NAS COUNT 0."""


def eps_keys(vector: Vector, plmn: bytes) -> SecurityKeys:
    """Derive the keys of EPS for a PLMN of three bytes (TS 33.401 A.2, A.3, A.7)."""
    asme = derive(vector.keys, 0x10, plmn, vector.concealed_sequence_number)
    integrity = derive(asme, 0x15, b"\x02", bytes([INTEGRITY_ALGORITHM]))
    return SecurityKeys(integrity[16:], derive(asme, 0x11, bytes(4)))


def response_5g(vector: Vector, serving: str) -> bytes:
    """Compute RES* for a serving network's name (TS 33.501 A.4)."""
    return derive(vector.keys, 0x6B, serving.encode(), vector.rand, vector.res)[16:]


def keys_5g(vector: Vector, serving: str, imsi: str) -> SecurityKeys:
    """Derive the keys of 5G-AKA (TS 33.501 A.2, A.6 to A.9)."""
    name = serving.encode()
    ausf = derive(vector.keys, 0x6A, name, vector.concealed_sequence_number)
    amf = derive(derive(ausf, 0x6C, name), 0x6D, imsi.encode(), ABBA)
    integrity = derive(amf, 0x69, b"\x02", bytes([INTEGRITY_ALGORITHM]))
    # Access type 1: 3GPP.
    return SecurityKeys(integrity[16:], derive(amf, 0x6E, bytes(4), b"\x01"))


def derive(key: bytes, function: int, *parameters: bytes) -> bytes:
    """Key derivation function of TS 33.220 B.2.2."""
    text = bytes([function]) + b"".join(one + len(one).to_bytes(2) for one in parameters)
    return hmac.digest(key, text, "sha256")


def integrity_code(key: bytes, count: int, bearer: int, message: bytes, *, downlink: bool) -> bytes:
    """MAC-I of 128-EIA2, four bytes (TS 33.401 B.2.3)."""
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.cmac import CMAC

    code = CMAC(AES(key))
    code.update(count.to_bytes(4) + bytes([bearer << 3 | downlink << 2, 0, 0, 0]) + message)
    return code.finalize()[:4]


def _aes(key: bytes, block: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    # One block, as Milenage uses the cipher: there is no mode.
    encryptor = Cipher(AES(key), ECB()).encryptor()  # noqa: S305
    return encryptor.update(block) + encryptor.finalize()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
