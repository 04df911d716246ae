// Writes records into HDF5 groups.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>

#include "trace/records/extents.h"
#include "trace/records/records.h"

namespace kvscope::trace {

struct RootAttributes {
    std::string generator;
    std::string created_utc;
    std::string recipe_json;
    bool complete = false;
};

void store_root(hid_t file, const RootAttributes& root);

// Each function throws std::invalid_argument, before it writes anything, if a vector breaks a rule of schema.h.

void store_model(hid_t file, const std::string& group, const ModelRecord& record);
void store_prompt(hid_t file, const std::string& group, const PromptRecord& record, const ModelAttributes& model);
/// If `shares`, another prompt's run stores the kept entries and scores. `scores_of` is the run with the shared scores.
void store_run(hid_t file, const std::string& group, const RunRecord& record, const ModelAttributes& model,
               const PromptAttributes& prompt, bool shares, std::optional<int> scores_of = {});
/// Checks a record without writing it. `name` is the run's name in messages.
void require_storable_run(const std::string& name, const RunRecord& record, const ModelAttributes& model,
                          const PromptAttributes& prompt, bool shares = false);

}  // namespace kvscope::trace
