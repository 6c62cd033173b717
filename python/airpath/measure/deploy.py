"""Units that run `airpath serve` with few rights: for systemd, Docker and Kubernetes.

Each reads the token from a file. None needs root, and none can write anywhere.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from airpath.measure.control import new_token
from airpath.measure.serve import MOST_STREAMS

Kind: TypeAlias = Literal["systemd", "docker", "kubernetes"]

_TOKEN = "/run/secrets/airpath/token"  # noqa: S105 - a path
_NOBODY = 65534


@dataclass(frozen=True)
class Unit:
    """Command that a unit runs."""

    options: Sequence[str]
    """Options of `airpath serve` besides port and token."""
    port: int
    sessions: int
    token: str | None = None
    """For Kubernetes' Secret; None: a new one."""

    @property
    def tasks(self) -> int:
        """The most threads that it needs."""
        return 32 + self.sessions * (MOST_STREAMS + 4)

    def words(self, token: str = _TOKEN) -> list[str]:
        """Return the arguments of airpath."""
        return ["serve", "--port", str(self.port), "--token-file", token, *self.options]


def printed(kind: Kind, unit: Unit) -> str:
    """Return a unit as text, with how to install it in its comments."""
    return {"systemd": _systemd, "docker": _docker, "kubernetes": _kubernetes}[kind](unit)


def _systemd(unit: Unit) -> str:
    port = unit.port
    program = shutil.which("airpath") or "/usr/local/bin/airpath"
    # systemd would expand these characters (systemd.service(5), systemd.unit(5)).
    words = [_quoted(word) for word in unit.words("")]
    words[words.index('""')] = "${CREDENTIALS_DIRECTORY}/token"
    rights = "CAP_NET_RAW" + (" CAP_NET_BIND_SERVICE" if port < 1024 else "")
    home = "read-only" if re.match(r"/(home|root|run/user)/", program) else "yes"
    return f"""\
# The far end of `airpath measure`.
# 1. Save this as /etc/systemd/system/airpath-serve.service.
# 2. Save a token that only root can read:
#      install -d -m 700 /etc/airpath
#      (umask 077; head -c 16 /dev/urandom | base32 | tr -d = > /etc/airpath/token)
# 3. systemctl daemon-reload && systemctl enable --now airpath-serve
# Open TCP and UDP port {port} in the firewall. Needs systemd 247 or later.
[Unit]
Description=Far end of airpath measure
Documentation=man:systemd.exec(5)
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={_quoted(program)} {" ".join(words)}
LoadCredential=token:/etc/airpath/token
# 143: ended by SIGTERM.
SuccessExitStatus=143
Restart=on-failure
RestartSec=5
DynamicUser=yes
UMask=0077
NoNewPrivileges=yes
# Captures of its own streams; airpath gives this up once its sockets are open.
CapabilityBoundingSet={rights}
AmbientCapabilities={rights}
ProtectSystem=strict
ProtectHome={home}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
PrivateDevices=yes
PrivateTmp=yes
PrivateIPC=yes
RemoveIPC=yes
KeyringMode=private
RestrictAddressFamilies=AF_INET AF_INET6 AF_PACKET
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
LimitNOFILE=8192
TasksMax={unit.tasks}
MemoryMax=1G

[Install]
WantedBy=multi-user.target
"""


def _quoted(word: str) -> str:
    """A word of a command line of systemd."""
    escaped = word.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./$-]+", escaped):
        return escaped
    return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _docker(unit: Unit) -> str:
    port = unit.port
    command = json.dumps(["airpath", *unit.words()])
    bind = " --cap-add NET_BIND_SERVICE" if port < 1024 else ""
    return f"""\
# The far end of `airpath measure`.
# 1. Save this as Dockerfile beside a wheel of airpath (`maturin build --release`), and build it:
#      docker build -t airpath-serve .
# 2. Save a token in the file token, which only you can read, and run as you (not as root):
#      (umask 077; head -c 16 /dev/urandom | base32 | tr -d = > token)
#      docker run --rm --init --network host --user "$(id -u):$(id -g)" --read-only \\
#        --cap-drop ALL{bind} --security-opt no-new-privileges \\
#        --pids-limit {unit.tasks} --memory 1g \\
#        --volume "$PWD/token:{_TOKEN}:ro" airpath-serve
# With --network host the path measured does not contain Docker's NAT and proxy.
FROM python:3.12-slim
COPY airpath-*.whl /tmp/
RUN pip install --no-cache-dir /tmp/airpath-*.whl && rm /tmp/airpath-*.whl
USER {_NOBODY}:{_NOBODY}
EXPOSE {port}/tcp {port}/udp
ENTRYPOINT {command}
"""


def _kubernetes(unit: Unit) -> str:
    secret = base64.b64encode((unit.token or new_token()).encode()).decode()
    return f"""\
# The far end of `airpath measure`, on the node of a UPF: what is measured is the path of the UPF's
# subscribers, without the Internet. Change image and the labels of the UPF, then:
#   kubectl apply -f FILE
# The token, for the near end's --token-file:
#   (umask 077; kubectl get secret airpath-token -o jsonpath='{{.data.token}}' | base64 -d > token)
apiVersion: v1
kind: Secret
metadata:
  name: airpath-token
  labels: {{app.kubernetes.io/name: airpath-serve}}
type: Opaque
data:
  token: {json.dumps(secret)}
---
{_deployment(unit)}---
{_service(unit.port)}"""


def _deployment(unit: Unit) -> str:
    port = unit.port
    words = json.dumps(["airpath", *unit.words()])
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: airpath-serve
  labels: {{app.kubernetes.io/name: airpath-serve}}
spec:
  replicas: 1
  strategy: {{type: Recreate}}
  selector:
    matchLabels: {{app.kubernetes.io/name: airpath-serve}}
  template:
    metadata:
      labels: {{app.kubernetes.io/name: airpath-serve}}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      # hostNetwork: true  # for a UPF whose N6 interface is in the node's own namespace
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels: {{app.kubernetes.io/name: upf}}
      securityContext:
        runAsNonRoot: true
        runAsUser: {_NOBODY}
        runAsGroup: {_NOBODY}
        fsGroup: {_NOBODY}
        seccompProfile: {{type: RuntimeDefault}}
      containers:
        - name: airpath-serve
          image: airpath-serve:latest
          imagePullPolicy: IfNotPresent
          command: {words}
          ports:
            - {{name: tcp, containerPort: {port}, protocol: TCP}}
            - {{name: udp, containerPort: {port}, protocol: UDP}}
          readinessProbe:
            tcpSocket: {{port: tcp}}
            periodSeconds: 20
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
          resources:
            requests: {{cpu: "1", memory: 256Mi}}
            limits: {{memory: 1Gi}}
          volumeMounts:
            - {{name: token, mountPath: {_TOKEN.rpartition("/")[0]}, readOnly: true}}
      volumes:
        - name: token
          secret:
            secretName: airpath-token
            defaultMode: 0440
"""


def _service(port: int) -> str:
    return f"""\
apiVersion: v1
kind: Service
metadata:
  name: airpath-serve
  labels: {{app.kubernetes.io/name: airpath-serve}}
spec:
  type: LoadBalancer
  # The far end sees the near end's own address, and no second hop distorts the measurement.
  externalTrafficPolicy: Local
  selector: {{app.kubernetes.io/name: airpath-serve}}
  ports:
    - {{name: tcp, port: {port}, targetPort: tcp, protocol: TCP}}
    - {{name: udp, port: {port}, targetPort: udp, protocol: UDP}}
"""
