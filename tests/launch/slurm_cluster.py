# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Slurm of one's own: slurmctld and slurmd on this machine, in a folder, gone afterwards.

No munge and no system files: Slurm's plugins for authentication without any, on the loopback interface.
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import processes

START_LIMIT_S = 30
STOP_LIMIT_S = 10
CONFIGURATION = """\
ClusterName=diomp-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
FirstJobId={first_job}
TmpFS={folder}
SlurmdParameters=config_overrides
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=5 State=UP
"""


def why_not():
    """What keeps a Slurm from being started here; None if nothing does."""
    if os.geteuid() != 0:
        return "slurmd has to run as root"
    for program in ("slurmctld", "slurmd", "srun", "sinfo"):
        if find(program) is None:
            return f"{program} is not installed"
    return None


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    """Free now; all open at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class slurm_cluster:
    """with slurm_cluster() as cluster: subprocess.run(["srun", ...], env=cluster.environment)"""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="diomp-slurm-")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI"))}
        self.environment["SLURM_CONF"] = os.path.join(self.folder, "slurm.conf")
        self.daemons = []
        self.resident = set()  # processes of an idle cluster

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Another process may take a free port before the daemon does: then once more with others."""
        for attempts_left in (3, 2, 1, 0):
            try:
                return self.start_once()
            except RuntimeError as problem:
                if "Address already in use" not in str(problem) or not attempts_left:
                    raise
            for daemon in self.daemons:
                daemon.kill()
                daemon.wait()
            self.daemons = []

    def start_once(self):
        host = os.uname().nodename.split(".")[0]
        controller_port, node_port = free_ports(2)
        for name in ("state", "spool"):
            shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
            os.mkdir(os.path.join(self.folder, name))
        configuration = self.environment["SLURM_CONF"]
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=host, folder=self.folder, controller_port=controller_port,
                                            node_port=node_port,
                                            first_job=random.randint(1, 1 << 24)))
        for words in (["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", host]):
            with open(os.path.join(self.folder, words[0] + ".out"), "wb") as out:
                self.daemons.append(subprocess.Popen(
                    [find(words[0]), *words[1:], "-f", configuration], env=self.environment, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=subprocess.STDOUT, start_new_session=True))
        deadline = time.monotonic() + START_LIMIT_S
        while self.node_state() != "idle":
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError("Slurm did not start:\n" + self.logs())
            time.sleep(0.1)  # between questions; the answer decides
        self.resident = set(self.processes())

    def node_state(self):
        asked = subprocess.run(["sinfo", "-h", "-o", "%t"], env=self.environment, capture_output=True, text=True,
                               check=False, timeout=START_LIMIT_S)
        return asked.stdout.strip()

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".out", ".log")):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + file.read()[-4000:]
        return text

    def run(self, *words, limit_s=60, **variables):
        """Runs a command of this cluster's; its subprocess.CompletedProcess."""
        return subprocess.run(words, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=limit_s, check=False)

    def processes(self):
        """The daemons, and slurmd's step daemons and their tasks, which outlive it."""
        return processes.carrying("SLURM_CONF", self.environment["SLURM_CONF"])

    def stop(self):
        """Ends jobs in order, so that Slurm cleans up after them; then whatever is left."""
        if self.daemons and all(daemon.poll() is None for daemon in self.daemons):
            self.run("scancel", "--user=root")
            self.wait_until(lambda: not self.run("squeue", "-h").stdout.strip())
            self.wait_until(lambda: set(self.processes()) <= self.resident)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def wait_until(condition):
        """Not longer than is decent; what is left then is killed."""
        deadline = time.monotonic() + STOP_LIMIT_S
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.05)
