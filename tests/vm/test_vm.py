#!/usr/bin/env python3
"""scripts/test-vm: tests on a virtual machine with two NUMA nodes and two NVDIMMs. See docs/TESTING.md."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import suites
from machine import NVDIMM_BYTES, Failure, Image, Machine, missing
from power_cuts import PowerCuts
from setups import DEVDAX, EXT4_DAX, EXT4_DISK, SETUPS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77
PARTS = ["smoke", "power-cuts", "nearly-full", "canary", "numa", "suites", "stress", "cxl"]
SHORT_PARTS = ["smoke", "power-cuts", "nearly-full", "canary", "numa"]


def log(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/test-vm",
        description="Boots a virtual machine with two NUMA nodes and two NVDIMMs, and tests BraidDB in it on ext4 and xfs with "
        "DAX, and on ext4 on a disk. Ends with 0 if all is well, 1 if not, and 77 if something that it needs is not installed.")
    parser.add_argument("--short", action="store_true", help="only what takes a few minutes without KVM")
    parser.add_argument("--cuts", type=int, help="power cuts, shared among the file systems; default 40, with --short 12")
    parser.add_argument("--lives", type=int, default=100, help="lives of db_stress; default 100")
    parser.add_argument("--file-system", choices=sorted(SETUPS), action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the power cuts; 0: a new one each time")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    parser.add_argument("--build", default=os.path.join(TOP, "build/release"), help="the build with the programs")
    parser.add_argument("--if-asked", action="store_true", help="do nothing and end with 77 unless BRAIDDB_TEST_VM is set")
    parser.add_argument("--work", default=os.path.join(TOP, "build/vm"), help="where the kernel stays for later runs")
    parser.add_argument("--environment", default="", help="NAME=VALUE … for the programs in the machine")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {' '.join(PARTS)}; all unless given")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part}")
    return arguments


def scratch_directory():
    """In memory if there is room for the NVDIMMs: they are files that the guest stores to."""
    shm = "/dev/shm"
    if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 4 * NVDIMM_BYTES:
        return tempfile.mkdtemp(prefix="braiddb-vm-", dir=shm)
    return tempfile.mkdtemp(prefix="braiddb-vm-")


def make_namespaces(machine, mode):
    for i in (0, 1):
        machine.run(f"ndctl create-namespace -f -e namespace{i}.0 -m {mode} --map=mem")


def run_smoke(machine):
    """Two nodes, two NVDIMMs on different nodes, both with a file system with DAX."""
    nodes = machine.run("cat /sys/block/pmem0/device/numa_node /sys/block/pmem1/device/numa_node").split()
    if sorted(nodes) != ["0", "1"]:
        raise Failure(f"the NVDIMMs are on the NUMA nodes {nodes}, not one on each of two")
    log(f"smoke: pmem0 is on node {nodes[0]}, pmem1 on node {nodes[1]}")


def run(arguments, scratch):
    parts = arguments.parts or (SHORT_PARTS if arguments.short else PARTS)
    environment = arguments.environment
    seed = arguments.seed or int(time.time())
    setups = [SETUPS[name] for name in arguments.file_system or SETUPS]
    file_systems = [setup for setup in setups if setup != DEVDAX]

    targets = ["braiddb_tool", "power_cut_client"]
    if "numa" in parts:
        targets.append("numa_client")
    if "stress" in parts:
        targets.append("db_stress")
    if "suites" in parts:
        targets += suites.TESTS
    if not arguments.no_build:
        subprocess.run([os.path.join(TOP, "scripts/build"), "release"] + targets, check=True, stdout=subprocess.DEVNULL)
    image = Image(arguments.work, scratch, log)
    image.make_initramfs()
    image.make_tools([os.path.join(arguments.build, "bin", target.replace("braiddb_tool", "braiddb")) for target in targets])

    machine = Machine(image, os.path.join(scratch, "machine"))
    try:
        started = time.monotonic()
        machine.boot()
        make_namespaces(machine, "fsdax")
        run_smoke(machine)
        machine.save("fsdax")
        if DEVDAX in setups:
            machine.resume("fsdax")
            make_namespaces(machine, "devdax")
            machine.save("devdax")
        log(f"booted in {time.monotonic() - started:.0f} s")

        if "power-cuts" in parts:
            cuts = arguments.cuts or (12 if arguments.short else 40)
            log(f"power cuts: {cuts} in all, --seed={seed}")
            for i, setup in enumerate(setups):
                share = (cuts + len(setups) - 1 - i) // len(setups)
                campaign = PowerCuts(machine, setup, seed + i, log, environment)
                try:
                    campaign.run(share)
                finally:
                    log(f"{setup.name}: {campaign.counts}")
        if "nearly-full" in parts:
            for setup in file_systems[:1] if arguments.short else file_systems:
                suites.run_nearly_full(machine, setup, log, environment)
        if "canary" in parts:
            suites.run_canary(machine, EXT4_DISK, log, environment)
        if "numa" in parts:
            suites.run_numa(machine, EXT4_DAX, log, environment)
        if "suites" in parts:
            failures = []
            for setup in file_systems:
                failures += suites.run_suite(machine, setup, suites.TESTS, log, environment)
            if failures:
                raise Failure(f"failed: {', '.join(failures)}")
        if "stress" in parts:
            for i, setup in enumerate(file_systems):
                share = (arguments.lives + len(file_systems) - 1 - i) // len(file_systems)
                suites.run_stress(machine, setup, share, log, environment)
    finally:
        machine.close()
    if "cxl" in parts:
        directory = os.path.join(scratch, "cxl")
        suites.run_cxl_devdax(image, directory, 2, seed, log, environment)
        shutil.rmtree(directory)
        suites.run_cxl_system_ram(image, directory, log, environment)


def main():
    arguments = parse()
    if arguments.if_asked and not os.environ.get("BRAIDDB_TEST_VM"):
        print("test-vm: skipped; set BRAIDDB_TEST_VM=1 to run it")
        return SKIPPED
    packages = missing()
    if packages:
        print(f"test-vm: skipped, these Debian packages are missing: {' '.join(sorted(set(packages)))}")
        return SKIPPED
    scratch = scratch_directory()
    started = time.monotonic()
    try:
        run(arguments, scratch)
    except Failure as failure:
        log(f"FAILED: {failure}")
        kept = os.path.join(arguments.work, "failed")
        shutil.rmtree(kept, ignore_errors=True)
        sockets = shutil.ignore_patterns("commands", "reports", "monitor")
        shutil.copytree(os.path.join(scratch, "machine"), kept, ignore=sockets)
        log(f"the guest's console, NVDIMMs and disk are kept in {kept}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    log(f"all is well, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
