"""The control connection of a measurement: tokens, proofs, authenticated lines."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath.errors import AirpathError, InputError
from airpath.measure import control
from airpath.measure.control import Channel, EndedError, Greeting, ProtocolError, RefusedError

TOKEN = "a-token-for-tests-only"
KEY = control.session_key(TOKEN, b"n" * 16, b"f" * 16)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel, socket.socket]]:
    """A near and a far channel, and the far one's socket."""
    near, far = pair()
    channels = Channel(near, KEY, "near"), Channel(far, KEY, "far")
    yield (*channels, far)
    for channel in channels:
        channel.close()


# --- Tokens -----------------------------------------------------------------------------------


def test_a_new_token_has_128_bits_and_can_be_read_again(tmp_path: Path) -> None:
    tokens = {control.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {26}
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"{min(tokens)}\n")
    assert control.read_token(path) == min(tokens)


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (TOKEN, 0o604, "other users can read or change token file"),
        (TOKEN, 0o640, "other users can read or change token file"),
        (TOKEN, 0o620, "other users can read or change token file"),
        ("", 0o600, "is empty"),
        (" \n", 0o600, "is empty"),
        ("short", 0o600, "does not contain a token"),
        (f"{TOKEN} {TOKEN}", 0o600, "does not contain a token"),
        ("ä" * 20, 0o600, "does not contain a token"),
        ("x" * 300, 0o600, "does not contain a token"),
        ("x" * 2000, 0o600, "is larger than 1024 bytes"),
    ],
)
def test_what_is_no_token_file_is_refused(
    tmp_path: Path, content: str, mode: int, message: str
) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(InputError, match=message):
        control.read_token(path)


def test_the_group_may_read_a_token_that_somebody_else_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with systemd's LoadCredential and Kubernetes' fsGroup."""
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o440)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert control.read_token(path) == TOKEN


@pytest.mark.parametrize("name", [".", "nothing"])
def test_a_token_file_that_is_none_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot read token file"):
        control.read_token(tmp_path / name)


# --- Before the proof -------------------------------------------------------------------------


def greeted(token: str = TOKEN) -> tuple[Greeting, bytes]:
    """A greeting after the first line, and the near end's nonce."""
    greeting, near = Greeting(TOKEN), b"n" * 16
    answer = json.loads(greeting.feed(control.hello_line(near)))
    key = control.session_key(token, near, bytes.fromhex(answer["nonce"]))
    return greeting, json.dumps({"proof": key.proof("near")}).encode() + b"\n"


def test_both_prove_that_they_know_the_token() -> None:
    greeting, proof = greeted()
    answer = json.loads(greeting.feed(proof[:10]) + greeting.feed(proof[10:] + b"rest"))
    assert greeting.key is not None
    assert greeting.key.proves("far", answer["proof"])
    assert not greeting.key.proves("near", answer["proof"])
    assert greeting.rest == b"rest"


def test_a_wrong_token_is_refused_with_fewer_bytes_than_arrived() -> None:
    greeting, proof = greeted("another-token-altogether")
    with pytest.raises(control.WrongProofError) as caught:
        greeting.feed(proof)
    assert json.loads(greeting.farewell(caught.value)) == {"error": "wrong token"}
    assert greeting.sent <= greeting.received
    assert greeting.key is None


def test_the_far_ends_own_proof_proves_nothing() -> None:
    """Reflection: the proofs of the two ends differ."""
    greeting, near = Greeting(TOKEN), b"n" * 16
    answer = json.loads(greeting.feed(control.hello_line(near)))
    key = control.session_key(TOKEN, near, bytes.fromhex(answer["nonce"]))
    with pytest.raises(control.WrongProofError):
        greeting.feed(json.dumps({"proof": key.proof("far")}).encode() + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1",
        b"",
        b"{}",
        b"[" * 1000,
        b"null",
        b"\xff\xfe\x00",
        b'{"airpath-measure":1}',
        b'{"airpath-measure":true,"nonce":"' + b"0" * 32 + b'"}',
        b'{"airpath-measure":1,"nonce":"' + b"g" * 32 + b'"}',
        b'{"airpath-measure":1,"nonce":"' + b"0" * 32 + b'"}',  # Shorter than the answer.
        b'{"airpath-measure":1,"session":"0","phase":0,"stream":0,"proof":"0"}',
        b'{"airpath-measure":1,"session":"' + b"0" * 16 + b'","phase":-1,"stream":0}',
        b'{"airpath-measure":NaN}',
        b'{"airpath-measure":' + b"9" * 900 + b"}",
        b"x" * 1024,
    ],
)
def test_first_lines_that_are_refused_get_no_word(line: bytes) -> None:
    greeting = Greeting(TOKEN)
    with pytest.raises(RefusedError) as caught:
        greeting.feed(line + b"\n")
    assert greeting.farewell(caught.value) == b"" or b"version" in str(caught.value.answer).encode()
    assert greeting.sent <= greeting.received
    assert (greeting.key, greeting.join) == (None, None)


@pytest.mark.parametrize("pad", [0, 20, 40, 100])
def test_another_version_is_named_to_who_sent_as_many_bytes(pad: int) -> None:
    greeting = Greeting(TOKEN)
    with pytest.raises(RefusedError) as caught:
        greeting.feed(b'{"airpath-measure":2}' + b" " * pad + b"\n")
    farewell = greeting.farewell(caught.value)
    assert (b"version 1" in farewell) == (pad >= 40)
    assert greeting.sent == len(farewell) <= greeting.received


@pytest.mark.parametrize("proof", ["", "\ud800" * 64, "0" * 64, 7, None])
def test_proofs_that_are_refused(proof: Any) -> None:
    greeting, _ = greeted()
    with pytest.raises(RefusedError):
        greeting.feed(json.dumps({"proof": proof}).encode() + b"\n")
    assert greeting.key is None


def test_a_line_without_an_end_is_bounded() -> None:
    greeting = Greeting(TOKEN)
    assert greeting.feed(b"x" * 1023) == b""
    with pytest.raises(RefusedError, match="longer than 1024"):
        greeting.feed(b"x")


def test_random_lines_never_prove_anything() -> None:
    chance = random.Random(5212)
    genuine = control.hello_line(b"n" * 16), greeted()[1]
    for _ in range(3000):
        greeting = Greeting(TOKEN)
        try:
            for line in genuine:
                broken = bytearray(line)
                for _ in range(chance.randrange(4)):
                    broken[chance.randrange(len(broken))] = chance.randrange(256)
                greeting.feed(bytes(broken))
        except RefusedError as error:
            greeting.farewell(error)
        assert greeting.key is None
        assert greeting.sent <= greeting.received


# --- After the proof --------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 100, 3_000_000])
def test_messages_arrive(ends: tuple[Channel, Channel, socket.socket], length: int) -> None:
    near, far, _ = ends
    message = {"text": "x" * length, "list": [1, 2.5, None, "ü"]}
    sender = threading.Thread(target=near.send, args=(message,))
    sender.start()
    assert far.receive(5.0) == message
    far.send({"answer": 1})
    assert near.receive(5.0) == {"answer": 1}
    sender.join()


def test_silence_can_be_waited_out_and_an_end_is_told_apart(
    ends: tuple[Channel, Channel, socket.socket],
) -> None:
    near, far, _ = ends
    with pytest.raises(control.SilenceError):
        far.receive(0.02)
    near.send({"a": 1})
    assert far.receive(5.0) == {"a": 1}
    near.close()
    with pytest.raises(EndedError):
        far.receive(5.0)


def lines_of(role: control.Role, messages: list[dict[str, Any]]) -> list[bytes]:
    """The bytes that a channel sends for messages."""
    one, other = pair()
    channel = Channel(one, KEY, role)
    for message in messages:
        channel.send(message)
    channel.close()
    with other, other.makefile("rb") as file:
        return file.readlines()


@pytest.mark.parametrize(
    "what", ["repeated", "left out", "swapped", "changed", "reflected", "bare"]
)
def test_lines_that_somebody_touched_end_the_session(what: str) -> None:
    lines = lines_of("near", [{"n": 0}, {"n": 1}, {"n": 2}])
    sent = {
        "repeated": [lines[0], lines[0]],
        "left out": [lines[0], lines[2]],
        "swapped": [lines[1], lines[0]],
        "changed": [lines[0].replace(b'"n":0', b'"n":7')],
        "reflected": lines_of("far", [{"n": 0}]),
        "bare": [b'{"n":0}\n'],
    }[what]
    near, far = pair()
    channel = Channel(far, KEY, "far")
    near.sendall(b"".join(sent))
    for _ in sent[1:]:
        if what != "swapped":
            channel.receive(5.0)
    with pytest.raises(ProtocolError, match="MAC"):
        channel.receive(5.0)
    near.close()
    channel.close()


def test_lines_and_compressed_lines_are_bounded() -> None:
    near, far = pair()
    sender, receiver = Channel(near, KEY, "near"), Channel(far, KEY, "far", most_line=1 << 16)
    sender.send({"zeros": "0" * 1_000_000})
    with pytest.raises(ProtocolError, match="compressed line contains more than 65536"):
        receiver.receive(5.0)
    with pytest.raises(ProtocolError, match="at most"):
        sender.send({"large": os.urandom(4 << 20).hex()})
    near.setblocking(False)
    for _ in range(2):
        near.send(b"x" * 40_000)
    with pytest.raises(ProtocolError, match="longer than 65536"):
        receiver.receive(5.0)
    sender.close()
    receiver.close()


def test_close_ends_a_thread_that_waits() -> None:
    near, far = pair()
    channel = Channel(far, KEY, "far")
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(EndedError):
            channel.receive(30.0)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    channel.close()
    assert ended.wait(5.0)
    thread.join()
    near.close()


# --- The near end -----------------------------------------------------------------------------


def answering(*answers: bytes) -> tuple[str, int]:
    """Something that answers each line with these bytes, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        with sock, listener, sock.makefile("rb") as lines:
            for answer in answers:
                lines.readline()
                sock.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    host, port = listener.getsockname()
    return host, port


HELLO = json.dumps({"airpath-measure": 1, "nonce": "00" * 16}).encode() + b"\n"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n"], "its reply is not recognised"),
        ([b"220 mail\x1b[31m\n"], "its reply is not recognised"),
        ([b'{"airpath-measure":2,"nonce":"00"}\n'], "is not `airpath serve` of version 1"),
        (
            [HELLO, b'{"error":"wrong \\u001b[31mtoken"}\n'],
            r"refused the connection: wrong \\u001b",
        ),
        ([HELLO, b'{"proof":"' + b"0" * 64 + b'"}\n'], "did not prove that it knows the token"),
        ([HELLO, b'{"proof":7}\n'], "did not prove that it knows the token"),
        ([HELLO], "closed the connection"),
        ([b"x" * 5000], "is longer than 1024 bytes"),
    ],
)
def test_what_does_not_know_the_token_is_no_far_end(answers: list[bytes], message: str) -> None:
    host, port = answering(*answers)
    with pytest.raises(ProtocolError, match=message):
        control.connect(host, port, TOKEN, 5.0)


def test_nobody_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(AirpathError, match="Connection refused; is `airpath serve` running there"):
        control.connect("127.0.0.1", port, TOKEN, 2.0)
