// The shell: lines of verbs on one open database.
#pragma once

#include <string>
#include <vector>

#include "tools/session.h"

namespace braiddb::tools {

// Cuts a line into words at blanks. Quotes hold words with blanks: '…' as it is; "…" with \n, \t, \r, \0, \xHH, \" and \\.
// # begins a comment. Returns false if a quote is not closed or an escape is wrong; *error says it.
bool SplitWords(const std::string& line, std::vector<std::string>* words, std::string* error);

// What may stand in place of the last word of `line`, which begins at *begin: verbs, options of the verb, names of column
// families behind --family, use and drop-family. If a name has blanks, all are in quotes, of the kind that the word begins with.
std::vector<std::string> CompleteLine(const Session& session, const std::string& line, size_t* begin);

// Runs one line. Returns an ExitCode; sets *ends for `quit`.
int RunLine(Session* session, const std::string& line, bool* ends);

}  // namespace braiddb::tools
