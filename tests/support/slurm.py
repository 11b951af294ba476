# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Slurm of their own for the test hosts: munged and slurmd on each, slurmctld on the first. It ends with the run."""
import atexit
import os
import shutil
import stat
import subprocess
import tempfile
import time

import hosts

PROGRAMS = ("srun", "sinfo", "slurmctld", "slurmd", "munged")
# Started as root in places that an ordinary PATH leaves out.
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
START_LIMIT_S = 20
# State goes to each host's /dev/shm; so does what plugins would put into /tmp, which the hosts share.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={first}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket=/dev/shm/munge/socket
StateSaveLocation=/dev/shm/slurmctld
SlurmdSpoolDir=/dev/shm/slurmd
SlurmctldPidFile=/dev/shm/slurmctld.pid
SlurmdPidFile=/dev/shm/slurmd.pid
TmpFS=/dev/shm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Without this, slurmd looks for a mounted cgroup file system, which the hosts have not.
CGROUP = "CgroupPlugin=cgroup/v1\n"
STAND_INS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
MUNGED = ("mkdir -p -m 755 /dev/shm/munge && cp {directory}/key /dev/shm/munge/key && chmod 400 /dev/shm/munge/key && "
          "munged --force --key-file=/dev/shm/munge/key --socket=/dev/shm/munge/socket --seed-file=/dev/shm/munge/seed "
          "--log-file=/dev/shm/munge/log --pid-file=/dev/shm/munge/pid")


def missing():
    """What is not installed, or None."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"{', '.join(absent)} missing (Debian: slurmctld, slurmd, slurm-client, munge)" if absent else None


def write(directory, name, content, mode=0o644):
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, mode)
    return path


def on(host, command):
    status, output = hosts.console(host, f"export PATH={PATH}; ({command}) </dev/null 2>&1")
    if status != 0:
        raise RuntimeError(f"{command} on {host}: {output}")


def describe_nodes(directory, cores, features, gpus):
    """The configuration's lines on the hosts. Devices that every system has stand for the GPUs: Slurm checks their files."""
    # Only that scheduler starts heterogeneous jobs.
    lines = ["SchedulerType=sched/builtin"]
    if features:
        lines = ["SchedulerType=sched/backfill", "SchedulerParameters=bf_interval=1"]
    if gpus:
        lines.append("GresTypes=gpu")
    for number, host in enumerate(hosts.HOSTS):
        feature = f" Feature={features[number]}" if features else ""
        lines.append(f"NodeName={host} CPUs={cores} State=UNKNOWN{feature}{f' Gres=gpu:{gpus}' if gpus else ''}")
    if gpus:
        write(directory, "gres.conf", "".join(f"Name=gpu File={device}\n" for device in STAND_INS[:gpus]))
    return "\n".join(lines)


def start(cores, features=(), gpus=0):
    """The path of the configuration, for the variable SLURM_CONF; on each host so many cores and GPUs (at most 4) as far as
    Slurm knows, and one of the features, in the order of the hosts."""
    directory = tempfile.mkdtemp(dir=os.getcwd(), prefix="slurm-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    write(directory, "key", os.urandom(128), 0o400)
    write(directory, "cgroup.conf", CGROUP)
    user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    configuration = write(directory, "slurm.conf", CONFIGURATION.format(
        first=hosts.HOSTS[0], user=user, nodes=describe_nodes(directory, cores, features, gpus)))
    for host in hosts.HOSTS:
        on(host, MUNGED.format(directory=directory))
    log = f"{directory}/$(hostname)"
    on(hosts.HOSTS[0], f"mkdir /dev/shm/slurmctld; SLURM_CONF={configuration} slurmctld -L {log}.controller.log")
    for host in hosts.HOSTS:
        on(host, f"mkdir /dev/shm/slurmd; SLURM_CONF={configuration} slurmd -N {host} -L {log}.log")
    wait_until_idle(configuration, directory)
    return configuration


def wait_until_idle(configuration, directory):
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        states = hosts.here("sinfo", "-h", "-N", "-o", "%T", env={**os.environ, "SLURM_CONF": configuration}).stdout
        if states.split() == ["idle"] * len(hosts.HOSTS):
            return
        if time.monotonic() > deadline:
            logs = hosts.here("/bin/sh", "-c", f"tail -n 20 {directory}/*.log").stdout
            raise RuntimeError(f"Slurm's nodes are not idle but {states!r}\n{logs}")
        time.sleep(0.05)
