// braiddb import and load.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "index/level_kind.h"
#include "pmem/posix.h"
#include "tools/command.h"
#include "tools/formats/line_reader.h"
#include "tools/import_state.h"
#include "tools/importer.h"
#include "tools/interrupt.h"
#include "tools/store_reader.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;
using Takes = CommandLine::Takes;

struct ImportArguments {
  std::string database;
  std::string file;  // empty: the standard input
  std::string format;
  std::string store;    // rocksdb, leveldb or lmdb
  std::string library;  // of that store
  std::string family;
  std::string skip_file;
  std::string l1;
  OpenSettings settings;
  bool is_hex = false;
  bool is_escape = false;
  bool resumes = false;
  bool as_json = false;
};

// The opened source of an import.
struct Origin {
  posix::Fd fd;          // of a file
  bool is_file = false;  // that has a position
  std::string name;
  std::string path;      // absolute
  std::string settings;  // ImportState::settings
  std::unique_ptr<RecordReader> reader;
  Progress::Unit unit = Progress::Unit::kEntries;
  uint64_t total = 0;
};

// Takes the format from --format, the name or the first bytes.
Status ChooseFormat(const ImportArguments& arguments, const Origin& source, LineInput* input, RecordFormat* format) {
  if (!arguments.format.empty()) {
    return ParseRecordFormat(arguments.format, format)
               ? Status::OK()
               : Status::InvalidArgument("--format " + arguments.format + " is none of csv, tsv, jsonl, mdb, db, ldb");
  }
  if (GuessRecordFormat(arguments.file, {}, format)) return Status::OK();
  constexpr size_t kMostLooked = 256 << 10;  // bytes; a line of `ldb dump` has a key in its front part
  const std::string_view first = input->Peek(kMostLooked);
  if (!input->status().ok()) return input->status();
  return GuessRecordFormat(arguments.file, first, format)
             ? Status::OK()
             : Status::InvalidArgument(source.name + ": the format is not known; choose it by --format");
}

Status OpenFileSource(const ImportArguments& arguments, Origin* source) {
  const bool is_standard = arguments.file.empty() || arguments.file == "-";
  source->name = is_standard ? "standard input" : arguments.file;
  const int fd = is_standard ? dup(STDIN_FILENO) : open(arguments.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return StatusFromErrno(errno, source->name);
  source->fd = posix::Fd(fd);
  struct stat file {};
  if (fstat(fd, &file) != 0) return StatusFromErrno(errno, source->name);
  if (S_ISDIR(file.st_mode)) {
    return Status::InvalidArgument(source->name + " is a directory; for one of another store, choose --from");
  }
  source->is_file = !is_standard && S_ISREG(file.st_mode);
  source->unit = Progress::Unit::kBytes;
  source->total = source->is_file ? static_cast<uint64_t>(file.st_size) : 0;
  std::error_code error;
  if (source->is_file) source->path = std::filesystem::canonical(arguments.file, error);
  RecordFormat format;
  auto input = std::make_unique<LineInput>(fd);
  if (Status status = ChooseFormat(arguments, *source, input.get(), &format); !status.ok()) return status;
  const ByteForm bytes = arguments.is_hex ? ByteForm::kHex : arguments.is_escape ? ByteForm::kEscape : ByteForm::kRaw;
  source->settings = "format " + std::to_string(static_cast<int>(format)) + ", bytes " + std::to_string(static_cast<int>(bytes)) +
                     ", family " + arguments.family;
  source->reader = MakeRecordReader(format, bytes, std::move(input));
  return Status::OK();
}

Status OpenStoreSource(const ImportArguments& arguments, Origin* source) {
  std::error_code error;
  source->name = arguments.file;
  source->path = std::filesystem::canonical(arguments.file, error);
  if (error) return Status::NotFound(arguments.file + ": there is no such directory");
  source->settings = "store " + arguments.store + ", family " + arguments.family;
  return OpenStore(arguments.store, arguments.file, arguments.library, &source->reader, &source->total);
}

// An import that appends to its own input has no end, and the file of its state is replaced and removed.
Status CheckSkipFile(const ImportArguments& arguments, const Origin& source) {
  std::error_code error;
  const auto absolute = [&error](const std::string& path) { return std::filesystem::weakly_canonical(path, error); };
  if (!arguments.skip_file.empty() && absolute(arguments.skip_file) == absolute(ImportStatePath(arguments.database)))
    return Status::InvalidArgument(arguments.skip_file + ": is for the state of the import; give --skip-errors another file");
  struct stat skip_file {};
  struct stat file {};
  if (arguments.skip_file.empty() || source.fd.get() < 0 || stat(arguments.skip_file.c_str(), &skip_file) != 0 ||
      fstat(source.fd.get(), &file) != 0 || !S_ISREG(file.st_mode))
    return Status::OK();
  if (skip_file.st_dev != file.st_dev || skip_file.st_ino != file.st_ino) return Status::OK();
  return Status::InvalidArgument(arguments.skip_file + ": is the input; give --skip-errors another file");
}

uint64_t OffsetOf(const std::string& state) {
  uint64_t offset = 0;
  std::from_chars(state.data(), state.data() + state.size(), offset);
  return offset;
}

Status Save(const ImportArguments& arguments, const Origin& source, const std::string& state) {
  if (source.path.empty()) return Status::OK();  // a pipe cannot be read again
  ImportState saved{0, source.path, source.settings, state, 0};
  if (Status status = ReadDatabaseId(arguments.database, &saved.database); !status.ok()) return status;
  if (source.is_file) {
    if (Status status = ChecksumBefore(source.fd.get(), OffsetOf(state), &saved.checksum); !status.ok()) return status;
  }
  return SaveImportState(arguments.database, saved);
}

Status Resume(const ImportArguments& arguments, const Origin& source) {
  ImportState saved;
  uint64_t database = 0;
  if (source.path.empty())
    return Status::InvalidArgument("--resume needs a file or a store; the standard input cannot be read again");
  if (Status status = LoadImportState(arguments.database, &saved); !status.ok()) return status;
  if (Status status = ReadDatabaseId(arguments.database, &database); !status.ok()) return status;
  if (database != saved.database)
    return Status::InvalidArgument("the stopped import was into another database of this name; import without --resume");
  if (saved.source != source.path)
    return Status::InvalidArgument("the stopped import is of " + saved.source + "; import without --resume");
  if (saved.settings != source.settings)
    return Status::InvalidArgument(
        "the stopped import had another format, --hex, --escape, --from or --family; give the same, or import without --resume");
  uint64_t checksum = 0;
  if (source.is_file) {
    if (Status status = ChecksumBefore(source.fd.get(), OffsetOf(saved.reader), &checksum); !status.ok()) return status;
  }
  if (checksum != saved.checksum)
    return Status::InvalidArgument(source.name +
                                   ": has changed before the place where the import stopped; import without --resume");
  return source.reader->RestoreState(saved.reader);
}

int Print(const ImportArguments& arguments, const Origin& source, const ImportReport& report) {
  if (report.is_complete || arguments.as_json) {
    Facts facts;
    facts.Add("records", report.records);
    facts.Add("skipped", report.skipped);
    facts.Add("sorted", report.is_sorted);
    facts.Add("complete", report.is_complete);
    facts.Print({arguments.as_json ? OutputForm::kJson : OutputForm::kRaw, ByteForm::kRaw});
  }
  if (!report.is_complete) {
    std::fprintf(stderr, "braiddb: stopped after %" PRIu64 " records%s\n", report.records,
                 source.path.empty() ? "" : "; import again with --resume to go on");
    return kCannotLook;
  }
  if (report.skipped == 0) return kSound;
  std::fprintf(stderr, "braiddb: %" PRIu64 " broken records are in %s\n", report.skipped, arguments.skip_file.c_str());
  return kDamaged;
}

int RunWith(const ImportArguments& arguments) {
  Origin source;
  Session session;
  const InterruptGuard guard;
  Status status = arguments.store.empty() ? OpenFileSource(arguments, &source) : OpenStoreSource(arguments, &source);
  if (status.ok()) status = CheckSkipFile(arguments, source);
  // The open database keeps other imports away from the state.
  if (status.ok()) status = session.Open(arguments.database, arguments.settings);
  if (status.ok()) status = arguments.resumes ? Resume(arguments, source) : RemoveImportState(arguments.database);
  if (!status.ok()) return CannotLook(status);
  session.family = arguments.family;
  ImportJob job;
  job.session = &session;
  job.reader = source.reader.get();
  job.source = source.name;
  job.skip_file = arguments.skip_file;
  job.unit = source.unit;
  job.total = source.total;
  job.threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
  job.save_state = [&](const std::string& state) { return Save(arguments, source, state); };
  ImportReport report;
  status = Import(job, &report);
  const Status closed = session.Close();
  if (status.ok()) status = closed;
  if (status.ok() && report.is_complete) status = RemoveImportState(arguments.database);
  if (status.ok()) return Print(arguments, source, report);
  std::fprintf(stderr, "braiddb: %" PRIu64 " records are written\n", report.records);
  return CannotLook(status);
}

int Parse(CommandLine* line, const Arguments& given, ImportArguments* arguments) {
  line->Add()("family", po::value(&arguments->family)->value_name("NAME")->default_value(kDefaultColumnFamilyName),
              "the column family of records that name none; created if it does not exist")(
      "skip-errors", po::value(&arguments->skip_file)->value_name("FILE"), "append broken records to FILE and go on")(
      "resume", po::bool_switch(&arguments->resumes), "go on where the last import of this file or store stopped")(
      "regions", po::value(&arguments->settings.regions)->value_name("N"), "regions of a new database")(
      "region-path", po::value(&arguments->settings.region_paths)->value_name("DIRECTORY"),
      "directory of a region of a new database, once for each")(
      "l1", po::value(&arguments->l1)->value_name("KIND"), ("last level of a new database: " + LevelKindNames(" or ")).c_str())(
      "json", po::bool_switch(&arguments->as_json), "print JSON");
  int exit_code = kSound;
  if (!line->Parse(given, &exit_code)) return exit_code == kSound ? -1 : exit_code;
  arguments->database = line->Positional(0);
  if (line->values().size() > 1) arguments->file = line->Positional(1);
  arguments->settings.access = arguments->resumes ? Access::kWrite : Access::kCreate;
  if (!arguments->l1.empty() && !ParseL1(arguments->l1, &arguments->settings.l1))
    return line->Refuse("--l1 is neither " + LevelKindNames(" nor "));
  return kSound;
}

}  // namespace

int RunImport(const Arguments& given) {
  CommandLine line("braiddb import [option...] <database> [<file>]", {"database"}, Takes::kArguments, 1);
  ImportArguments arguments;
  line.Add()(
      "format", po::value(&arguments.format)->value_name("NAME"),
      "csv, tsv, jsonl, mdb (mdb_dump), db (db_dump), ldb (ldb dump --hex); default: by the file's name or its first bytes")(
      "from", po::value(&arguments.store)->value_name("STORE"), "rocksdb, leveldb or lmdb: <file> is a directory of that store")(
      "library", po::value(&arguments.library)->value_name("FILE"), "the shared library of the store; default: the system's")(
      "hex", po::bool_switch(&arguments.is_hex), "fields of CSV and TSV are hexadecimal")(
      "escape", po::bool_switch(&arguments.is_escape), "fields of CSV and TSV have escapes %XX");
  const int exit_code = Parse(&line, given, &arguments);
  if (exit_code != kSound) return exit_code < 0 ? kSound : exit_code;
  if (arguments.is_hex && arguments.is_escape) return line.Refuse("--hex and --escape exclude each other");
  if (!arguments.store.empty() && (arguments.file.empty() || !arguments.format.empty()))
    return line.Refuse("--from needs a directory, and takes no --format");
  return RunWith(arguments);
}

int RunLoad(const Arguments& given) {
  CommandLine line("braiddb load [option...] <database> [<file>]", {"database"}, Takes::kArguments, 1);
  ImportArguments arguments;
  arguments.format = "ldb";
  const int exit_code = Parse(&line, given, &arguments);
  if (exit_code != kSound) return exit_code < 0 ? kSound : exit_code;
  return RunWith(arguments);
}

}  // namespace braiddb::tools
