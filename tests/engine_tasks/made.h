#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope {

using Changes = std::vector<std::pair<std::string, std::string>>;

struct Made {
    std::vector<engine::TaskSample> samples;
    std::vector<std::string> left_out;
};

[[nodiscard]] inline const checkpoint::Tokenizer& default_tokenizer() {
    static const auto opened = checkpoint::open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    return *opened;
}

/// Makes a task's samples with the default model's tokenizer. Messages name data/samples.jsonl, or the folder data.
/// @param files contents of the file, or of the files of a folder, by TaskOptions::files
[[nodiscard]] inline Made made(const std::string& name, const std::map<std::string, std::string>& files,
                               const Changes& changes = {}, int64_t n_new = 0, int64_t context = 8192) {
    const engine::Task& task = engine::task_named(name);
    engine::TaskOptions options{policies::ParameterValues(task.parameters), files};
    options.values.set("file", files.contains("file") ? "data/samples.jsonl" : "data");
    for (const auto& [parameter, text] : changes) options.values.set(parameter, text);
    Made result;
    result.samples = task.make_samples(
        {task, options, default_tokenizer(), context, n_new > 0 ? n_new : task.n_new, {}, &result.left_out});
    return result;
}

}  // namespace kvscope
