"""A virtual machine with two NUMA nodes and two NVDIMMs, and what it is made of.

Machine runs QEMU, sends shell commands to the guest's first process (init), and cuts the power. Image makes the files that
QEMU boots: the kernel of a Debian package, which is unpacked and not installed, an initramfs with busybox, and a disk with the
programs under test and their libraries.

The NVDIMMs are files of the host. Killing QEMU keeps every store of the guest in them and loses the guest's memory and page
cache. No CPU cache is modelled: missing flushes are found by crash_test, not here.
"""

import glob
import gzip
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
QEMU = "qemu-system-x86_64"
NVDIMM_BYTES = 512 << 20
REPORT_PORT = 0xe9  # as in power_cut_client.cc
PROGRAMS = {  # program: Debian package
    QEMU: "qemu-system-x86",
    "ndctl": "ndctl",
    "daxctl": "daxctl",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "numactl": "numactl",
    "cpio": "cpio",
    "modinfo": "kmod",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "ldd": "libc-bin",
    "strip": "binutils",
}
BUSYBOX = "/bin/busybox"
MODULES = ["crc32c_generic", "ext4", "xfs", "virtio_pci", "virtio_console", "virtio_blk", "nfit", "nd_btt", "nd_pmem", "dax_pmem",
           "device_dax", "kmem", "cxl_acpi", "cxl_pci", "cxl_mem", "cxl_pmem"]


class Failure(Exception):
    """What the test found, or what the machine did not do."""


class NoAnswer(Failure):
    """Nothing came on a port in time."""


def missing():
    """What has to be installed, as a list of packages."""
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not os.path.exists(BUSYBOX) or (shutil.which("ldd") and libraries(BUSYBOX)):
        packages.append("busybox-static")
    return packages


def libraries(program):
    """The shared libraries of a program, as absolute paths, with the dynamic linker."""
    output = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", output)


class Image:
    """The kernel, in `directory`, where it stays for later runs; the initramfs and the disk of programs, in `scratch`."""

    def __init__(self, directory, scratch, log):
        self.directory = directory
        self.scratch = scratch
        self.log = log
        self.initramfs = os.path.join(scratch, "initramfs.gz")
        self.tools = os.path.join(scratch, "tools.ext4")
        os.makedirs(directory, exist_ok=True)
        self.kernel = self._kernel()

    def _kernel(self):
        found = glob.glob(os.path.join(self.directory, "kernel", "boot", "vmlinuz-*"))
        if found:
            return found[0]
        depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True).stdout
        package = re.search(r"Depends: (linux-image-[0-9]\S+)", depends)
        if package is None:
            raise Failure("apt-cache knows no kernel package linux-image-amd64; run apt-get update")
        self.log(f"fetching {package[1]}")
        fetch = os.path.join(self.directory, "package")
        os.makedirs(fetch, exist_ok=True)
        done = subprocess.run(["apt-get", "-q", "download", package[1]], cwd=fetch, capture_output=True, text=True)
        packages = glob.glob(os.path.join(fetch, "*.deb"))
        if done.returncode != 0 or not packages:
            raise Failure(f"apt-get download {package[1]}: {done.stderr.strip()}")
        unpacked = os.path.join(self.directory, "kernel.tmp")
        shutil.rmtree(unpacked, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", packages[0], unpacked], check=True)
        os.rename(unpacked, os.path.join(self.directory, "kernel"))
        shutil.rmtree(fetch)
        return glob.glob(os.path.join(self.directory, "kernel", "boot", "vmlinuz-*"))[0]

    def _modules(self):
        """The files of MODULES and of all that they depend on, each after what it needs."""
        files = {}
        for path in glob.glob(os.path.join(self.directory, "kernel/lib/modules/*/kernel/**/*.ko"), recursive=True):
            files[os.path.basename(path)[:-3].replace("-", "_")] = path
        order = []

        def add(name):
            path = files.get(name.replace("-", "_"))
            if path is None or path in order:  # missing: built into the kernel
                return
            fields = subprocess.run(["modinfo", "-F", "depends", path], capture_output=True, text=True, check=True).stdout
            soft = subprocess.run(["modinfo", "-F", "softdep", path], capture_output=True, text=True, check=True).stdout
            before = re.search(r"pre: (.*?)(?:post:|$)", soft.replace("\n", " "))
            for needed in fields.strip().split(",") + (before[1].split() if before else []):
                if needed:
                    add(needed)
            order.append(path)

        for module in MODULES:
            add(module)
        return order

    def make_initramfs(self):
        root = os.path.join(self.scratch, "root")
        shutil.rmtree(root, ignore_errors=True)
        for name in "bin sbin proc sys dev tmp tools etc run lib/modules mnt/0 mnt/1 mnt/disk".split():
            os.makedirs(os.path.join(root, name))
        shutil.copy(BUSYBOX, os.path.join(root, "bin/busybox"))
        applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
        for applet in applets:
            if applet != "busybox":
                os.symlink("busybox", os.path.join(root, "bin", applet))
        for program in "ndctl daxctl mkfs.ext4 mkfs.xfs numactl".split():
            path = shutil.which(program)
            shutil.copy(path, os.path.join(root, "sbin", program))
            for library in libraries(path):
                target = root + library
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(library, target)
        if os.path.exists("/etc/mke2fs.conf"):
            shutil.copy("/etc/mke2fs.conf", os.path.join(root, "etc"))
        names = []
        for module in self._modules():
            shutil.copy(module, os.path.join(root, "lib/modules"))
            names.append(os.path.basename(module)[:-3])
        with open(os.path.join(root, "lib/modules/order"), "w") as file:
            file.write("\n".join(names) + "\n")
        shutil.copy(os.path.join(HERE, "init"), os.path.join(root, "init"))
        os.chmod(os.path.join(root, "init"), 0o755)
        packed = subprocess.run("find . | cpio -o -H newc --quiet", shell=True, cwd=root, capture_output=True, check=True).stdout
        with gzip.open(self.initramfs, "wb", 1) as file:
            file.write(packed)
        shutil.rmtree(root)

    def make_tools(self, programs):
        """A file system with the programs, without their debug information, and their libraries in lib/."""
        root = os.path.join(self.scratch, "programs")
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(os.path.join(root, "lib"))
        for program in programs:
            target = os.path.join(root, os.path.basename(program))
            subprocess.run(["strip", "-o", target, program], check=True)
            for library in libraries(program):
                shutil.copy(library, os.path.join(root, "lib"))
        size = sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(root) for name in names)
        if os.path.exists(self.tools):
            os.remove(self.tools)
        with open(self.tools, "wb") as file:
            file.truncate(size + size // 4 + (16 << 20))
        subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", root, self.tools], check=True)
        shutil.rmtree(root)


class Machine:
    """One QEMU process. Its NVDIMMs and its disk are the files nvdimm0, nvdimm1 and disk in `directory`."""

    def __init__(self, image, directory, extra=()):
        self.image = image
        self.directory = directory
        self.extra = list(extra)
        self.process = None
        self.sockets = {}
        self.unread = {}
        os.makedirs(directory, exist_ok=True)
        for name in ("nvdimm0", "nvdimm1", "disk"):
            path = self.path(name)
            if not os.path.exists(path):
                with open(path, "wb") as file:
                    file.truncate(NVDIMM_BYTES)

    def path(self, name):
        return os.path.join(self.directory, name)

    def _arguments(self):
        arguments = [
            QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-machine", "q35,nvdimm=on,nvdimm-persistence=mem-ctrl",
            "-smp", "2,sockets=2,cores=1,threads=1", "-m", "1G,slots=4,maxmem=8G",
            "-nodefaults", "-no-user-config", "-display", "none",
            "-object", "memory-backend-ram,id=ram0,size=512M", "-object", "memory-backend-ram,id=ram1,size=512M",
            "-numa", "node,nodeid=0,cpus=0,memdev=ram0", "-numa", "node,nodeid=1,cpus=1,memdev=ram1",
            "-numa", "dist,src=0,dst=1,val=21",
            "-kernel", self.image.kernel, "-initrd", self.image.initramfs,
            "-append", "console=ttyS0 panic=-1 loglevel=5 tsc=reliable no_timer_check nokaslr mitigations=off",
            "-serial", f"file:{self.path('console')}",
            "-drive", f"file={self.image.tools},if=none,id=tools,format=raw,readonly=on",
            "-device", "virtio-blk-pci,drive=tools,serial=tools",
            "-drive", f"file={self.path('disk')},if=none,id=disk,format=raw,cache=writethrough",
            "-device", "virtio-blk-pci,drive=disk,serial=disk",
            "-device", "virtio-serial-pci",
        ]
        for i in (0, 1):
            arguments += [
                "-object", (f"memory-backend-file,id=nv{i},share=on,mem-path={self.path(f'nvdimm{i}')},size={NVDIMM_BYTES},"
                            "pmem=off,align=2M"),
                "-device", f"nvdimm,id=dimm{i},memdev=nv{i},unarmed=off,node={i}"]
        for name in ("commands", "reports", "monitor"):
            arguments += ["-chardev", f"socket,id={name},path={self.path(name)}"]
        # A byte that the guest writes to this I/O port is in the socket when the instruction ends. Serial ports have buffers.
        arguments += ["-device", "virtserialport,nr=1,chardev=commands,name=commands", "-mon", "chardev=monitor,mode=control",
                      "-device", f"isa-debugcon,iobase={REPORT_PORT},chardev=reports"]
        return arguments + self.extra

    # ---- Power

    def _launch(self, arguments):
        listeners = {}
        for name in ("commands", "reports", "monitor"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
            listeners[name] = socket.socket(socket.AF_UNIX)
            listeners[name].bind(self.path(name))
            listeners[name].listen(1)
            listeners[name].settimeout(120)
        with open(self.path("qemu"), "wb") as log:
            self.process = subprocess.Popen(self._arguments() + arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.sockets = {name: listener.accept()[0] for name, listener in listeners.items()}
        except socket.timeout:
            self.cut()
            with open(self.path("qemu")) as log:
                raise Failure("QEMU does not start: " + log.read().strip()) from None
        self.unread = {name: b"" for name in self.sockets}
        self._monitor_line()
        self.monitor("qmp_capabilities")

    def boot(self):
        """From the firmware on, until the guest takes commands."""
        self._launch([])
        self.await_ready()

    def await_ready(self):
        while self.line("commands", 300) != "@@ready":
            pass

    def save(self, state):
        """Ends QEMU and keeps the guest's memory and the NVDIMMs under the name of a state. The guest has nothing mounted."""
        self.monitor("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
        self.monitor("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.monitor("migrate", uri=f"exec:cat > '{self.path(state)}.memory'")
        self._await_migration("completed")
        self.close()
        for i in (0, 1):
            subprocess.run(["cp", "--sparse=always", self.path(f"nvdimm{i}"), self.path(f"{state}.nvdimm{i}")], check=True)

    def restore(self, state):
        """The NVDIMMs as they were when the state was saved. REQUIRES: QEMU does not run."""
        for i in (0, 1):
            subprocess.run(["cp", "--sparse=always", self.path(f"{state}.nvdimm{i}"), self.path(f"nvdimm{i}")], check=True)

    def resume(self, state):
        """Begins with the guest's memory as it was when the state was saved, and with the NVDIMMs and the disk as they are."""
        self._launch(["-incoming", "defer"])
        self.monitor("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
        self.monitor("migrate-incoming", uri=f"exec:cat '{self.path(state)}.memory'")
        self._await_migration("completed")

    def _await_migration(self, wanted):
        for _ in range(15000):
            state = self.monitor("query-migrate").get("status")
            if state == wanted:
                return
            if state == "failed":
                raise Failure("QEMU cannot store or load the guest's memory")
            time.sleep(0.02)
        raise Failure("QEMU takes more than five minutes to store or load the guest's memory")

    def cut(self):
        """The power cut: SIGKILL to QEMU. What the guest sent before is still read."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def reset(self):
        """The other power cut: the reset line. The guest boots again in the same QEMU process. False if QEMU does not answer."""
        try:
            self.monitor("system_reset")
        except NoAnswer:
            return False
        return True

    def close(self):
        self.cut()
        for connection in self.sockets.values():
            connection.close()
        self.sockets = {}

    # ---- Talking

    def monitor(self, command, **arguments):
        request = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        self.sockets["monitor"].sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self._monitor_line()
            if "error" in answer:
                raise Failure(f"QEMU, {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def _monitor_line(self):
        return json.loads(self.line("monitor", 60))

    def line(self, name, seconds):
        """The next line that came on a port. None: the guest or QEMU has gone. Failure: nothing came."""
        end = time.monotonic() + seconds
        while b"\n" not in self.unread[name]:
            if not select.select([self.sockets[name]], [], [], max(0, end - time.monotonic()))[0]:
                raise NoAnswer(f"nothing on port {name} for {seconds} s; the guest's console is in {self.path('console')}")
            data = self.sockets[name].recv(1 << 16)
            if not data:
                return None
            self.unread[name] += data
        line, self.unread[name] = self.unread[name].split(b"\n", 1)
        return line.decode(errors="replace").rstrip("\r")

    def send(self, name, text):
        self.sockets[name].sendall(text.encode() + b"\n")

    def try_run(self, command, seconds=120):
        """Runs a shell command in the guest. Returns its exit code and its output."""
        self.send("commands", command.replace("\n", " "))
        end = time.monotonic() + seconds
        output = []
        while True:
            line = self.line("commands", max(0.1, end - time.monotonic()))
            if line is None:
                raise Failure(f"the guest went away in: {command}")
            text, done, code = line.partition("@@done ")  # the output may end without a new line
            if text or not done:
                output.append(text)
            if done:
                return int(code), "\n".join(output)

    def run(self, command, seconds=120):
        code, output = self.try_run(command, seconds)
        if code != 0:
            raise Failure(f"exit code {code} of: {command}\n{output}")
        return output
