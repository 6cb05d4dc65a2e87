// What a campaign says at its end.
#pragma once

#include "tests/crash_test/campaign.h"

namespace braiddb::test {

void PrintReport(const CampaignCounters& counters, double seconds);
// The command that does the same again up to this image.
void PrintReplay(const CampaignOptions& options, uint64_t database, uint64_t image);

}  // namespace braiddb::test
