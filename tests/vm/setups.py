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
# A region on each NVDIMM without a file system; the rest of the database is on the disk.
DEVDAX = Setup("devdax", {"/dev/vdb": "/mnt/disk"}, "mkfs.ext4 -q -F -b 4096", "mount -t ext4", "/mnt/disk/db",
               ["/dev/dax0.0", "/dev/dax1.0"], state="devdax")
SETUPS = {setup.name: setup for setup in (EXT4_DAX, XFS_DAX, EXT4_DISK, DEVDAX)}

# A CXL memory device, on which the kernel makes a region of persistent memory. The region has to be made at each boot. A host
# bridge needs two root ports: with one, Linux leaves the address decoder of the bridge alone, and QEMU 7.2 loses all stores.
CXL_MACHINE = [
    "-machine", "cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=1G",
    "-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1",
    "-device", "cxl-rp,port=0,bus=cxl.1,id=port0,chassis=0,slot=2",
    "-device", "cxl-rp,port=1,bus=cxl.1,id=port1,chassis=0,slot=3",
    "-device", "cxl-type3,bus=port0,memdev=cxl-memory,lsa=cxl-labels,id=cxl0",
]
CXL_BYTES = 256 << 20
CXL_REGION = f"""cd /sys/bus/cxl/devices && region=$(cat decoder0.0/create_pmem_region) &&
  echo $region > decoder0.0/create_pmem_region && echo 256 > $region/interleave_granularity &&
  echo 1 > $region/interleave_ways && echo 6e0c4b5a-3c6e-4b43-9d5c-0c54f8a1d2e7 > $region/uuid &&
  echo pmem > decoder2.0/mode && echo {CXL_BYTES} > decoder2.0/dpa_size && echo {CXL_BYTES} > $region/size &&
  echo decoder2.0 > $region/target0 && echo 1 > $region/commit && echo $region > /sys/bus/cxl/drivers/cxl_region/bind"""
CXL_NAMESPACE = "test -c /dev/dax2.0 || ndctl create-namespace -b CXL -m devdax --map=mem -s 48M"
CXL_DEVDAX = Setup("cxl-devdax", {"/dev/vdb": "/mnt/disk"}, "mkfs.ext4 -q -F -b 4096", "mount -t ext4", "/mnt/disk/db",
                   ["/dev/dax2.0"], state=None, before_mount=[CXL_REGION, CXL_NAMESPACE])


def check_dax(machine, setup):
    """The mounts are DAX, so that a test that is meant for persistent memory does not run without it."""
    mounts = machine.run("cat /proc/mounts")
    for device in setup.devices:
        if "pmem" in device and not any(line.startswith(device + " ") and "dax" in line for line in mounts.splitlines()):
            raise Failure(f"{device} is not mounted with DAX:\n{mounts}")
