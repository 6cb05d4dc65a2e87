#include "leaf_tree/inner_image.h"

#include <xxhash.h>

#include <cstring>

#include "index/atomic_words.h"

namespace braiddb {
namespace {

constexpr uint64_t kHasRest = 1;

uint64_t Padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }
uint64_t ComputeChecksum(const ImageHeader& header) { return XXH3_64bits(&header, offsetof(ImageHeader, checksum)); }

bool IsHeader(const ImageHeader& header, uint64_t capacity, uint64_t generation, uint64_t tree_id) {
  return header.magic == ImageHeader::kMagic && header.checksum == ComputeChecksum(header) && header.tree_id == tree_id &&
         header.generation == generation && header.bytes <= capacity - sizeof(ImageHeader);
}
const ImageHeader& HeaderAt(const uint8_t* data) { return *reinterpret_cast<const ImageHeader*>(data); }

// Takes words off the front of the remaining bytes. The checksum is verified before, so the bounds checks only guard against
// bugs.
class Reader {
 public:
  Reader(const uint8_t* data, uint64_t bytes) : data_(data), left_(bytes) {}
  bool Take(uint64_t* word) {
    if (left_ < sizeof(*word)) return false;
    memcpy(word, data_, sizeof(*word));
    data_ += sizeof(*word);
    left_ -= sizeof(*word);
    return true;
  }
  bool Take(uint64_t bytes, Slice* slice) {
    if (bytes > left_ || Padded(bytes) > left_) return false;
    *slice = Slice(reinterpret_cast<const char*>(data_), bytes);
    data_ += Padded(bytes);
    left_ -= Padded(bytes);
    return true;
  }
  bool empty() const { return left_ == 0; }

 private:
  const uint8_t* data_;
  uint64_t left_;
};

}  // namespace

// Checks the header only. A crash may leave a valid header with incomplete data; ReadImage verifies the data.
std::vector<Segment*> FindImages(const SegmentAllocator& segments, uint64_t tree_id) {
  std::vector<Segment*> images;
  segments.ForEachIndex([&](Segment* segment) {
    const auto header = LoadWords<ImageHeader>(segment->data());
    if (IsHeader(header, segment->capacity(), segment->generation(), tree_id)) images.push_back(segment);
  });
  return images;
}

// STEPS  1. Compute the size.  2. Reuse the segment, or replace one that is too small.  3. Write children, then the header with
//        both checksums.  4. Persist everything with one fence. No link exists yet, so a crash at any step leaves no image.
Status WriteImage(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id,
                  const std::vector<InnerNodes::Child>& children, std::optional<uint64_t> elements, Segment** image) {
  uint64_t bytes = 0;
  for (const auto& child : children) bytes += 16 + (child.low.rest == nullptr ? 0 : 16 + Padded(child.low.rest->key_size));
  if (*image != nullptr && (*image)->capacity() < sizeof(ImageHeader) + bytes) {
    Status status = segments->Release(*image);
    *image = nullptr;
    if (!status.ok()) return status;
  }
  if (*image == nullptr) {
    // With room for some more, so that the next closes use it again.
    const uint64_t size = sizeof(ImageHeader) + bytes;
    Status status = segments->AllocateIndex(0, size, image, size + size / 4);
    if (!status.ok()) return status;
  }
  Segment* const segment = *image;
  uint8_t* at = segment->data() + sizeof(ImageHeader);
  const auto put = [&](uint64_t word) {
    memcpy(at, &word, sizeof(word));
    at += sizeof(word);
  };
  for (const auto& child : children) {
    const SeparatorRest* const rest = child.low.rest;
    put(child.low.prefix);
    put(child.word() | (rest == nullptr ? 0 : kHasRest));
    if (rest == nullptr) continue;
    put(rest->sequence);
    put(rest->key_size);
    if (rest->key_size != 0) memset(at + Padded(rest->key_size) - 8, 0, 8);
    memcpy(at, rest->key_data, rest->key_size);
    at += Padded(rest->key_size);
  }
  auto* header = reinterpret_cast<ImageHeader*>(segment->data());
  const uint64_t checksum = XXH3_64bits(segment->data() + sizeof(ImageHeader), bytes);
  *header = ImageHeader{ImageHeader::kMagic,
                        tree_id,
                        segment->generation(),
                        bytes,
                        children.size(),
                        checksum,
                        elements.has_value() ? *elements + 1 : 0,
                        0};
  header->checksum = ComputeChecksum(*header);
  // ORDER: the image before the link to it. [CC-44]
  if (!regions->persistence()->Persist(header, sizeof(ImageHeader) + bytes)) return regions->persistence()->error();
  return Status::OK();
}

bool ReadImage(const uint8_t* data, uint64_t capacity, uint64_t generation, uint64_t tree_id, InnerNodes::NewChildren* children,
               std::optional<uint64_t>* elements) {
  const ImageHeader& header = HeaderAt(data);
  if (!IsHeader(header, capacity, generation, tree_id)) return false;
  data += sizeof(ImageHeader);
  // The data checksum is verified before the data are interpreted. A child has at least 16 bytes, which bounds `count`.
  if (XXH3_64bits(data, header.bytes) != header.data_checksum || header.count > header.bytes / 16) return false;
  *elements = header.elements == 0 ? std::nullopt : std::optional(header.elements - 1);
  children->Reserve(header.count);
  Reader reader(data, header.bytes);
  for (uint64_t i = 0; i < header.count; ++i) {
    InnerNodes::Child child;
    uint64_t place = 0, sequence = 0, key_size = 0;
    Slice key;
    if (!reader.Take(&child.low.prefix) || !reader.Take(&place)) return false;
    if ((place & kHasRest) != 0) {
      if (!reader.Take(&sequence) || !reader.Take(&key_size) || !reader.Take(key_size, &key)) return false;
      child.low.rest = NewSeparatorRest(key, sequence);
    }
    child.leaf = InnerNodes::LeafOf(place & ~kHasRest);
    child.hint = InnerNodes::HintOf(place);
    children->Add(child);
  }
  return reader.empty();
}

}  // namespace braiddb
