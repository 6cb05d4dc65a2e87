"""Tests in the virtual machine besides power cuts: the project's own tests on its file systems, full file systems, NUMA, CXL."""

import os
import time

from machine import Failure, Machine
from power_cuts import PowerCuts
from setups import CXL_BYTES, CXL_DEVDAX, CXL_MACHINE, CXL_REGION, check_dax

# Test program: arguments, and the longest time without KVM, in seconds. The tests put their files into /dev/shm, where the file
# system under test is mounted.
TESTS = {
    # The filtered test expects tmpfs, where the options that it gives are impossible.
    "pmem_region_test": ("--gtest_filter=-*ImpossibleOptionsAreRefusedAndLeaveNothing", 900),
    "pmem_region_crash_test": ("", 900),
    "pmem_segment_test": ("", 900),
    "db_basic_test": ("", 900),
    # The others emulate persistent memory, which needs tmpfs.
    "db_create_crash_test": ("--gtest_filter=*OnADisk*", 900),
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


def prepare(machine, setup):
    machine.close()
    machine.restore(setup.state)
    machine.resume(setup.state)
    setup.make_file_systems(machine)
    setup.mount_file_systems(machine)
    check_dax(machine, setup)
    machine.run("mountpoint -q /tools || mount -o ro /dev/vda /tools")


def run_suite(machine, setup, programs, log, environment):
    """The programs on the first mount of a setup, in fresh file systems. Returns the names of those that failed."""
    prepare(machine, setup)
    point = next(iter(setup.devices.values()))
    machine.run(f"umount /dev/shm; mount --bind {point} /dev/shm")
    failures = []
    for program, (arguments, seconds) in programs.items():
        try:
            run_program(machine, log, setup, program, arguments, seconds, environment)
        except Failure as failure:
            log(str(failure))
            failures.append(f"{setup.name}: {program}")
        machine.run("rm -rf /dev/shm/*")
    return failures


def run_stress(machine, setup, lives, log, environment):
    """db_stress with kill -9 of the process, on the first mount of a setup."""
    prepare(machine, setup)
    point = next(iter(setup.devices.values()))
    flags = f"--db={point}/stress --cycles={lives} --seed=1 --max_key=2000 --threads=4 --interval_ms=2000 --progress_seconds=60"
    output = run_program(machine, log, setup, "db_stress", flags, lives * 60 + 600, environment)
    if "no violation" not in output:
        raise Failure(f"{setup.name}: db_stress:\n{output}")
    log("\n".join(line for line in output.splitlines() if line.strip())[-600:])


def run_nearly_full(machine, setup, log, environment):
    """A database on file systems with little space left: NoSpace is clean, the power goes, and all that was acknowledged is
    there. Then there is space again, and the database grows."""
    cuts = PowerCuts(machine, setup, 7, log, environment)
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


def run_canary(machine, setup, log, environment):
    """The oracle finds a write that is missing: it is told of one more than there was."""
    cuts = PowerCuts(machine, setup, 3, log, environment)
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


def run_numa(machine, setup, log, environment):
    """Threads write to the region of their own node, whatever the order of the paths: remote visits are at most 1 % of what they
    are if the option region_nodes names the other node of each region."""
    prepare(machine, setup)
    nodes = machine.run("cat /sys/block/pmem0/device/numa_node /sys/block/pmem1/device/numa_node").split()

    def remote_visits(name, paths, region_nodes):
        arguments = [f"--region_path={path}" for path in paths] + [f"--region_node={node}" for node in region_nodes]
        for path in paths:
            machine.run(f"mkdir {path}")
        output = machine.run(
            f"LD_LIBRARY_PATH=/tools/lib {environment} /tools/numa_client --db=/mnt/0/{name} {' '.join(arguments)}", 300)
        local, remote = map(int, output.splitlines()[-1].split()[1:])
        log(f"NUMA: {name}: {local} local visits, {remote} remote ones")
        return remote

    straight = remote_visits("straight", ["/mnt/0/a", "/mnt/1/a"], [])
    other_order = remote_visits("other-order", ["/mnt/1/b", "/mnt/0/b"], [])
    swapped = remote_visits("swapped", ["/mnt/0/c", "/mnt/1/c"], nodes[::-1])
    if swapped == 0 or max(straight, other_order) * 100 > swapped:
        raise Failure(f"remote visits: {straight} and {other_order}, not at most 1 % of {swapped}")


def cxl_machine(image, directory):
    os.makedirs(directory, exist_ok=True)
    backends = []
    for name, size in (("cxl-memory", CXL_BYTES), ("cxl-labels", 1 << 20)):
        backends += ["-object", f"memory-backend-file,id={name},share=on,mem-path={os.path.join(directory, name)},size={size}"]
    return Machine(image, directory, backends + CXL_MACHINE)


def run_cxl_devdax(image, directory, cuts, seed, log, environment):
    """A region on a CXL memory device without a file system, and power cuts."""
    machine = cxl_machine(image, directory)
    try:
        PowerCuts(machine, CXL_DEVDAX, seed, log, environment).run(cuts)
    finally:
        machine.close()


def run_cxl_system_ram(image, directory, log, environment):
    """The memory of a CXL device as a NUMA node without CPUs, and a database on a tmpfs there. Without KVM, QEMU takes a
    microsecond and more for each access to such memory."""
    machine = cxl_machine(image, directory)
    try:
        machine.boot()
        machine.run(CXL_REGION)
        machine.run("ndctl create-namespace -b CXL -m devdax --map=mem")
        machine.run("daxctl reconfigure-device --mode=system-ram dax2.0")
        if machine.run("cat /sys/devices/system/node/node2/cpulist").strip():
            raise Failure("node 2 has CPUs")
        machine.run("mount -t tmpfs -o mpol=bind:2 cxl /mnt/disk; mount -o ro /dev/vda /tools")
        before = free_on_node(machine, 2)
        machine.run(f"LD_LIBRARY_PATH=/tools/lib {environment} /tools/power_cut_client --db=/mnt/disk/db "
                    "--seed=5 --acknowledged=0 --max_writes=40", 1800)
        machine.run(f"LD_LIBRARY_PATH=/tools/lib {environment} /tools/power_cut_client --db=/mnt/disk/db "
                    "--seed=5 --acknowledged=40 --max_writes=1", 1800)
        taken = before - free_on_node(machine, 2)
        files = int(machine.run("du -sk /mnt/disk/db").split()[0])
        log(f"CXL as system-ram: the database has {files} KiB, node 2 has given {taken} KiB")
        if taken < files * 9 // 10:
            raise Failure("the memory of the database is not on node 2")
    finally:
        machine.close()


def free_on_node(machine, node):
    """KiB."""
    return int(machine.run(f"grep MemFree /sys/devices/system/node/node{node}/meminfo").split()[3])
