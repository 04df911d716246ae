#include "app/program/yaml_file.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "app/program/input_files.h"

namespace kvscope::program {
namespace {

constexpr size_t largest_file = 1 << 20;  // in bytes

/// Returns the cause of a message of yaml-cpp and its remedy.
std::string explain_yaml_error(const std::string& message) {
    constexpr std::pair<std::string_view, std::string_view> causes[] = {
        {"end of sequence flow not found", "a list that begins with [ has no ]"},
        {"end of map flow not found", "settings that begin with { have no }"},
        {"illegal flow end", "found ] or } without the matching [ or {"},
        {"illegal EOF in scalar", "a text in quotes has no closing quote"},
        {"illegal tab when looking for indentation", "the line begins with a tab: use spaces"},
        {"illegal map value", "found a second ':' in a line, or a wrong indentation: quote texts that contain ': '"},
        {"end of map not found", "expected `option: value` with the same indentation as the lines above"},
        {"end of sequence not found", "expected `- value` with the same indentation as the lines above"},
    };
    for (const auto& [found, cause] : causes)
        if (message == found) return std::string(cause);
    return fmt::format("the file is not valid YAML: {}", message);
}

}  // namespace

YamlFile::YamlFile(const std::filesystem::path& path, std::string_view example) : path_(path.string()) {
    const std::string text = read_text(path, largest_file);
    try {
        const std::vector<YAML::Node> documents = YAML::LoadAll(text);
        if (documents.size() > 1)
            fail(documents[1], "expected one document, found another after `---`: write all settings into one");
        root_ = documents.empty() ? YAML::Node() : documents.front();
        if (!root_.IsMap()) fail(root_, fmt::format("expected lines such as `{}`, found no keys", example));
    } catch (const YAML::Exception& error) {
        throw std::invalid_argument(fmt::format("{}: {}", place(error.mark), explain_yaml_error(error.msg)));
    }
}

std::string YamlFile::place(const YAML::Node& at) const { return place(at.Mark()); }

std::string YamlFile::place(const YAML::Mark& mark) const {
    return mark.is_null() ? path_ : fmt::format("{}:{}", path_, mark.line + 1);
}

void YamlFile::fail(const YAML::Node& at, std::string_view why) const {
    throw std::invalid_argument(fmt::format("{}: {}", place(at), why));
}

}  // namespace kvscope::program
