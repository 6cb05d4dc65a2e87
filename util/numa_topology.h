// NUMA topology: how many nodes, where the calling thread runs, where memory goes. One node wherever NUMA is absent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// NUMA nodes are numbered densely from 0, in the system's order and without those that have no CPU.
// Thread safety: all functions may be called concurrently.

uint32_t NumaNodeCount();

// The NUMA node of the CPU that runs the calling thread at this moment; less than NumaNodeCount(). A few nanoseconds.
uint32_t CurrentNumaNode();

// Prefers that NUMA node for the pages of [address, address + bytes) that have no memory yet. A hint: failures are ignored.
void BindToNumaNode(void* address, size_t bytes, uint32_t node);

}  // namespace braiddb
