"""Pings are drawn, written as each system and language writes them, and read back."""

# ruff: noqa: RUF001

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.readers import ping
from airpath.readers.lines import decoded

ADDRESS = "192.0.2.1"


@dataclass
class Drawn:
    """One run: the round trip in ms of each request, None for no answer."""

    rtts: list[float | None]
    first: int = 1

    @property
    def answered(self) -> list[float]:
        return [rtt for rtt in self.rtts if rtt is not None]

    @property
    def lost(self) -> int:
        return len(self.rtts) - len(self.answered)

    def numbered(self) -> list[tuple[int, float | None]]:
        return [(self.first + at, rtt) for at, rtt in enumerate(self.rtts)]


Written = tuple[list[str], list[str], list[str]]
"""Head, lines and tail."""


def _unix(
    head: str, reply: str, title: str, counts: str, times: str = "", silent: str = ""
) -> Callable[[Drawn], Written]:
    def write(run: Drawn) -> Written:
        lines = [
            reply.format(seq=seq, rtt=rtt) if rtt is not None else silent.format(seq=seq)
            for seq, rtt in run.numbered()
        ]
        share = round(100 * run.lost / len(run.rtts))
        known = run.answered
        tail = ["", title, counts.format(sent=len(run.rtts), got=len(known), share=share)]
        if known and times:
            tail.append(times.format(min=min(known), avg=sum(known) / len(known), max=max(known)))
        return [head], [line for line in lines if line], tail

    return write


def _windows(
    head: str, reply: str, silent: str, title: str, counts: str, times: str
) -> Callable[[Drawn], Written]:
    def write(run: Drawn) -> Written:
        lines = [reply.format(rtt=round(rtt)) if rtt is not None else silent for rtt in run.rtts]
        share = round(100 * run.lost / len(run.rtts))
        tail = [
            "",
            title,
            *counts.format(
                sent=len(run.rtts), got=len(run.answered), lost=run.lost, share=share
            ).split("\n"),
        ]
        if known := [round(one) for one in run.answered]:
            tail += times.format(
                min=min(known), max=max(known), avg=sum(known) // len(known)
            ).split("\n")
        return ["", head], lines, tail

    return write


def _routeros(run: Drawn) -> Written:
    head = [
        "  SEQ HOST                                     SIZE TTL TIME       STATUS             "
    ]
    lines = [
        f"{seq:5} {ADDRESS:<40}   56  57 {int(rtt)}ms{round(1000 * (rtt % 1))}us "
        if rtt is not None
        else f"{seq:5} {ADDRESS:<40}                     timeout            "
        for seq, rtt in run.numbered()
    ]
    counts = f"    sent={len(run.rtts)} received={len(run.answered)} packet-loss=0%"
    return head, lines, [counts]


def _fping(run: Drawn) -> Written:
    lines = [
        f"{ADDRESS} : [{seq}], 64 bytes, {rtt} ms (20.0 avg, 0% loss)"
        if rtt is not None
        else f"{ADDRESS} : [{seq}], timed out (20.0 avg, 50% loss)"
        for seq, rtt in run.numbered()
    ]
    counts = f"{ADDRESS} : xmt/rcv/%loss = {len(run.rtts)}/{len(run.answered)}/{run.lost}%"
    return [], lines, ["", counts]


TITLE = f"--- {ADDRESS} ping statistics ---"
UNIX = {
    "iputils": _unix(
        f"PING {ADDRESS} ({ADDRESS}) 56(84) bytes of data.",
        f"64 bytes from {ADDRESS}: icmp_seq={{seq}} ttl=57 time={{rtt}} ms",
        TITLE, "{sent} packets transmitted, {got} received, {share}% packet loss, time 9ms",
        "rtt min/avg/max/mdev = {min}/{avg}/{max}/1.000 ms", "no answer yet for icmp_seq={seq}"),
    "iputils, French": _unix(
        f"PING {ADDRESS} ({ADDRESS}) 56(84) octets de données.",
        f"64 octets de {ADDRESS} : icmp_seq={{seq}} ttl=57 temps={{rtt}} ms",
        f"--- statistiques ping {ADDRESS} ---",
        "{sent} paquets transmis, {got} reçus, {share}% packet loss, time 9ms",
        "rtt min/moy/max/mdev = {min}/{avg}/{max}/1.000 ms"),
    "iputils, Chinese": _unix(
        f"PING {ADDRESS} ({ADDRESS}) 56(84) 字节的数据。",
        f"64 字节，来自 {ADDRESS}: icmp_seq={{seq}} ttl=57 时间={{rtt}} 毫秒",
        f"--- {ADDRESS} ping 统计 ---",
        "已发送 {sent} 个包， 已接收 {got} 个包, {share}% packet loss, time 9ms"),
    "BusyBox": _unix(
        f"PING {ADDRESS} ({ADDRESS}): 56 data bytes",
        f"64 bytes from {ADDRESS}: seq={{seq}} ttl=57 time={{rtt}} ms", TITLE,
        "{sent} packets transmitted, {got} packets received, {share}% packet loss",
        "round-trip min/avg/max = {min}/{avg}/{max} ms"),
    "toybox": _unix(
        f"Ping {ADDRESS} ({ADDRESS}): 56(84) bytes.",
        f"64 bytes from {ADDRESS}: icmp_seq={{seq}} ttl=57 time={{rtt}} ms", TITLE,
        "{sent} packets transmitted, {got} received, {share}% packet loss",
        "round-trip min/avg/max = {min}/{avg}/{max} ms"),
    "macOS": _unix(
        f"PING {ADDRESS} ({ADDRESS}): 56 data bytes",
        f"64 bytes from {ADDRESS}: icmp_seq={{seq}} ttl=57 time={{rtt}} ms", TITLE,
        "{sent} packets transmitted, {got} packets received, {share}.0% packet loss",
        "round-trip min/avg/max/stddev = {min}/{avg}/{max}/1.000 ms",
        "Request timeout for icmp_seq {seq}"),
    "hping": _unix(
        f"HPING {ADDRESS} (eth0 {ADDRESS}): S set, 40 headers + 0 data bytes",
        f"len=46 ip={ADDRESS} ttl=57 DF id=0 sport=80 flags=SA seq={{seq}} win=9 rtt={{rtt}} ms",
        f"--- {ADDRESS} hping statistic ---",
        "{sent} packets transmitted, {got} packets received, {share}% packet loss"),
    "RouterOS": _routeros,
    "fping": _fping,
}  # fmt: skip
WINDOWS = {
    "English": _windows(
        f"Pinging host.example [{ADDRESS}] with 32 bytes of data:",
        f"Reply from {ADDRESS}: bytes=32 time={{rtt}}ms TTL=57", "Request timed out.",
        f"Ping statistics for {ADDRESS}:",
        "    Packets: Sent = {sent}, Received = {got}, Lost = {lost} ({share}% loss),",
        "Approximate round trip times in milli-seconds:\n"
        "    Minimum = {min}ms, Maximum = {max}ms, Average = {avg}ms"),
    "French": _windows(
        f"Envoi d’une requête 'Ping'  {ADDRESS} avec 32 octets de données :",
        f"Réponse de {ADDRESS} : octets=32 temps={{rtt}} ms TTL=57",
        "Délai d’attente de la demande dépassé.", f"Statistiques Ping pour {ADDRESS}:",
        "    Paquets : envoyés = {sent}, reçus = {got}, perdus = {lost} (perte {share}%),",
        "Durée approximative des boucles en millisecondes :\n"
        "    Minimum = {min}ms, Maximum = {max}ms, Moyenne = {avg}ms"),
    "German": _windows(
        f"Ping wird ausgeführt für {ADDRESS} mit 32 Bytes Daten:",
        f"Antwort von {ADDRESS}: Bytes=32 Zeit={{rtt}}ms TTL=57",
        "Zeitüberschreitung der Anforderung.", f"Ping-Statistik für {ADDRESS}:",
        "    Pakete: Gesendet = {sent}, Empfangen = {got}, Verloren = {lost}\n"
        "    ({share}% Verlust),",
        "Ca. Zeitangaben in Millisek.:\n"
        "    Minimum = {min}ms, Maximum = {max}ms, Mittelwert = {avg}ms"),
    "Russian": _windows(
        f"Обмен пакетами с {ADDRESS} по с 32 байтами данных:",
        f"Ответ от {ADDRESS}: число байт=32 время={{rtt}}мс TTL=57",
        "Превышен интервал ожидания для запроса.", f"Статистика Ping для {ADDRESS}:",
        "    Пакетов: отправлено = {sent}, получено = {got}, потеряно = {lost}\n"
        "    ({share}% потерь)",
        "Приблизительное время приема-передачи в мс:\n"
        "    Минимальное = {min}мсек, Максимальное = {max} мсек, Среднее = {avg} мсек"),
    "Chinese": _windows(
        f"正在 Ping {ADDRESS} 具有 32 字节的数据:",
        f"来自 {ADDRESS} 的回复: 字节=32 时间={{rtt}}ms TTL=57", "请求超时。",
        f"{ADDRESS} 的 Ping 统计信息:",
        "    数据包: 已发送 = {sent}，已接收 = {got}，丢失 = {lost} ({share}% 丢失)，",
        "往返行程的估计时间(以毫秒为单位):\n    最短 = {min}ms，最长 = {max}ms，平均 = {avg}ms"),
    "Japanese": _windows(
        f"{ADDRESS} に ping を送信しています 32 バイトのデータ:",
        f"{ADDRESS} からの応答: バイト数 =32 時間 ={{rtt}}ms TTL=57",
        "要求がタイムアウトしました。", f"{ADDRESS} の ping 統計:",
        "    パケット数: 送信 = {sent}、受信 = {got}、損失 = {lost} ({share}% の損失)、",
        "ラウンド トリップの概算時間 (ミリ秒):\n"
        "    最小 = {min}ms、最大 = {max}ms、平均 = {avg}ms"),
}  # fmt: skip
PAGES = {
    "English": "cp437", "French": "cp1252", "German": "cp1252", "Russian": "cp866",
    "Chinese": "gbk", "Japanese": "cp932",
}  # fmt: skip
STAMPS: tuple[tuple[str, bool], ...] = (
    ("[%s.250000] ", True), ("[%Y-%m-%dT%H:%M:%S.250000+00:00] ", True),
    ("%Y-%m-%dT%H:%M:%S+0000 ", True), ("%a %b %d %H:%M:%S UTC %Y: ", True),
    ("%d %b %Y %H:%M:%S GMT | ", True), ("%b %d %H:%M:%S ", False), ("%H:%M:%S ", False),
    ("%m/%d/%Y %I:%M:%S %p ", False), ("[%d.%m.%Y %H:%M:%S] ", False),
)  # fmt: skip
"""Times in front of lines, and whether they name an instant."""
START = 1795806434


def _draw(pick: random.Random, first: int | None = None) -> Drawn:
    rtts: list[float | None] = [
        None if pick.random() < 0.2 else round(pick.uniform(1, 900), pick.choice((1, 2, 3)))
        for _ in range(pick.randint(2, 12))
    ]
    # An excerpt begins and ends with an answer.
    rtts[0], rtts[-1] = round(pick.uniform(1, 900), 1), round(pick.uniform(1, 900), 1)
    return Drawn(rtts, pick.choice((0, 1)) if first is None else first)


def _stamped(lines: list[str], stamp: str) -> list[str]:
    shown = []
    for second, line in enumerate(lines):
        at = time.gmtime(START + second)
        prefix = time.strftime(stamp.replace("%s", str(START + second)), at)
        shown.append(f"{prefix}{line}" if line else line)
    return shown


def _pick() -> random.Random:
    return random.Random(f"pings {os.environ.get('PROPTEST_RNG_SEED', '7')}")


@pytest.mark.parametrize("system", [*UNIX, *(f"Windows, {one}" for one in WINDOWS)])
def test_what_is_drawn_is_read_back(system: str) -> None:
    language = system.removeprefix("Windows, ")
    windows = language != system
    write = WINDOWS[language] if windows else UNIX[system]
    pick = _pick()
    for _ in range(40):
        runs = [_draw(pick) for _ in range(pick.choice((1, 1, 2, 3)))]
        parts = [write(run) for run in runs]
        headed, tailed = pick.random() < 0.7, pick.random() < 0.7
        if len(runs) > 1:
            headed = True
        lines = [
            line
            for head, body, tail in parts
            for line in [*(head if headed else []), *body, *(tail if tailed else [])]
        ]
        address = pick.choice((ADDRESS, "2001:db8::17", "2002:c000:201::1:2"))
        lines = [line.replace(ADDRESS, address) for line in lines]
        stamp, absolute = pick.choice(STAMPS) if pick.random() < 0.5 else ("", False)
        # RouterOS's rows begin with a number, and Windows's silence is in the user's language.
        if system == "RouterOS" or (windows and not headed):
            stamp, absolute = "", False
        text = pick.choice(("\n", "\r\n")).join(_stamped(lines, stamp) if stamp else lines)
        encodings = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"]
        if windows:
            encodings.append(PAGES[language])
        encoding = pick.choice(encodings)
        shown = f"{text}\n{encoding}"
        read = ping.read(decoded(text.encode(encoding, errors="replace")))
        if system == "fping" and not tailed:
            continue  # Numbers that begin again are all that tells its runs apart.
        told = [[one.rtt_ms for one in run.replies] for run in read.runs]
        expected = [[float(round(rtt)) if windows else rtt for rtt in run.answered] for run in runs]
        assert told == [pytest.approx(one, abs=1e-6) for one in expected], shown
        if tailed or headed or not windows:
            silent = "no answer yet" in text or "timeout" in text or "timed out" in text
            if tailed or windows or silent or system in ("RouterOS",):
                assert [run.lost for run in read.runs] == [run.lost for run in runs], shown
        assert [run.complete for run in read.runs] == [tailed] * len(runs), shown
        assert not headed or {run.address for run in read.runs} <= {None, address}, shown
        times = [one.time_s for one in read.replies]
        assert all((one is not None) == absolute for one in times), shown
        if absolute:
            begin = lines.index(parts[0][1][0].replace(ADDRESS, address))
            assert times[0] == pytest.approx(START + begin, abs=0.3), shown


def test_only_ping_s_own_counts_are_left_of_a_flood() -> None:
    (run,) = ping.read(
        f"PING {ADDRESS} ({ADDRESS}) 56(84) bytes of data.\n...\n{TITLE}\n"
        "2590 packets transmitted, 2587 received, 0.11583% packet loss, time 9ms\n"
        "rtt min/avg/max/mdev = 8.501/12.100/230.000/5.100 ms, pipe 2, ipg/ewma 5.1/11.9 ms\n"
    ).runs
    assert (run.sent, run.lost, run.complete) == (2590, 3, True)
    assert run.printed == {"min": 8.501, "mean": 12.1, "max": 230.0, "mdev": 5.1}


def test_a_loop_has_a_run_each_and_their_sum(tmp_path: Path) -> None:
    def run(got: int) -> str:
        replies = "".join(
            f"64 bytes from {ADDRESS}: icmp_seq={seq} ttl=57 time={seq}.5 ms\n"
            for seq in range(1, got + 1)
        )
        return (
            f"PING {ADDRESS} ({ADDRESS}) 56(84) bytes of data.\n{replies}\n{TITLE}\n"
            f"5 packets transmitted, {got} received, {100 - 20 * got}% packet loss, time 9ms\n"
        )

    file = tmp_path / "loop.txt"
    file.write_text(
        "".join(
            f"Sun Oct  1 0{hour}:00:00 UTC 2023\n{run(got)}" for hour, got in enumerate((5, 4, 2))
        )
    )
    document: Any = diagnose(str(file))
    assert (document["ping"]["sent"], document["ping"]["lost"]) == (15, 4)
    runs = document["ping"]["runs"]
    assert [(one["sent"], one["lost"]) for one in runs] == [(5, 0), (5, 1), (5, 3)]
    assert [one["start_time_s"] - 1696118400 for one in runs] == [0, 3600, 7200]
    texts = [one["text"] for one in document["statements"]]
    assert texts[0].startswith("3 runs: 4 of 15 echo requests had no reply; RTT min ")
    assert texts[3].startswith(
        "Run 3 to 192.0.2.1 at 2023-10-01 02:00:00 UTC: 5 sent, 3 lost; RTT min "
    )


def test_numbers_that_begin_again_begin_a_run_without_a_first_line() -> None:
    text = "".join(
        f"64 bytes from {ADDRESS}: icmp_seq={seq} ttl=57 time=20.5 ms\n"
        for _ in range(3) for seq in (1, 2, 4)
    )  # fmt: skip
    assert [(run.sent, run.lost) for run in ping.read(text).runs] == [(4, 1)] * 3


@pytest.mark.parametrize(
    ("line", "mtu"),
    [
        ("From 192.0.2.9 icmp_seq=1 Frag needed and DF set (mtu = 1400)", 1400),
        ("From fd00::1 icmp_seq=1 Packet too big: mtu=1400", 1400),
        ("ping: local error: message too long, mtu=1400", 1400),
        ("ping: local error: message too long, mtu: 1400", 1400),
        ("92 bytes from 192.0.2.9: frag needed and DF set (MTU 1400)", 1400),
        ("From 192.0.2.9 icmp_seq=1 Time to live exceeded", None),
        ("From 192.0.2.9: icmp_seq=1 Destination Host Unreachable", None),
    ],
)
def test_an_error_s_mtu_is_told(tmp_path: Path, line: str, mtu: int | None) -> None:
    file = tmp_path / "ping.txt"
    file.write_text(
        f"PING {ADDRESS} ({ADDRESS}) 1472(1500) bytes of data.\n{line}\n\n{TITLE}\n"
        "2 packets transmitted, 0 received, +1 errors, 100% packet loss, time 9ms\n"
    )
    document = diagnose(str(file))
    assert document["ping"]["mtu_bytes"] == mtu
    kinds = {one["kind"]: one["text"] for one in document["statements"]}
    assert ("mtu" in kinds) == (mtu is not None)
    if mtu:
        assert "MTU of 1400 bytes" in kinds["mtu"]
    assert "ping-errors" in kinds


def test_errors_that_windows_counts_as_received_are_lost() -> None:
    read = ping.read(
        f"\nPinging {ADDRESS} with 32 bytes of data:\n"
        "Reply from 192.0.2.9: Destination host unreachable.\n"
        f"Reply from {ADDRESS}: bytes=32 time=17ms TTL=57\n"
        "Request timed out.\n\n"
        f"Ping statistics for {ADDRESS}:\n"
        "    Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),\n"
    )
    assert (read.sent, read.lost) == (3, 2)
    assert "counts errors that routers sent as received (1)" in read.remarks[0]


def test_windows_names_neither_size_nor_ttl_over_ipv6() -> None:
    read = ping.read(
        "Pinging fd00::1 from fd00::2 with 32 bytes of data:\n"
        "Reply from fd00::1: time<1ms \nReply from fd00::1: time=3ms \nRequest timed out.\n"
    )
    assert ([one.rtt_ms for one in read.replies], read.lost) == ([1.0, 3.0], 1)


@pytest.mark.parametrize("masked", ["x.x.x.x", "***", "[redacted]", "<server> (<address>)"])
def test_a_masked_address_is_no_obstacle(masked: str) -> None:
    lines = [f"64 bytes from {masked}: icmp_seq={seq} ttl=57 time=20.5 ms" for seq in (7, 8, 10)]
    read = ping.read("\n".join(lines))
    assert (read.sent, read.lost) == (4, 1)
    if " " not in masked:
        assert len(ping.read(f"Reply from {masked}: bytes=32 time=17ms TTL=57").replies) == 1


def test_a_late_answer_to_a_broadcast_begins_no_run() -> None:
    text = "PING 192.0.2.255 (192.0.2.255): 56 data bytes\n" + "".join(
        f"64 bytes from 192.0.2.{host}: icmp_seq={seq} ttl=64 time=1.5 ms\n"
        for host, seq in ((1, 0), (2, 0), (1, 1), (3, 0))
    )
    assert [one.duplicate for one in ping.read(text).replies] == [False, True, False, True]


def test_the_counts_of_cisco_are_read() -> None:
    read = ping.read(
        "Sending 5, 100-byte ICMP Echos to 192.0.2.1, timeout is 2 seconds:\n!!.!!\n"
        "Success rate is 80 percent (4/5), round-trip min/avg/max = 28/30/32 ms\n"
    )
    assert (read.sent, read.lost) == (5, 1)
    assert read.document()["rtt_ms"] == {"min": 28.0, "mean": 30.0, "max": 32.0}


def test_a_ping_that_did_not_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text("ping: host.example: Name or service not known\n")
    with pytest.raises(InputError, match=r"ping sent nothing: host\.example: Name or service"):
        diagnose(str(file))
