#include "txn/open_segment.h"

#include "log/log_entry.h"
#include "log/log_reader.h"

namespace braiddb {

Status FindOpenEntry(const PoolFiles& files, const ListedSegment& segment, uint64_t next, std::vector<uint64_t>* buffer,
                     bool* begins) {
  *begins = false;
  LogEntry header;
  if (next + sizeof(header) > segment.capacity) return Status::OK();
  if (Status status = files.Read(segment.data + next, sizeof(header), &header); !status.ok()) return status;
  if (header.checksum == 0 || header.height() == 0 || header.height() > kMaxHeight) return Status::OK();
  const uint64_t bytes = LogEntrySize(header);
  if (bytes > segment.capacity - next) return Status::OK();
  if (Status status = files.Read(segment.data + next, bytes, buffer, next); !status.ok()) return status;
  const LogReader reader(reinterpret_cast<uint8_t*>(buffer->data()), segment.entry_seed, next + bytes);
  *begins = reader.ValidAt(next);
  return Status::OK();
}

}  // namespace braiddb
