# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For tests that run within scripts/test-hosts.py, as its command on the first host."""
import os
import shutil
import subprocess
import sys

HOSTS = os.environ["DIOMP_TEST_HOSTS"].split(",")
RSH = os.environ["DIOMP_TEST_RSH"]
SCRIPT = os.environ["DIOMP_TEST_HOSTS_SCRIPT"]
# For a command that is not what is tested.
LIMIT_S = 20
SKIPPED = 77


def here(*words, limit_s=LIMIT_S, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=limit_s, **options)


def on(host, command, limit_s=LIMIT_S, **options):
    """A shell command on a host; the result of subprocess.run."""
    return here(RSH, host, command, limit_s=limit_s, **options)


def _fault(*words):
    done = here(sys.executable, SCRIPT, *words)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


def link(host, state):
    """'down' or 'up': the host's interface."""
    return _fault("link", host, state)


def cable(host, state):
    """'out' or 'in': the host's programs see silence, not errors."""
    return _fault("cable", host, state)


def netem(host, loss_percent=0, delay_ms=0, rate=0):
    """For what leaves the host; `rate` in bytes per second, both ways. Without arguments: a good wire."""
    return _fault("netem", host, "--loss", str(loss_percent), "--delay", str(delay_ms), "--rate", str(rate))


def share_address():
    """Gives all hosts an interface with the address 172.17.0.1, as a bridge of containers on each has."""
    for host in HOSTS:
        status, output = console(host, "ip link add docker0 type veth peer name container && "
                                       "ip addr add 172.17.0.1/16 dev docker0 && "
                                       "ip link set docker0 up && ip link set container up")
        if status != 0:
            raise RuntimeError(f"{host}: {output}")


def console(host, command):
    """(status, output) of a shell command on a host, by a way that needs no network."""
    done = here(sys.executable, SCRIPT, "console", host, command)
    return done.returncode, done.stdout


def processes(host, text):
    """{process number on that host} of the command lines that hold `text`"""
    # The brackets keep the shell that runs this from finding itself.
    return {int(word) for word in console(host, f"pgrep -f '[{text[0]}]{text[1:]}'")[1].split()}


def send_signal(host, name, pids):
    status, output = console(host, f"kill -{name} " + " ".join(map(str, pids)))
    if status != 0:
        raise RuntimeError(output)


# ---- Jobs

def skip_unless_there(launcher):
    """Ends the test as skipped where the launcher is not installed, or not known to this build."""
    reason = None
    if launcher in ("mpirun", "srun-pmix") and os.environ["DIOMP_TEST_PMIX"] != "ON":
        reason = "built without PMIx"
    elif launcher == "hydra" and not shutil.which("mpiexec.hydra"):
        reason = "mpiexec.hydra is missing (Debian: mpich)"
    elif launcher == "mpirun" and not os.path.exists(os.environ["DIOMP_TEST_MPIRUN"]):
        reason = "Open MPI's mpirun is missing (Debian: openmpi-bin)"
    elif launcher.startswith("srun"):
        import slurm  # only here: it uses this module
        reason = slurm.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)


def job(launcher, program, per_host=1, settings=None):
    """The command line that starts `program` (a list of words) with `per_host` ranks on every host."""
    settings = settings or {}
    words = {"diomp-run": _diomp_run, "mpirun": _mpirun, "hydra": _hydra,
             "srun-pmix": _srun, "srun-pmi2": _srun}[launcher]
    return words(launcher, per_host, settings) + program


def _slots(per_host):
    return ",".join(f"{name}:{per_host}" for name in HOSTS)


def _exports(settings):
    return [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]


def _diomp_run(_, per_host, settings):
    return [os.environ["DIOMP_TEST_RUN"], "-n", str(per_host * len(HOSTS)), "--hosts", _slots(per_host), "--rsh", RSH,
            "--bind-to", "none", *_exports(settings), "--"]


def _mpirun(_, per_host, settings):
    return [os.environ["DIOMP_TEST_MPIRUN"], "--allow-run-as-root", "--bind-to", "none",
            "-n", str(per_host * len(HOSTS)), "--host", _slots(per_host), "--mca", "plm_rsh_agent", RSH,
            "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", *_exports(settings)]


def _hydra(_, per_host, settings):
    exports = [word for name, value in settings.items() for word in ("-genv", name, value)]
    return ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", RSH, "-iface", "eth0", "-bind-to", "none",
            "-hosts", _slots(per_host), "-n", str(per_host * len(HOSTS)), *exports]


def _srun(launcher, per_host, settings):
    """Starts Slurm for the first job."""
    import slurm
    if not _slurm:
        _slurm.append(slurm.start(cores=16))
    return ["env", f"SLURM_CONF={_slurm[0]}", *(f"{name}={value}" for name, value in settings.items()),
            "srun", f"--mpi={launcher.split('-')[1]}", "--kill-on-bad-exit=1", f"--nodes={len(HOSTS)}",
            f"--ntasks-per-node={per_host}", "--distribution=block"]


_slurm = []  # the configuration of the one that has been started
