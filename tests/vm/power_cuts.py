"""Power cuts: a database lives in the virtual machine, the power goes, and what the next life finds is compared with the oracle.

The oracle is here, outside of the machine: the numbers of the writes that were acknowledged, received through an I/O port. The
guest reports each acknowledged write before it begins the next one of the same thread, and the report is in a socket of this
process before the guest goes on. So at most one write of each thread is pending at a cut. power_cut_client.cc is the other half.

Kinds of cuts:
  kill   QEMU is killed. The next life begins with the guest's memory as it was before anything was mounted
  boot   QEMU is killed. The next life begins with the firmware
  reset  the machine's reset line; the guest boots again in the same QEMU process
"""

import random
import select
import time

from machine import Failure
from setups import check_dax

THREADS = 2
MAX_DATABASE_BYTES = 192 << 20
MAX_LIVES = 12  # of a database
MIN_WRITES = 150  # in a life where regions do not grow
MAX_HUNG_RESETS = 2
SECONDS = 300  # the longest that a single step may take


class Oracle:
    def __init__(self, seed):
        self.seed = seed
        self.acknowledged = [0] * THREADS
        self.lost = set()  # (thread, write)

    def take_ack(self, thread, write):
        if write <= self.acknowledged[thread]:
            raise Failure(f"write {write} of thread {thread} was acknowledged twice")
        self.acknowledged[thread] = write

    def take_found(self, thread, write):
        pending = self.acknowledged[thread] + 1
        if write != pending:
            self.lost.add((thread, pending))
        self.acknowledged[thread] = pending

    def arguments(self):
        acknowledged = " ".join(f"--acknowledged={write}" for write in self.acknowledged)
        return f"--seed={self.seed} {acknowledged} " + " ".join(f"--lost={thread}:{write}" for thread, write in sorted(self.lost))


class PowerCuts:
    """`environment`: NAME=value … for the programs in the guest."""

    def __init__(self, machine, setup, seed, log, environment=""):
        self.machine = machine
        self.setup = setup
        self.random = random.Random(seed)
        self.log = log
        self.environment = environment
        self.kind = "kill"
        self.oracle = None
        self.size = 0
        self.lives_of_database = 0
        self.destroy = False
        self.counts = {"lives": 0, "growths": 0, "acknowledged": 0, "databases": 0, "cuts while opening": 0, "checks": 0,
                       "kill": 0, "boot": 0, "reset": 0, "hung resets": 0}

    # ---- Campaign

    def run(self, cuts):
        """So many lives, in each of which a region grows, and one more that finds what they left."""
        self.begin()
        while self.counts["lives"] < cuts:
            if self.size > MAX_DATABASE_BYTES or self.lives_of_database >= MAX_LIVES:
                self._begin_database()
            elif self.lives_of_database > 0 and self.random.randrange(8) == 0:
                self._cut_while_opening()
            self._live()
        self.verify()

    def begin(self):
        """Fresh file systems, and a database of which nothing is there yet."""
        self.machine.close()
        self.kind = "kill" if self.setup.state else "boot"
        if self.setup.state:
            self.machine.restore(self.setup.state)
        self._start()
        self.setup.make_file_systems(self.machine)
        self._mount()
        self._begin_database()

    def _begin_database(self):
        self.destroy = self.counts["databases"] > 0
        self.lives_of_database = 0
        self.oracle = Oracle(self.random.randrange(1 << 48))
        self.counts["databases"] += 1

    def _live(self):
        if self.counts["lives"] % 10 == 5 and self.lives_of_database > 0:
            self._check()
        started = time.monotonic()
        self.live_until("grown" if self.setup.grows else "written")
        self.lives_of_database += 1
        self._drain(time.monotonic() + self.random.random() ** 2 * 1.5)
        self._next_cut()
        self.counts["lives"] += 1
        self.log(f"{self.setup.name}: cut {self.counts['lives']} ({self.kind}), {self.size >> 20} MiB, "
                 f"writes {self.oracle.acknowledged}, {time.monotonic() - started:.1f} s")
        self.restart()

    def _cut_while_opening(self):
        self._start_client()
        self._drain(time.monotonic() + self.random.random() * 2)
        self._next_cut()
        self.counts["cuts while opening"] += 1
        self.restart()

    def live_until(self, wanted):
        """Runs the client, which verifies what it finds, until it has reported `wanted`. With "grown": until a region has grown.
        With "written": until it has written for some time."""
        self._start_client()
        kinds = set()
        first = None
        before = self.counts["acknowledged"]
        while wanted not in kinds:
            kind, _ = self._report()
            kinds.add(kind)
            if self.counts["acknowledged"] - before >= MIN_WRITES:
                kinds.add("written")
            if kind == "size":
                first = first or self.size
                if self.size > first:
                    kinds.add("grown")
                    self.counts["growths"] += 1
            elif kind == "ended" and wanted in ("grown", "written"):
                raise Failure(f"NoSpace before a region has {wanted}")

    def verify(self):
        self._check()
        self._start_client("--max_writes=1")
        while self._report()[0] != "ended":
            pass
        self.cut("kill")

    # ---- Steps

    def _start(self):
        self.machine.close()
        if self.kind == "boot":
            self.machine.boot()
        else:
            self.machine.resume(self.setup.state)
        self.setup.prepare(self.machine)

    def _mount(self):
        self.setup.mount_file_systems(self.machine)
        check_dax(self.machine, self.setup)
        self.machine.run("mountpoint -q /tools || mount -o ro /dev/vda /tools")

    def _next_cut(self):
        number = self.counts["lives"] + self.counts["cuts while opening"]
        self.cut({1: "reset", 3: "boot"}.get(number % 10, "kill") if self.setup.state else "boot")

    def cut(self, kind):
        # QEMU itself may hang in a reset of two busy CPUs. Then the cut is a kill.
        if kind == "reset" and not self.machine.reset():
            self.counts["hung resets"] += 1
            if self.counts["hung resets"] > MAX_HUNG_RESETS:
                raise Failure(f"QEMU hung in {self.counts['hung resets']} resets")
            kind = "kill"
        self.kind = kind
        self.counts[kind] += 1
        if kind != "reset":
            self.machine.cut()
            self._drain(None)

    def restart(self):
        if self.kind == "reset":
            self.machine.await_ready()
            self._drain(time.monotonic())
            self.setup.prepare(self.machine)
        else:
            self._start()
        self._mount()

    def _check(self):
        regions = " ".join(f"--region-path={path}" for path in self.setup.regions)
        code, output = self.machine.try_run(
            f"LD_LIBRARY_PATH=/tools/lib {self.environment} /tools/braiddb check {regions} {self.setup.database}", SECONDS)
        if code != 0:
            raise Failure(f"braiddb check ends with {code}:\n{output}")
        self.counts["checks"] += 1

    def _start_client(self, more=""):
        regions = " ".join(f"--region_path={path}" for path in self.setup.regions)
        more += " --destroy" if self.destroy else ""
        command = (f"LD_LIBRARY_PATH=/tools/lib {self.environment} /tools/power_cut_client --db={self.setup.database} "
                   f"{regions} {self.oracle.arguments()} {more}")
        self.destroy = False
        self.size = 0
        self.machine.run(f"({command} >/tmp/client 2>&1; LD_LIBRARY_PATH=/tools/lib /tools/power_cut_client --say=\"ended $?\") &")

    # ---- Reports of the client

    def _report(self):
        kind = None
        while kind is None:
            line = self.machine.line("reports", SECONDS)
            if line is None:
                raise Failure("QEMU has ended by itself")
            kind, values = self._take(line)
        return kind, values

    def _take(self, line):
        """What the line says. (None, []): it is empty, or a part that a killed client has left."""
        if not line.endswith(";"):
            return None, []
        kind, _, rest = line[:-1].partition(" ")
        if kind == "violation":
            raise Failure(f"violation: {rest}")
        values = [int(word) for word in rest.split()]
        if kind == "ended" and values[0] != 0:
            output = self.machine.try_run("cat /tmp/client")[1] if self.machine.process is not None else ""
            raise Failure(f"power_cut_client ends with {values[0]}: {output}")
        if kind == "ack":
            self.oracle.take_ack(*values)
            self.counts["acknowledged"] += 1
        elif kind == "found":
            self.oracle.take_found(*values)
        elif kind == "size":
            self.size = values[0]
        return kind, values

    def _drain(self, end):
        """Takes what is reported until `end`; None: until the guest has gone. A line without an end was not acknowledged."""
        while True:
            if end is not None and b"\n" not in self.machine.unread["reports"]:
                seconds = max(0.0, end - time.monotonic())
                if not select.select([self.machine.sockets["reports"]], [], [], seconds)[0]:
                    return
            line = self.machine.line("reports", SECONDS)
            if line is None:
                return
            self._take(line)
            if end is not None and time.monotonic() > end and not self.machine.unread["reports"]:
                return
