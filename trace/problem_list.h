// The parts of check(): a list of problems, and the checks of groups and of values that add to it.
#pragma once

#include <hdf5.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "trace/check_trace.h"
#include "trace/extents.h"
#include "trace/schema.h"
#include "trace/source.h"

namespace kvscope::trace {

class Problems {
 public:
    void error(std::string path, std::string expected, std::string found) {
        list_.push_back({Problem::Severity::error, std::move(path), std::move(expected), std::move(found)});
    }
    void warning(std::string path, std::string expected, std::string found) {
        list_.push_back({Problem::Severity::warning, std::move(path), std::move(expected), std::move(found)});
    }
    std::vector<Problem> take() { return std::move(list_); }

 private:
    std::vector<Problem> list_;
};

/// Data sets that are there with the right type and shape, so that their values can be looked at.
using Sound = std::set<const schema::DataSet*>;

/// Every attribute of the list: there, of the right type, one value or a list.
void check_attributes(hid_t object, const std::string& path, std::span<const schema::Attribute> attributes,
                      Problems& problems);

/// Every data set of the list; those in `excused` may be missing.
Sound check_data_sets(hid_t file, const std::string& group, std::span<const schema::DataSet* const> data_sets,
                      const Extents& extents, const Sound& excused, Problems& problems);

// Values, layer by layer, of whatever is sound. At most one problem for each data set and rule.

void check_model_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                        Problems& problems);
void check_prompt_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                         const PromptAttributes& prompt, Problems& problems);
void check_run_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                      const PromptAttributes& prompt, const RunAttributes& run, Problems& problems);

}  // namespace kvscope::trace
