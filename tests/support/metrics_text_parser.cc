#include "tests/support/metrics_text_parser.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace braiddb::test {
namespace {

bool IsName(std::string_view name) {
  if (name.empty() || !name.starts_with("braiddb_")) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(MetricsFormat format) : is_open_metrics_(format == MetricsFormat::kOpenMetrics) {}

  ParsedMetrics Run(std::string_view text) {
    bool ended = false;
    if (!text.ends_with('\n')) Fail("the last line has no end");
    for (size_t line = 1; !text.empty() && result_.error.empty(); ++line) {
      const size_t end = text.find('\n');
      const std::string_view content = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      line_ = line;
      if (ended) Fail("a line behind the end");
      if (content == "# EOF" && is_open_metrics_) {
        ended = true;
      } else {
        Line(content);
      }
    }
    EndFamily();
    if (is_open_metrics_ && !ended) Fail("no # EOF");
    return std::move(result_);
  }

 private:
  void Fail(const std::string& what) {
    if (result_.error.empty()) result_.error = "line " + std::to_string(line_) + ": " + what;
  }

  void Line(std::string_view line) {
    if (line.starts_with("# HELP ")) return Help(line.substr(7));
    if (line.starts_with("# TYPE ")) return Type(line.substr(7));
    if (line.starts_with("# UNIT ")) return Unit(line.substr(7));
    if (line.starts_with('#')) return Fail("a comment");
    Sample(line);
  }

  static std::pair<std::string_view, std::string_view> Split(std::string_view text) {
    const size_t space = text.find(' ');
    return {text.substr(0, space), space == std::string_view::npos ? std::string_view() : text.substr(space + 1)};
  }

  void Help(std::string_view text) {
    EndFamily();
    const auto [name, help] = Split(text);
    if (!IsName(name)) return Fail("a bad name");
    if (help.empty()) return Fail("no help");
    if (result_.types.contains(std::string(name))) return Fail("the family is there twice");
    family_ = name;
    type_.clear();
  }

  void Type(std::string_view text) {
    const auto [name, type] = Split(text);
    if (name != family_ || !type_.empty()) return Fail("TYPE does not follow its HELP");
    if (type != "counter" && type != "gauge" && type != "histogram") return Fail("an unknown type");
    type_ = type;
    result_.types[family_] = type_;
  }

  void Unit(std::string_view text) {
    const auto [name, unit] = Split(text);
    if (!is_open_metrics_) return Fail("UNIT is not known to Prometheus");
    if (name != family_ || type_.empty()) return Fail("UNIT does not follow its TYPE");
    if (!name.ends_with("_" + std::string(unit))) return Fail("the name does not end in the unit");
  }

  // Whether the sample's name belongs to the family; `suffix`: what follows the family's name.
  bool BelongsToFamily(std::string_view name, std::string_view* suffix) const {
    if (type_.empty() || !name.starts_with(family_)) return false;
    *suffix = name.substr(family_.size());
    if (type_ == "histogram") return *suffix == "_bucket" || *suffix == "_count" || *suffix == "_sum";
    if (type_ == "counter" && is_open_metrics_) return *suffix == "_total";
    return suffix->empty();
  }

  // Takes one label; false if the text does not begin with one.
  static bool TakeLabel(std::string_view* text, std::string* name, std::string* value) {
    const size_t equals = text->find("=\"");
    if (equals == std::string_view::npos || equals == 0) return false;
    *name = text->substr(0, equals);
    for (const char c : *name) {
      if (!((c >= 'a' && c <= 'z') || c == '_')) return false;
    }
    text->remove_prefix(equals + 2);
    value->clear();
    for (size_t i = 0; i < text->size(); ++i) {
      const char c = (*text)[i];
      if (c == '"') {
        text->remove_prefix(i + 1);
        return true;
      }
      if (c < ' ' || c > '~') return false;
      if (c == '\\' && (++i >= text->size() || std::string_view("\\\"n").find((*text)[i]) == std::string_view::npos))
        return false;
      value->push_back((*text)[i]);
    }
    return false;
  }

  void Sample(std::string_view line) {
    const std::string_view name = line.substr(0, line.find_first_of("{ "));
    std::string_view suffix;
    if (!BelongsToFamily(name, &suffix)) return Fail("a sample of another family");
    std::string_view rest = line.substr(name.size());
    std::string series(name);
    std::string bound;
    if (rest.starts_with('{')) {
      do {
        rest.remove_prefix(1);
        std::string label;
        std::string value;
        if (!TakeLabel(&rest, &label, &value)) return Fail("a bad label");
        if (label == "le") {
          bound = value;
        } else {
          series += "," + label + "=" + value;
        }
      } while (rest.starts_with(','));
      if (!rest.starts_with('}')) return Fail("labels have no end");
      rest.remove_prefix(1);
    }
    if (!rest.starts_with(' ')) return Fail("no value");
    const std::optional<double> value = Number(rest.substr(1));
    if (!value) return Fail("the value is no number");
    if (type_ != "gauge" && *value < 0) return Fail("a negative count");
    if (bound.empty() != (suffix != "_bucket")) return Fail("only a bucket has a bound");
    if (!bound.empty()) Bucket(series, bound, *value);
    if (suffix == "_count" && buckets_ != *value) return Fail("the last bucket is not the count");
    if (!result_.samples.emplace(bound.empty() ? series : series + ",le=" + bound, *value).second) Fail("a sample twice");
    ++samples_of_family_;
  }

  void Bucket(const std::string& series, const std::string& bound, double value) {
    const double limit = bound == "+Inf" ? HUGE_VAL : Number(bound).value_or(-1);
    if (series != bucket_series_) {
      bucket_series_ = series;
      buckets_ = 0;
      bound_ = 0;
    }
    if (limit <= bound_) return Fail("bounds do not grow");
    if (value < buckets_) return Fail("a later bucket has less");
    if (is_open_metrics_ && bound.find_first_of(".eI") == std::string::npos) return Fail("the bound is no floating-point number");
    bound_ = limit;
    buckets_ = value;
  }

  void EndFamily() {
    if (!family_.empty() && samples_of_family_ == 0) Fail("a family without samples");
    if (type_ == "counter" && !is_open_metrics_ && !family_.ends_with("_total")) Fail("a counter does not end in _total");
    if (type_ == "histogram" && std::isfinite(bound_)) Fail("no bucket +Inf");
    family_.clear();
    type_.clear();
    bucket_series_.clear();
    samples_of_family_ = 0;
  }

  const bool is_open_metrics_;
  size_t line_ = 0;
  std::string family_;
  std::string type_;
  size_t samples_of_family_ = 0;
  std::string bucket_series_;
  double bound_ = 0;
  double buckets_ = 0;
  ParsedMetrics result_;
};

}  // namespace

ParsedMetrics ParseMetricsText(std::string_view text, MetricsFormat format) { return Parser(format).Run(text); }

}  // namespace braiddb::test
