"""Attach and detach over S1-MME: S1AP (TS 36.413) with NAS (TS 24.301) inside.

The order is that of TS 23.401 5.3.2.1 and 5.3.8.2, with the IMSI as identity.
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

PORT = 36412
"""SCTP port of the MME (TS 36.412 7)."""
PROTOCOL = 18
"""SCTP payload protocol identifier of S1AP."""

_BEARER = 5
"""EPS bearer identity of the default bearer: the first one (TS 24.007 11.2.3.1.5)."""
_TRANSACTION = 1
_EPS_ATTACH, _EPS_DETACH, _EPS_ONLY, _INITIAL_REQUEST, _IPV4 = 1, 1, 1, 1, 1
_IMSI, _GUTI = 1, 6
"""Types of identity (TS 24.301 9.9.3.12)."""
_CAPABILITIES = {"EEA0": 1, "EEA1_128": 1, "EEA2_128": 1, "EIA1_128": 1, "EIA2_128": 1}
_ALGORITHMS = (0b11 << 14, 16)
"""_CAPABILITIES in S1AP, which leaves out the null algorithms (TS 36.413 9.2.1.40)."""
_ESM_FAILURE = 19
"""EMM cause of an attach whose PDN connectivity is refused (TS 24.301 5.5.1.2.5)."""
_UPDATE_TIMER = {"Unit": 2, "Value": 9}
"""T3412, 54 min: the default of TS 24.301 table 10.2.1."""
_ARP = {
    "priorityLevel": 15,
    "pre-emptionCapability": "shall-not-trigger-pre-emption",
    "pre-emptionVulnerability": "not-pre-emptable",
}
"""Lowest priority, because subscribers have none (TS 36.413 9.2.1.60)."""


class Messages(exchange.Messages):
    """Messages of one UE over S1AP."""

    PREFIX, HEADER = "EMM", "EMMHeaderSec"

    def __init__(self, ue: Ue) -> None:
        silence("pycrate_mobile.TS24301_EMM")
        from pycrate_asn1dir import S1AP
        from pycrate_mobile import TS24301_EMM, TS24301_ESM

        super().__init__(ue, S1AP, TS24301_EMM)
        self._sessions = TS24301_ESM

    def exchange(self) -> Exchange:
        """All of them, until the UE is refused or has detached."""
        outcome = self._ue.attempt.outcome
        attach = [self._request()]
        if isinstance(outcome, Refusal) and outcome.step == "identity":
            attach.append(self._down(self._plain("AttachReject", EMMCause=outcome.cause)))
            return Exchange([*attach, *self._release("unspecified")], [], [])
        vector = self._ue.vector()
        challenge = {"NAS_KSI": FIRST_KEY, "RAND": vector.rand, "AUTN": vector.autn}
        attach.append(self._down(self._plain("AuthenticationRequest", **challenge)))
        if isinstance(outcome, Refusal) and outcome.step == "authentication":
            failure = self._plain("AuthenticationFailure", EMMCause=outcome.cause)
            # The IMSI is right, so the network ends it (TS 24.301 5.4.2.7 c).
            attach += [self._up(failure), self._down(self._plain("AuthenticationReject"))]
            return Exchange([*attach, *self._release("authentication-failure")], [], [])
        attach.append(self._up(self._plain("AuthenticationResponse", RES=vector.res)))
        keys = aka.eps_keys(vector, self._plmn)
        self._security = NasSecurity(keys.integrity, bearer=0)
        attach += self._secured()
        if isinstance(outcome, Refusal):
            rejected = self._session("PDNConnectivityReject", ESMCause=outcome.cause)
            reject = self._plain("AttachReject", EMMCause=_ESM_FAILURE, ESMContainer=rejected)
            attach.append(self._down(self._protected(reject, DOWNLINK)))
            return Exchange([*attach, *self._release("unspecified")], [], [])
        request, *session = self._established(outcome, keys.base_station)
        return Exchange([*attach, request], session, self._detached())

    def _request(self) -> Step:
        # The APN is asked for once it can be ciphered (TS 24.301 6.5.1.2).
        connectivity = self._session(
            "PDNConnectivityRequest",
            PDNType=_IPV4,
            RequestType=_INITIAL_REQUEST,
            ESMInfoTransferFlag=1,
        )
        request = self._plain(
            "AttachRequest",
            EPSAttachType=_EPS_ATTACH,
            NAS_KSI=NO_KEY,
            EPSID={"type": _IMSI, "ident": self._ue.imsi},
            UENetCap=_CAPABILITIES,
            ESMContainer=connectivity,
        )
        elements = {"ENB-UE-S1AP-ID": self._ue.number, "NAS-PDU": request, **self._location()}
        elements["RRC-Establishment-Cause"] = "mo-Signalling"
        return Step(UPLINK, self._encoder.pdu("InitialUEMessage", elements))

    def _secured(self) -> list[Step]:
        command = self._plain(
            "SecurityModeCommand",
            NASSecAlgo={"IntegAlgo": aka.INTEGRITY_ALGORITHM},
            NAS_KSI=FIRST_KEY,
            UESecCap=_CAPABILITIES,
        )
        complete = self._plain("SecurityModeComplete")
        asked = self._session("InformationRequest")
        answered = self._session("InformationResponse", APN=self._ue.apn)
        return [
            self._down(self._protected(command, DOWNLINK, NEW_INTEGRITY)),
            self._up(self._protected(complete, UPLINK, NEW_CIPHERED)),
            self._down(self._protected(asked, DOWNLINK)),
            self._up(self._protected(answered, UPLINK)),
        ]

    def _established(self, session: Session, base_station_key: bytes) -> list[Step]:
        """Context setup with the default bearer inside."""
        activate = self._session(
            "ActDefaultEPSBearerCtxtRequest",
            bearer=_BEARER,
            EPSQoS={"QCI": session.qci},
            APN=session.apn,
            PDNAddr={"Addr": ipaddress.IPv4Address(session.address).packed},
        )
        accept = self._plain(
            "AttachAccept",
            EPSAttachResult=_EPS_ONLY,
            T3412=_UPDATE_TIMER,
            TAIList=[{"PTAI": {"PLMN": self._ue.plmn, "TACs": [AREA]}}],
            ESMContainer=activate,
            GUTI=self._guti(),
        )
        down_bps, up_bps = ambr_bps(session)
        gateway, base_station = self._ue.teids
        bearer = {
            "e-RAB-ID": _BEARER,
            "e-RABlevelQoSParameters": {
                "qCI": session.qci,
                "allocationRetentionPriority": _ARP,
            },
            "transportLayerAddress": bits(CORE),
            "gTP-TEID": gateway,
            "nAS-PDU": self._protected(accept, DOWNLINK),
        }
        request = {
            **self._ids(),
            "UEAggregateMaximumBitrate": {
                "uEaggregateMaximumBitRateDL": down_bps,
                "uEaggregateMaximumBitRateUL": up_bps,
            },
            "E-RABToBeSetupListCtxtSUReq": self._item("E-RABToBeSetupItemCtxtSUReq", bearer),
            "UESecurityCapabilities": {
                "encryptionAlgorithms": _ALGORITHMS,
                "integrityProtectionAlgorithms": _ALGORITHMS,
            },
            "SecurityKey": (int.from_bytes(base_station_key), 256),
        }
        made = {
            "e-RAB-ID": _BEARER,
            "transportLayerAddress": bits(BASE_STATION),
            "gTP-TEID": base_station,
        }
        response = {
            **self._ids(),
            "E-RABSetupListCtxtSURes": self._item("E-RABSetupItemCtxtSURes", made),
        }
        accepted = self._session("ActDefaultEPSBearerCtxtAccept", bearer=_BEARER, transaction=0)
        complete = self._plain("AttachComplete", ESMContainer=accepted)
        return [
            *self._procedure("InitialContextSetup", request, response),
            self._up(self._protected(complete, UPLINK)),
        ]

    def _detached(self) -> list[Step]:
        request = self._plain(
            "DetachRequestMO",
            NAS_KSI=FIRST_KEY,
            EPSDetachType={"Type": _EPS_DETACH},
            EPSID=self._guti(),
        )
        accept = self._plain("DetachAccept")
        return [
            self._up(self._protected(request, UPLINK)),
            self._down(self._protected(accept, DOWNLINK)),
            *self._release("detach"),
        ]

    def _item(self, name: str, value: dict[str, object]) -> list[dict[str, object]]:
        """List with one item, which S1AP wraps as an IE of its own."""
        return self._encoder.fields(name, {name: value})

    def _session(
        self, name: str, *, bearer: int = 0, transaction: int = _TRANSACTION, **elements: object
    ) -> bytes:
        """NAS message of session management."""
        header = {"EPSBearerId": bearer, "PTI": transaction}
        message = getattr(self._sessions, f"ESM{name}")(val={"ESMHeader": header, **elements})
        return bytes(message.to_bytes())

    def _ids(self) -> dict[str, object]:
        return {"MME-UE-S1AP-ID": self._ue.number, "ENB-UE-S1AP-ID": self._ue.number}

    def _location(self) -> dict[str, object]:
        return {
            "TAI": {"pLMNidentity": self._plmn, "tAC": AREA.to_bytes(2)},
            "EUTRAN-CGI": {"pLMNidentity": self._plmn, "cell-ID": (CELL, 28)},
        }

    def _guti(self) -> dict[str, object]:
        return {"type": _GUTI, "ident": (self._ue.plmn, 1, 1, self._ue.temporary)}
