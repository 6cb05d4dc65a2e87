"""What the memory itself can do: the four benchmarks that other benchmarks are compared with."""

WRITE_LIMITS, READ_LIMITS = ("pmappend", "pmappendstream"), ("pmread", "pmreadindependent")
MEANINGS = {
    "pmappend": "memory: stores, flushes, a fence for each record",
    "pmappendstream": "memory: stores past the caches, a fence for each record",
    "pmread": "memory: dependent reads (latency)",
    "pmreadindependent": "memory: independent reads (throughput)",
}
WRITES = ("fill", "overwrite", "delete", "update", "ycsb_load")
DONE_ONCE = ("waitforcompaction", "flush", "compact", "compactall", "open")


def limits_of(benchmark):
    """The benchmarks of the memory that this benchmark is compared with: first latency, then throughput."""
    return WRITE_LIMITS if benchmark.startswith(WRITES) else READ_LIMITS
