// db_stress: repeats kill -9, and verifies the database after each. See docs/TESTING.md.
#include "db_stress/flags.h"
#include "db_stress/supervisor.h"
#include "util/standard_streams.h"

int main(int argc, char** argv) {
  braiddb::OpenStandardStreams();
  braiddb::stress::Flags flags;
  auto exit_code = braiddb::stress::ParseFlags(argc, argv, &flags);
  if (!exit_code) exit_code = braiddb::stress::Supervisor(flags).Run();
  return braiddb::FinishStandardOutput("db_stress", *exit_code, 2);
}
