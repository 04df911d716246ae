"""A Slurm cluster of one node in a temporary folder, for tests that run as root. The system's own Slurm is not used."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
SECONDS_TO_START = 60


def reason_to_skip():
    """Returns why Slurm cannot be started here, or None."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        return f"needs Debian's slurm-wlm and munge; not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "Slurm's daemons need root"


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


class OneNodeSlurm:
    """Partitions: `low`, whose jobs are requeued for jobs of `high`."""

    def __init__(self, n_processors):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kvscope-slurm-"))
        self.processes = []
        host = socket.gethostname().split(".")[0]
        key, self.munge_socket = self.folder / "munge.key", self.folder / "munge.socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        # munged requires folders that only root can write.
        self.folder.chmod(0o755)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        configuration = self.folder / "slurm.conf"
        configuration.write_text(f"""
ClusterName=kvscope
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.munge_socket},cred_expire=5
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=10
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={n_processors} CoresPerSocket={n_processors} RealMemory=1000 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES PriorityTier=1 State=UP MaxTime=INFINITE
PartitionName=high Nodes={host} PriorityTier=2 PreemptMode=OFF State=UP MaxTime=INFINITE
""")
        self.variables = {"SLURM_CONF": str(configuration), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        try:
            self.start("munged", "--foreground", f"--key-file={key}", f"--socket={self.munge_socket}",
                       f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                       f"--seed-file={self.folder}/munge.seed", "--force")
            self.wait_until("munged answers", self.munge_socket.exists)
            self.start("slurmctld", "-D", "-c")
            self.start("slurmd", "-D", "-N", host)
            self.wait_until("the node is idle", lambda: self.run("sinfo", "-h", "-o", "%T").split()[:1] == ["idle"])
        except BaseException:
            self.stop()
            raise

    def start(self, *command):
        log = open(self.folder / f"{command[0]}.output", "wb")
        self.processes.append(subprocess.Popen(command, env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log))
        log.close()

    def run(self, *command):
        """Returns the output of one of Slurm's programs, with its messages."""
        return subprocess.run(command, env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False).stdout

    def wait_until(self, what, condition, seconds=SECONDS_TO_START):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                logs = "".join(f"\n{path.name}:\n{path.read_text(errors='replace')[-2000:]}"
                               for path in self.folder.glob("*.log"))
                raise AssertionError(f"waited {seconds} s until {what}{logs}")
            time.sleep(0.05)

    def stop(self):
        """Stops the daemons and all jobs."""
        if len(self.processes) == 3:
            self.run("scancel", "--user=root")
            end = time.monotonic() + 20
            while self.run("squeue", "-h").strip() and time.monotonic() < end:
                time.sleep(0.1)
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
