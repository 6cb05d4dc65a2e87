"""The project's own tests on the file systems of the virtual machine, and a database on a nearly full file system."""

import time

from machine import Failure
from power_cuts import Oracle, PowerCuts
from setups import EXT4_DISK, check_dax

# Test program: arguments, and the longest time without KVM, in seconds. The tests put their files into /dev/shm, where the file
# system under test is mounted.
TESTS = {
    "pmem_region_test": ("", 900),
    "pmem_region_crash_test": ("", 900),
    "pmem_segment_test": ("", 900),
    "db_basic_test": ("", 900),
    "db_create_crash_test": ("", 900),
    "db_column_family_test": ("", 900),
    "db_concurrent_test": ("", 1800),
    "db_read_only_test": ("", 900),
}


def run_program(machine, log, setup, program, arguments, seconds, environment):
    started = time.monotonic()
    code, output = machine.try_run(
        f"cd /dev/shm; LD_LIBRARY_PATH=/tools/lib BRAIDDB_TEST_DISK=/dev/shm {environment} /tools/{program} {arguments}", seconds)
    log(f"{setup.name}: {program} {arguments}: exit code {code}, {time.monotonic() - started:.0f} s")
    if code != 0:
        raise Failure(f"{setup.name}: {program} ends with {code}:\n{output}")
    return output


def prepare(machine, saved, setup):
    machine.close()
    machine.resume(saved)
    setup.make_file_systems(machine)
    setup.mount_file_systems(machine)
    check_dax(machine, setup)
    machine.run("mountpoint -q /tools || mount -o ro /dev/vda /tools")


def run_suite(machine, saved, setup, programs, log, environment):
    """The programs on the first mount of a setup, in fresh file systems."""
    prepare(machine, saved, setup)
    point = next(iter(setup.devices.values()))
    machine.run(f"umount /dev/shm; mount --bind {point} /dev/shm")
    for program, (arguments, seconds) in programs.items():
        run_program(machine, log, setup, program, arguments, seconds, environment)
        machine.run("rm -rf /dev/shm/*")


def run_stress(machine, saved, setup, lives, log, environment):
    """db_stress with kill -9 of the process, on the first mount of a setup."""
    prepare(machine, saved, setup)
    point = next(iter(setup.devices.values()))
    flags = f"--db={point}/stress --cycles={lives} --seed=1 --max_key=2000 --threads=4 --interval_ms=2000 --progress_seconds=60"
    output = run_program(machine, log, setup, "db_stress", flags, lives * 60 + 600, environment)
    if "no violation" not in output:
        raise Failure(f"{setup.name}: db_stress:\n{output}")
    log("\n".join(line for line in output.splitlines() if line.strip())[-600:])


def run_nearly_full(machine, saved, setup, log, environment):
    """A database on file systems with little space left: NoSpace is clean, the power goes, and all that was acknowledged is
    there. Then there is space again, and the database grows."""
    cuts = PowerCuts(machine, saved, setup, 7, log, environment)
    cuts.begin()
    for point in setup.devices.values():
        free = int(machine.run(f"df -k {point} | tail -1").split()[3])
        machine.run(f"fallocate -l {free - 40 * 1024}K {point}/ballast")
    cuts.live_until("full")  # the other thread may still find room
    cuts.cut("kill")
    cuts.restart()
    cuts.live_until("ended")  # full again, for both threads, and closed
    cuts.cut("kill")
    cuts.restart()
    for point in setup.devices.values():
        machine.run(f"rm {point}/ballast")
    cuts.live_until("grown")
    cuts.cut("kill")
    cuts.restart()
    cuts.verify()
    log(f"{setup.name}: nearly full: writes {cuts.oracle.acknowledged}")


def run_canary(machine, saved, log, environment):
    """The oracle finds a write that is missing: it is told of one more than there was."""
    cuts = PowerCuts(machine, saved, EXT4_DISK, 3, log, environment)
    cuts.begin()
    cuts.live_until("grown")
    cuts.cut("kill")
    cuts.oracle.acknowledged[1] += 2
    cuts.restart()
    try:
        cuts.verify()
    except Failure as failure:
        if "violation: thread 1" not in str(failure):
            raise
        log("canary: an acknowledged write that is not there is found")
        return
    raise Failure("canary: the oracle does not see that an acknowledged write is missing")
