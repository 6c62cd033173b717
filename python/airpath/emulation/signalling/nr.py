"""Registration, PDU session and deregistration over N2: NGAP (TS 38.413) with NAS (TS 24.501).

The order is that of TS 23.502 4.2.2.2.2, 4.3.2.2.1 and 4.2.2.3.2. The UE conceals its IMSI with the
null scheme, which leaves it readable (TS 33.501 C.2).
"""

from __future__ import annotations

import ipaddress

from airpath.emulation.attach import Refusal, Session
from airpath.emulation.signalling import aka, exchange
from airpath.emulation.signalling.exchange import (
    AREA,
    BASE_STATION,
    CELL,
    CORE,
    DOWNLINK,
    FIRST_KEY,
    NEW_CIPHERED,
    NEW_INTEGRITY,
    NO_KEY,
    UPLINK,
    Exchange,
    NasSecurity,
    Step,
    Ue,
    ambr_bps,
    bits,
    silence,
)

PORT = 38412
"""SCTP port of the AMF (TS 38.412 7)."""
PROTOCOL = 60
"""SCTP payload protocol identifier of NGAP."""

_SESSION = 1
"""PDU session identity."""
_TRANSACTION = 1
_SUCI, _GUTI = 1, 2
"""Types of identity (TS 24.501 9.11.3.4)."""
_CAPABILITIES = {
    "5G-EA0": 1,
    "5G-EA1_128": 1,
    "5G-EA2_128": 1,
    "5G-IA1_128": 1,
    "5G-IA2_128": 1,
}
_ALGORITHMS, _NONE = (0b11 << 14, 16), (0, 16)
"""_CAPABILITIES in NGAP, which leaves out the null algorithms (TS 38.413 9.3.1.86)."""
_BROADBAND = 1
"""Slice of type eMBB (TS 23.501 5.15.2.2)."""
_SESSION_MESSAGE = 1
"""Payload container type of session management (TS 24.501 9.11.3.40)."""
_INITIAL_REQUEST, _IPV4, _FIRST_MODE, _OVER_3GPP = 1, 1, 1, 1
_ANY_PACKET = {
    "ID": 1,
    "OpCode": 1,
    "DQR": 1,
    # Both directions; match-all (TS 24.501 9.11.4.13).
    "PktFilterList": [{"Dir": 3, "Id": 1, "PktFilter": [{"Type": 1}]}],
    "Precedence": 255,
}
"""Default QoS rule."""
_FULL_RATE = 0xFFFF
"""Maximum data rate of integrity protection of user data: no limit (TS 24.501 9.11.4.7)."""
_ARP = {
    "priorityLevelARP": 15,
    "pre-emptionCapability": "shall-not-trigger-pre-emption",
    "pre-emptionVulnerability": "not-pre-emptable",
}
"""Lowest priority, because subscribers have none (TS 38.413 9.3.1.19)."""


class Messages(exchange.Messages):
    """Messages of one UE over NGAP."""

    PREFIX, HEADER = "FGMM", "5GMMHeaderSec"

    def __init__(self, ue: Ue) -> None:
        silence("pycrate_mobile.TS24501_FGMM")
        from pycrate_asn1dir import NGAP
        from pycrate_mobile import TS24501_FGMM, TS24501_FGSM

        super().__init__(ue, NGAP, TS24501_FGMM)
        self._sessions = TS24501_FGSM

    def exchange(self) -> Exchange:
        """All of them, until the UE is refused or has deregistered."""
        outcome = self._ue.attempt.outcome
        request = self._registration()
        attach = [self._first(request)]
        if isinstance(outcome, Refusal) and outcome.step == "identity":
            rejected = self._plain("RegistrationReject", **{"5GMMCause": outcome.cause})
            return Exchange([*attach, self._down(rejected), *self._release("unspecified")], [], [])
        vector = self._ue.vector()
        challenge = {"RAND": vector.rand, "AUTN": vector.autn, "ABBA": aka.ABBA}
        authentication = self._plain("AuthenticationRequest", NAS_KSI=FIRST_KEY, **challenge)
        attach.append(self._down(authentication))
        if isinstance(outcome, Refusal) and outcome.step == "authentication":
            failure = self._plain("AuthenticationFailure", **{"5GMMCause": outcome.cause})
            # The SUCI is right, so the network ends it (TS 24.501 5.4.1.3.7 c).
            attach += [self._up(failure), self._down(self._plain("AuthenticationReject"))]
            return Exchange([*attach, *self._release("authentication-failure")], [], [])
        serving = self._serving_network()
        response = aka.response_5g(vector, serving)
        attach.append(self._up(self._plain("AuthenticationResponse", RES=response)))
        keys = aka.keys_5g(vector, serving, self._ue.imsi)
        # NAS connection identifier of 3GPP access (TS 33.501 6.4.3.1).
        self._security = NasSecurity(keys.integrity, bearer=1)
        attach += self._registered(request, keys.base_station)
        if isinstance(outcome, Refusal):
            rejected = self._session("PDUSessionEstabReject", **{"5GSMCause": outcome.cause})
            return Exchange(
                attach, [self._session_request(), self._down(self._carried(rejected, DOWNLINK))], []
            )
        return Exchange(attach, self._established(outcome), self._deregistered())

    def _serving_network(self) -> str:
        """Name of the serving network (TS 24.501 9.12.1)."""
        mcc, mnc = self._ue.plmn[:3], self._ue.plmn[3:].zfill(3)
        return f"5G:mnc{mnc}.mcc{mcc}.3gppnetwork.org"

    def _registration(self) -> bytes:
        concealed = {"PLMN": self._ue.plmn, "Output": self._ue.imsi[len(self._ue.plmn) :]}
        return self._plain(
            "RegistrationRequest",
            NAS_KSI=NO_KEY,
            **{"5GSRegType": {"FOR": 1}, "5GSID": {"Type": _SUCI, "Value": concealed}},
            UESecCap=_CAPABILITIES,
        )

    def _first(self, request: bytes) -> Step:
        elements = {
            "RAN-UE-NGAP-ID": self._ue.number,
            "NAS-PDU": request,
            **self._location(),
            "RRCEstablishmentCause": "mo-Signalling",
            "UEContextRequest": "requested",
        }
        return Step(UPLINK, self._encoder.pdu("InitialUEMessage", elements))

    def _registered(self, request: bytes, base_station_key: bytes) -> list[Step]:
        command = self._plain(
            "SecurityModeCommand",
            NASSecAlgo={"IntegAlgo": aka.INTEGRITY_ALGORITHM},
            NAS_KSI=FIRST_KEY,
            UESecCap=_CAPABILITIES,
        )
        # With the request again, which was not protected before (TS 24.501 5.4.2.3).
        complete = self._plain("SecurityModeComplete", NASContainer=request)
        accept = self._plain(
            "RegistrationAccept",
            **{"5GSRegResult": {"Value": _OVER_3GPP}},
            GUTI=self._guti(),
            **{"5GSTAIList": [{"PTAI": {"PLMN": self._ue.plmn, "TACs": [AREA]}}]},
            AllowedNSSAI=[{"SNSSAI": {"SST": _BROADBAND}}],
        )
        steps = [
            self._down(self._protected(command, DOWNLINK, NEW_INTEGRITY)),
            self._up(self._protected(complete, UPLINK, NEW_CIPHERED)),
        ]
        setup = {
            **self._ids(),
            "GUAMI": {
                "pLMNIdentity": self._plmn,
                "aMFRegionID": (1, 8),
                "aMFSetID": (1, 10),
                "aMFPointer": (1, 6),
            },
            "AllowedNSSAI": [{"s-NSSAI": _slice()}],
            "UESecurityCapabilities": {
                "nRencryptionAlgorithms": _ALGORITHMS,
                "nRintegrityProtectionAlgorithms": _ALGORITHMS,
                "eUTRAencryptionAlgorithms": _NONE,
                "eUTRAintegrityProtectionAlgorithms": _NONE,
            },
            "SecurityKey": (int.from_bytes(base_station_key), 256),
            "NAS-PDU": self._protected(accept, DOWNLINK),
        }
        registered = self._protected(self._plain("RegistrationComplete"), UPLINK)
        return [
            *steps,
            *self._procedure("InitialContextSetup", setup, self._ids()),
            self._up(registered),
        ]

    def _session_request(self) -> Step:
        request = self._session(
            "PDUSessionEstabRequest",
            IntegrityProtMaxDataRate=_FULL_RATE.to_bytes(2),
            PDUSessType=_IPV4,
        )
        return self._up(self._carried(request, UPLINK))

    def _established(self, session: Session) -> list[Step]:
        request = self._session_request()
        down_bps, up_bps = ambr_bps(session)
        rates = {
            **dict(zip(("DLUnit", "DL"), _rate(down_bps), strict=True)),
            **dict(zip(("ULUnit", "UL"), _rate(up_bps), strict=True)),
        }
        accept = self._session(
            "PDUSessionEstabAccept",
            SSCMode=_FIRST_MODE,
            PDUSessType=_IPV4,
            QoSRules=[{**_ANY_PACKET, "Flow": {"QFI": session.qfi}}],
            SessAMBR=rates,
            PDUAddress={"Addr": ipaddress.IPv4Address(session.address).packed},
            SNSSAI={"SST": _BROADBAND},
            DNN=session.apn,
        )
        gateway, base_station = self._ue.teids
        flow = {
            "qosFlowIdentifier": session.qfi,
            "qosFlowLevelQosParameters": {
                "qosCharacteristics": ("nonDynamic5QI", {"fiveQI": session.qci}),
                "allocationAndRetentionPriority": _ARP,
            },
        }
        transfer = {
            "PDUSessionAggregateMaximumBitRate": {
                "pDUSessionAggregateMaximumBitRateDL": down_bps,
                "pDUSessionAggregateMaximumBitRateUL": up_bps,
            },
            "UPTransportLayerInformation": _tunnel(CORE, gateway),
            "PDUSessionType": "ipv4",
            "QosFlowSetupRequestList": [flow],
        }
        name = "PDUSessionResourceSetup"
        inner = self._encoder.fields(f"{name}RequestTransfer", transfer)
        setup = {
            **self._ids(),
            "UEAggregateMaximumBitRate": {
                "uEAggregateMaximumBitRateDL": down_bps,
                "uEAggregateMaximumBitRateUL": up_bps,
            },
            f"{name}ListSUReq": [
                {
                    "pDUSessionID": _SESSION,
                    "pDUSessionNAS-PDU": self._carried(accept, DOWNLINK),
                    "s-NSSAI": _slice(),
                    "pDUSessionResourceSetupRequestTransfer": (
                        f"{name}RequestTransfer",
                        {"protocolIEs": inner},
                    ),
                }
            ],
        }
        made = {
            "dLQosFlowPerTNLInformation": {
                "uPTransportLayerInformation": _tunnel(BASE_STATION, base_station),
                "associatedQosFlowList": [{"qosFlowIdentifier": session.qfi}],
            }
        }
        response = {
            **self._ids(),
            f"{name}ListSURes": [
                {
                    "pDUSessionID": _SESSION,
                    "pDUSessionResourceSetupResponseTransfer": (f"{name}ResponseTransfer", made),
                }
            ],
        }
        return [request, *self._procedure(name, setup, response)]

    def _deregistered(self) -> list[Step]:
        request = self._plain(
            "MODeregistrationRequest",
            NAS_KSI=FIRST_KEY,
            DeregistrationType={"AccessType": _OVER_3GPP},
            **{"5GSID": self._guti()},
        )
        accept = self._plain("MODeregistrationAccept")
        return [
            self._up(self._protected(request, UPLINK)),
            self._down(self._protected(accept, DOWNLINK)),
            *self._release("deregister"),
        ]

    def _session(self, name: str, **elements: object) -> bytes:
        """NAS message of session management."""
        header = {"PDUSessID": _SESSION, "PTI": _TRANSACTION}
        message = getattr(self._sessions, f"FGSM{name}")(val={"5GSMHeader": header, **elements})
        return bytes(message.to_bytes())

    def _carried(self, message: bytes, up: bool) -> bytes:
        """NAS transport of a session's message, protected."""
        elements = {
            "PayloadContainerType": _SESSION_MESSAGE,
            "PayloadContainer": message,
            "PDUSessID": _SESSION,
        }
        if up:
            elements |= {
                "RequestType": _INITIAL_REQUEST,
                "SNSSAI": {"SST": _BROADBAND},
                "DNN": self._ue.apn,
            }
        name = "ULNASTransport" if up else "DLNASTransport"
        return self._protected(self._plain(name, **elements), up)

    def _ids(self) -> dict[str, object]:
        return {"AMF-UE-NGAP-ID": self._ue.number, "RAN-UE-NGAP-ID": self._ue.number}

    def _location(self) -> dict[str, object]:
        location = {
            "nR-CGI": {"pLMNIdentity": self._plmn, "nRCellIdentity": (CELL, 36)},
            "tAI": {"pLMNIdentity": self._plmn, "tAC": AREA.to_bytes(3)},
        }
        return {"UserLocationInformation": ("userLocationInformationNR", location)}

    def _guti(self) -> dict[str, object]:
        return {
            "Type": _GUTI,
            "PLMN": self._ue.plmn,
            "AMFRegionID": 1,
            "AMFSetID": 1,
            "AMFPtr": 1,
            "5GTMSI": self._ue.temporary,
        }


def _slice() -> dict[str, bytes]:
    return {"sST": bytes([_BROADBAND])}


def _tunnel(address: str, teid: bytes) -> tuple[str, dict[str, object]]:
    return "gTPTunnel", {"transportLayerAddress": bits(address), "gTP-TEID": teid}


def _rate(bps: int) -> tuple[int, int]:
    """Unit and value of a session AMBR: units of 4^n kb/s, of which the value has 16 bits."""
    unit, kbps = 1, max(bps // 1000, 1)
    while kbps > 0xFFFF:
        unit, kbps = unit + 1, kbps // 4
    return unit, kbps
