"""The places of a database in the virtual machine: how their file systems are made and mounted, and where its files lie."""

from machine import Failure


class Setup:
    def __init__(self, name, devices, make, mount, database, regions, state="fsdax", before_mount=()):
        self.name = name
        self.devices = devices  # device: mount point
        self.make = make
        self.mount = mount
        self.database = database
        self.regions = regions  # region paths; empty: in the database's directory
        self.state = state  # of the machine, which it begins with: how ndctl has set up the NVDIMMs. None: it boots each time
        self.grows = state == "fsdax"  # the regions
        self.before_mount = before_mount  # commands, after each start

    def make_file_systems(self, machine):
        for device in self.devices:
            machine.run(f"{self.make} {device}")

    def prepare(self, machine):
        for command in self.before_mount:
            machine.run(command)

    def mount_file_systems(self, machine):
        # A guest that was resumed has read the first block of each device before; the device has changed since.
        for device, point in self.devices.items():
            machine.run(f"blockdev --flushbufs {device}; {self.mount} {device} {point}")


NVDIMMS = {"/dev/pmem0": "/mnt/0", "/dev/pmem1": "/mnt/1"}
EXT4_DAX = Setup("ext4-dax", NVDIMMS, "mkfs.ext4 -q -F -b 4096", "mount -t ext4 -o dax", "/mnt/0/db", ["/mnt/0/r0", "/mnt/1/r1"])
XFS_DAX = Setup("xfs-dax", NVDIMMS, "mkfs.xfs -q -f -m reflink=0", "mount -t xfs -o dax", "/mnt/0/db", ["/mnt/0/r0", "/mnt/1/r1"])
EXT4_DISK = Setup("ext4-disk", {"/dev/vdb": "/mnt/disk"}, "mkfs.ext4 -q -F -b 4096", "mount -t ext4", "/mnt/disk/db", [])
SETUPS = {setup.name: setup for setup in (EXT4_DAX, XFS_DAX, EXT4_DISK)}


def check_dax(machine, setup):
    """The mounts are DAX, so that a test that is meant for persistent memory does not run without it."""
    mounts = machine.run("cat /proc/mounts")
    for device in setup.devices:
        if "pmem" in device and not any(line.startswith(device + " ") and "dax" in line for line in mounts.splitlines()):
            raise Failure(f"{device} is not mounted with DAX:\n{mounts}")
