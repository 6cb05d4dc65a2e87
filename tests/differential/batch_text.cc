#include "tests/differential/batch_text.h"

#include <cstring>
#include <optional>

#include "tests/differential/draw.h"

namespace braiddb::test {

namespace {

// Cuts numbers and strings off the beginning of bytes.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  unsigned char Byte() {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::optional<uint32_t> Number() {
    uint32_t number = 0;
    for (unsigned shift = 0; shift < 35 && !rest_.empty(); shift += 7) {
      const unsigned char byte = Byte();
      number |= static_cast<uint32_t>(byte & 127) << shift;
      if (byte < 128) return number;
    }
    return std::nullopt;
  }
  std::optional<std::string> String() {
    const std::optional<uint32_t> length = Number();
    if (!length || *length > rest_.size()) return std::nullopt;
    const std::string text = Quote(rest_.substr(0, *length));
    rest_.remove_prefix(*length);
    return text;
  }

 private:
  std::string_view rest_;
};

struct Form {
  const char* name;
  bool has_family;
  int strings;
};

std::optional<Form> FormOf(unsigned char tag) {
  switch (tag) {
    case 0x0:
      return Form{"delete", false, 1};
    case 0x1:
      return Form{"put", false, 2};
    case 0x2:
      return Form{"merge", false, 2};
    case 0x3:
      return Form{"log-data", false, 1};
    case 0x4:
      return Form{"delete", true, 1};
    case 0x5:
      return Form{"put", true, 2};
    case 0x6:
      return Form{"merge", true, 2};
    case 0x7:
      return Form{"single-delete", false, 1};
    case 0x8:
      return Form{"single-delete", true, 1};
    case 0xd:
      return Form{"", false, 0};
    case 0xe:
      return Form{"delete-range", true, 2};
    case 0xf:
      return Form{"delete-range", false, 2};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string BatchText(std::string_view bytes, const std::function<std::string(uint32_t id)>& family) {
  constexpr size_t kSequence = 8;
  constexpr size_t kHeader = 12;
  if (bytes.size() < kHeader) return Quote(bytes);
  uint32_t count = 0;
  std::memcpy(&count, bytes.data() + kSequence, sizeof(count));
  std::string text = std::to_string(count) + " updates";
  for (Parser parser(bytes.substr(kHeader)); !parser.done();) {
    const std::string_view before = parser.rest();
    const std::optional<Form> form = FormOf(parser.Byte());
    if (!form) return text + " unknown " + Quote(before);
    if (form->strings > 0) text += std::string(" ") + form->name;
    if (form->has_family) {
      const std::optional<uint32_t> id = parser.Number();
      if (!id) return text + " cut";
      text += "(" + family(*id) + ")";
    }
    for (int i = 0; i < form->strings; ++i) {
      const std::optional<std::string> string = parser.String();
      if (!string) return text + " cut";
      text += (i == 0 ? " " : "=") + *string;
    }
  }
  return text;
}

}  // namespace braiddb::test
