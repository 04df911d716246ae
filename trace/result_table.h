// One row of /results/<task> in the memory layout that HDF5 reads and writes.
#pragma once

#include <cstdint>

#include "trace/hdf5/hdf5.h"

namespace kvscope::trace {

struct PackedResultRow {
    const char* sample_id;
    const char* prompt_hash;
    const char* policy;
    const char* parameters_json;
    std::int64_t budget;
    double budget_fraction;
    std::int64_t length;
    double depth;
    const char* prediction;
    const char* answers_json;
    const char* metric;
    const char* scored_as;
    double score;
    double seconds;
    double kept_share;
    const char* status;
};
static_assert(sizeof(PackedResultRow) == 16 * 8, "columns must follow one another without padding");

template <class Row, class Visit>
void for_each_result_column(Row& row, Visit visit) {
    visit("sample_id", row.sample_id);
    visit("prompt_hash", row.prompt_hash);
    visit("policy", row.policy);
    visit("parameters_json", row.parameters_json);
    visit("budget", row.budget);
    visit("budget_fraction", row.budget_fraction);
    visit("length", row.length);
    visit("depth", row.depth);
    visit("prediction", row.prediction);
    visit("answers_json", row.answers_json);
    visit("metric", row.metric);
    visit("scored_as", row.scored_as);
    visit("score", row.score);
    visit("seconds", row.seconds);
    visit("kept_share", row.kept_share);
    visit("status", row.status);
}

[[nodiscard]] h5::Handle result_table_type();

}  // namespace kvscope::trace
