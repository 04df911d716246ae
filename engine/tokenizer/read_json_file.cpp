#include "engine/tokenizer/read_json_file.h"

#include "engine/files/checkpoint_error.h"
#include "engine/files/json_text.h"

namespace kvscope::checkpoint {
namespace {

template <class Json>
Json read_object(const std::filesystem::path& file) {
    Json json = parse_json_file<Json>(file);
    if (!json.is_object()) throw CheckpointError(file, "expected a JSON object");
    return json;
}

}  // namespace

nlohmann::json read_json_file(const std::filesystem::path& file) { return read_object<nlohmann::json>(file); }

nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file) {
    return read_object<nlohmann::ordered_json>(file);
}

}  // namespace kvscope::checkpoint
