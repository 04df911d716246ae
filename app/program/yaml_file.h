#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::program {

/// A YAML file with one document, a map of keys. Messages name the file and the line.
class YamlFile {
 public:
    /// @param example a line of such a file, for messages
    /// @throws std::runtime_error if the file is unreadable or has more than 1 MiB; std::invalid_argument with file and
    /// line if it is no YAML, or has no keys or several documents
    YamlFile(const std::filesystem::path& path, std::string_view example);

    [[nodiscard]] const YAML::Node& root() const { return root_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// Returns "sweep.yaml:3".
    [[nodiscard]] std::string place(const YAML::Node& at) const;
    /// @throws std::invalid_argument with the place
    [[noreturn]] void fail(const YAML::Node& at, std::string_view why) const;

 private:
    [[nodiscard]] std::string place(const YAML::Mark& mark) const;

    std::string path_;
    YAML::Node root_;
};

}  // namespace kvscope::program
