#include "engine/tokenizer/tokenizer_post_processor.h"

#include <fmt/format.h>

namespace kvscope::checkpoint {
namespace {

/// No real id is higher. The limit bounds the memory for a damaged id.
constexpr int64_t highest_id = (int64_t{1} << 24) - 1;

void read_template(const JsonNode& node, Surrounding& out) {
    const JsonNode single = node.at("single");
    bool text_seen = false;
    for (size_t i = 0; i < single.size(); ++i) {
        const JsonNode step = single[i];
        if (step.find("Sequence")) {
            if (text_seen) step.fail("the template contains the text twice, which is not supported");
            text_seen = true;
            continue;
        }
        const JsonNode name = step.at("SpecialToken").at("id");
        const JsonNode ids = node.at("special_tokens").at(name.text()).at("ids");
        for (size_t k = 0; k < ids.size(); ++k) (text_seen ? out.after : out.before).push_back(read_token_id(ids[k]));
    }
    if (!text_seen) single.fail("the template omits the text");
}

}  // namespace

int32_t read_token_id(const JsonNode& node) {
    const int64_t id = node.integer();
    if (id < 0 || id > highest_id) node.fail(fmt::format("token id {} is out of range (0 to {})", id, highest_id));
    return static_cast<int32_t>(id);
}

void read_post_processor(const JsonNode& node, Surrounding& out) {
    const std::string& type = node.at("type").text();
    if (type == "TemplateProcessing") return read_template(node, out);
    if (type == "ByteLevel") return;  // changes only offsets
    if (type == "Sequence") {
        const JsonNode list = node.at("processors");
        for (size_t i = 0; i < list.size(); ++i) read_post_processor(list[i], out);
        return;
    }
    node.fail(
        fmt::format("the post-processor \"{}\" is not supported; supported are TemplateProcessing, ByteLevel, "
                    "Sequence",
                    type));
}

}  // namespace kvscope::checkpoint
