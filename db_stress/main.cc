// db_stress: repeats kill -9, and verifies the database after each. See docs/TESTING.md.
#include "db_stress/flags.h"
#include "db_stress/supervisor.h"

int main(int argc, char** argv) {
  braiddb::stress::Flags flags;
  if (const auto exit_code = braiddb::stress::ParseFlags(argc, argv, &flags)) return *exit_code;
  return braiddb::stress::Supervisor(flags).Run();
}
