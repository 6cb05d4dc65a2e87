#include "tools/shell.h"

#include <algorithm>
#include <cstdio>

#include "tools/database_verb.h"

namespace braiddb::tools {
namespace {

struct Builtin {
  const char* name;
  const char* arguments;
  const char* what;
};
constexpr Builtin kBuiltins[] = {{"help", "", "this text; <verb> --help has the options of a verb"},
                                 {"use", "<family>", "the column family of the next verbs"},
                                 {"output", "raw|table|json", "how the next verbs print"},
                                 {"bytes", "raw|hex|escape", "the form of keys and values"},
                                 {"quit", "", "end; exit and Ctrl-D do the same"}};

// Reads the escape that begins at line[*at], a backslash, and moves *at behind it.
bool TakeEscape(const std::string& line, size_t* at, std::string* word) {
  constexpr std::string_view kLetters = "ntr0\"\\";
  constexpr std::string_view kBytes("\n\t\r\0\"\\", 6);
  const char letter = *at + 1 < line.size() ? line[*at + 1] : ' ';
  if (letter == 'x' && *at + 3 < line.size()) {
    std::string byte;
    if (!DecodeHex(std::string_view(line).substr(*at + 2, 2), &byte)) return false;
    *word += byte;
    *at += 4;
    return true;
  }
  const size_t found = kLetters.find(letter);
  if (found == std::string_view::npos) return false;
  word->push_back(kBytes[found]);
  *at += 2;
  return true;
}

bool TakeQuoted(const std::string& line, size_t* at, std::string* word, std::string* error) {
  const char quote = line[*at];
  for (++*at; *at < line.size() && line[*at] != quote;) {
    if (quote == '"' && line[*at] == '\\') {
      if (!TakeEscape(line, at, word)) return *error = "a wrong escape; there are \\n \\t \\r \\0 \\xHH \\\" \\\\", false;
    } else {
      word->push_back(line[(*at)++]);
    }
  }
  if (*at == line.size()) return *error = "a quote is not closed", false;
  ++*at;
  return true;
}

struct TypedWord {
  size_t begin = 0;
  std::string value;
  char quote = 0;  // the quote that is open; 0: none
};

// Sets *words to the words before the last one, which may be empty. Returns false in a comment and behind a wrong escape.
bool FindLastWord(const std::string& line, std::vector<std::string>* words, TypedWord* last) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  for (size_t at = 0;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at < line.size() && line[at] == '#') return false;
    *last = {at, "", 0};
    while (at < line.size() && !is_blank(line[at])) {
      const char c = line[at];
      if (c != '"' && c != '\'') {
        last->value.push_back(c);
        ++at;
        continue;
      }
      std::string error;
      if (TakeQuoted(line, &at, &last->value, &error)) continue;
      last->quote = c;
      return at == line.size();
    }
    if (at == line.size()) return true;
    words->push_back(last->value);
  }
}

bool NeedsQuotes(const std::string& name) {
  return name.empty() || std::any_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' || c == '#';
         });
}

// Writes a word so that SplitWords reads it. `quote`: 0 for a word that needs no quotes. In '…' all bytes stand for themselves.
std::string InQuotes(const std::string& name, char quote) {
  if (quote == 0) return name;
  std::string text(1, quote);
  for (const char c : name) {
    if (quote == '"' && (c == '"' || c == '\\')) {
      text += {'\\', c};
    } else if (quote == '"' && static_cast<unsigned char>(c) < ' ') {
      text += "\\x";
      AppendHex(Slice(&c, 1), &text);
    } else {
      text.push_back(c);
    }
  }
  return text + quote;
}

int Complain(const std::string& what) {
  std::fprintf(stderr, "braiddb: %s\n", what.c_str());
  return kCannotLook;
}

int PrintHelp() {
  for (const DatabaseVerb& verb : DatabaseVerbs()) {
    const std::string call = std::string(verb.name) + " " + std::string(verb.arguments);
    std::printf("  %-24s %s\n", call.c_str(), std::string(verb.what).c_str());
  }
  for (const Builtin& builtin : kBuiltins)
    std::printf("  %-24s %s\n", (std::string(builtin.name) + " " + builtin.arguments).c_str(), builtin.what);
  std::printf("Words with blanks stand in quotes: '…', or \"…\" with \\n \\t \\r \\0 \\xHH \\\" \\\\.\n");
  return kSound;
}

int SetOutput(Session* session, const std::string& name) {
  if (name == "raw") return session->style.output = OutputForm::kRaw, kSound;
  if (name == "table") return session->style.output = OutputForm::kTable, kSound;
  if (name == "json") return session->style.output = OutputForm::kJson, kSound;
  return Complain("output is raw, table or json");
}

int SetBytes(Session* session, const std::string& name) {
  if (name == "raw") return session->style.bytes = ByteForm::kRaw, kSound;
  if (name == "hex") return session->style.bytes = ByteForm::kHex, kSound;
  if (name == "escape") return session->style.bytes = ByteForm::kEscape, kSound;
  return Complain("bytes are raw, hex or escape");
}

int Use(Session* session, const std::string& family) {
  if (session->Find(family) == nullptr) return Complain("there is no column family '" + family + "'");
  session->family = family;
  return kSound;
}

}  // namespace

bool SplitWords(const std::string& line, std::vector<std::string>* words, std::string* error) {
  words->clear();
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    if (line[at] == '#') return true;
    std::string word;
    while (at < line.size() && line[at] != ' ' && line[at] != '\t' && line[at] != '\r') {
      if (line[at] != '"' && line[at] != '\'') {
        word.push_back(line[at++]);
      } else if (!TakeQuoted(line, &at, &word, error)) {
        return false;
      }
    }
    words->push_back(std::move(word));
  }
  return true;
}

std::vector<std::string> CompleteLine(const Session& session, const std::string& line, size_t* begin) {
  TypedWord last;
  std::vector<std::string> words;
  if (!FindLastWord(line, &words, &last)) return {};
  *begin = last.begin;
  const std::string before = words.empty() ? "" : words.back();
  std::vector<std::string> all;
  if (words.empty()) {
    for (const DatabaseVerb& verb : DatabaseVerbs()) all.emplace_back(verb.name);
    for (const Builtin& builtin : kBuiltins) all.emplace_back(builtin.name);
  } else if (before == "--family" || before == "use" || before == "drop-family") {
    for (const auto& family : session.families) all.push_back(family->GetName());
  } else if (const DatabaseVerb* verb = FindDatabaseVerb(words[0]); verb != nullptr && last.value.starts_with("-")) {
    all = OptionsOf(*verb);
  }
  std::erase_if(all, [&last](const std::string& candidate) { return !candidate.starts_with(last.value); });
  if (last.quote == 0 && std::any_of(all.begin(), all.end(), NeedsQuotes)) last.quote = '"';
  if (last.quote == '\'')
    std::erase_if(all, [](const std::string& candidate) { return candidate.find('\'') != std::string::npos; });
  for (std::string& candidate : all) candidate = InQuotes(candidate, last.quote);
  return all;
}

int RunLine(Session* session, const std::string& line, bool* ends) {
  std::vector<std::string> words;
  std::string error;
  if (!SplitWords(line, &words, &error)) return Complain(error);
  if (words.empty()) return kSound;
  const std::string name = words[0];
  words.erase(words.begin());
  if (name == "quit" || name == "exit") return *ends = true, kSound;
  if (name == "help") return PrintHelp();
  if (name == "use" || name == "output" || name == "bytes") {
    if (words.size() != 1) return Complain(name + " takes one argument");
    if (name == "use") return Use(session, words[0]);
    return name == "output" ? SetOutput(session, words[0]) : SetBytes(session, words[0]);
  }
  const DatabaseVerb* const verb = FindDatabaseVerb(name);
  if (verb == nullptr) return Complain("there is no verb '" + name + "'; help lists all");
  return RunInSession(*verb, session, words);
}

}  // namespace braiddb::tools
