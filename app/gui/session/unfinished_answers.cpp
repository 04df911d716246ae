#include "app/gui/session/unfinished_answers.h"

#include "app/gui/session/stored_json.h"
#include "common/json.h"
#include "trace/part_folder.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* answers_key = "kvscope_answers";
constexpr int answers_version = 1;

fs::path file_of(const fs::path& trace) {
    const fs::path folder = trace.extension() == ".part" ? trace : trace::part_folder_of(trace);
    return folder / trace::answers_name;
}

}  // namespace

void write_unfinished_answers(const fs::path& output, const std::vector<UnfinishedAnswer>& answers) {
    const fs::path file = file_of(output);
    std::error_code error;
    if (!fs::is_directory(file.parent_path(), error)) return;
    json all = json::array();
    for (const UnfinishedAnswer& answer : answers)
        all.push_back({{"prompt", answer.prompt},
                       {"run_number", answer.run_number},
                       {"label", answer.label},
                       {"answer", answer.text},
                       {"tokens", answer.n_tokens},
                       {"ended", answer.has_ended}});
    write_stored_json(file, {{answers_key, answers_version}, {"answers", all}});
}

std::vector<UnfinishedAnswer> read_unfinished_answers(const fs::path& trace) {
    const StoredJson stored = read_stored_json(file_of(trace), answers_key, answers_version);
    std::vector<UnfinishedAnswer> answers;
    if (!stored.contents.contains("answers") || !stored.contents["answers"].is_array()) return answers;
    for (const json& saved : stored.contents["answers"]) {
        try {
            answers.push_back({saved.at("prompt").get<int>(), saved.at("run_number").get<int>(),
                               saved.at("label").get<std::string>(), saved.at("answer").get<std::string>(),
                               saved.at("tokens").get<int64_t>(), saved.at("ended").get<bool>()});
        } catch (const json::exception&) {  // skip a damaged answer
        }
    }
    return answers;
}

}  // namespace kvscope::gui
