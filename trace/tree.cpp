#include "trace/tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/json.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

namespace {

/// Maximum depth of groups. A trace needs six levels, and HDF5 walks from the root for each level.
constexpr std::ptrdiff_t deepest = 64;

class TreeList {
 public:
    explicit TreeList(const std::filesystem::path& path) : source_(path) {}

    std::vector<TreeNode> list() {
        if (!source_.is_folder) {
            add(source_.open(source_.path).get(), "/", true);
            return std::move(nodes_);
        }
        add_folder_root();
        if (source_.model) add(source_.open(source_.model->file).get(), "/model", true);
        add_plain_group("/prompts");
        for (const PromptPlace& prompt : source_.prompts) {
            add(source_.open(prompt.file).get(), prompt.group, true);
            add_plain_group(prompt.group + "/runs");
            for (const GroupPlace& run : prompt.runs) add(source_.open(run.file).get(), run.group, true);
        }
        for (const auto& [task, tables] : source_.results) {
            for (const GroupPlace& table : tables) add(source_.open(table.file).get(), table.group, false);
        }
        return std::move(nodes_);
    }

 private:
    /// Whether the group holds a prompt's runs, which are listed separately because they may be in other files.
    bool is_listed_apart(const std::string& group) const {
        return std::any_of(source_.prompts.begin(), source_.prompts.end(),
                           [&](const PromptPlace& prompt) { return group == prompt.group + "/runs"; });
    }

    void add_plain_group(const std::string& path) {
        TreeNode& node = nodes_.emplace_back();
        node.path = path;
        node.is_group = true;
    }

    void add_folder_root() {
        add_plain_group("/");
        for (const auto& [name, value] :
             {std::pair("format", std::string(schema::format)), std::pair("version", source_.version),
              std::pair("generator", source_.root.generator), std::pair("created_utc", source_.root.created_utc),
              std::pair("recipe_json", source_.root.recipe_json)}) {
            nodes_.back().attributes.push_back({name, "text", value});
        }
        nodes_.back().attributes.push_back({"complete", "u8", "0"});
    }

    void add(hid_t file, const std::string& path, bool group) {
        if (std::count(path.begin(), path.end(), '/') > deepest) {
            throw DamagedTrace(
                fmt::format("{}: groups are nested more than {} levels deep in {}…; a trace has six levels",
                            source_.path.string(), deepest, storable_text(path.substr(0, 60))));
        }
        TreeNode node;
        node.path = path;
        node.is_group = group;
        std::vector<std::string> below;
        const h5::Handle object(h5::checked(H5Oopen(file, path.c_str(), H5P_DEFAULT), "open " + path), H5Oclose);
        if (path != "/") {
            const auto [first, is_new] = first_names_.emplace(h5::address(file, path), path);
            // An address identifies an object only within one file, and each part in a folder is a file.
            if (!is_new && !source_.is_folder) node.link_to = first->second;
        }
        for (const std::string& name : h5::attribute_names(object.get())) {
            node.attributes.push_back(attribute(object.get(), name));
        }
        if (!group) {
            const h5::DataSetInfo found = h5::data_set_info(object.get());
            node.type = found.type;
            node.shape.assign(found.shape.begin(), found.shape.end());
            node.bytes = found.bytes;
            node.stored_bytes = found.stored_bytes;
        } else if (node.link_to.empty()) {
            below = h5::members(file, path);
        }
        nodes_.push_back(std::move(node));
        for (const std::string& name : below) {
            const std::string child = (path == "/" ? "/" : path + "/") + name;
            if (source_.is_folder && is_listed_apart(child)) continue;
            H5O_info_t found;
            // Skips links without a target and named types, which the trace format does not use.
            if (H5Oget_info_by_name2(file, child.c_str(), &found, H5O_INFO_BASIC, H5P_DEFAULT) < 0) continue;
            if (found.type != H5O_TYPE_GROUP && found.type != H5O_TYPE_DATASET) continue;
            add(file, child, found.type == H5O_TYPE_GROUP);
        }
    }

    static TreeAttribute attribute(hid_t object, const std::string& name) {
        const auto value = h5::read_attribute(object, name);
        if (!value) return {name, "", ""};
        const auto text = [&]() -> std::string {
            const nlohmann::json::error_handler_t replace = nlohmann::json::error_handler_t::replace;
            switch (value->kind) {
                case h5::Value::Kind::text:
                    if (!value->is_list && value->texts.size() == 1) return value->texts[0];
                    return nlohmann::json(value->texts).dump(-1, ' ', false, replace);
                case h5::Value::Kind::integer:
                    if (!value->is_list && value->integers.size() == 1) {
                        return value->type == "u64" ? std::to_string(static_cast<std::uint64_t>(value->integers[0]))
                                                    : std::to_string(value->integers[0]);
                    }
                    return nlohmann::json(value->integers).dump();
                case h5::Value::Kind::real:
                    if (!value->is_list && value->reals.size() == 1) return fmt::format("{}", value->reals[0]);
                    return nlohmann::json(value->reals).dump();
                case h5::Value::Kind::other:
                    break;
            }
            return "";
        };
        return {name, value->type, text()};
    }

    Source source_;
    std::vector<TreeNode> nodes_;
    std::map<std::uint64_t, std::string> first_names_;
};

}  // namespace

std::vector<TreeNode> tree(const std::filesystem::path& path) {
    const h5::Guard guard;
    return h5::with_place_in_errors(path.string(), [&] { return TreeList(path).list(); });
}

}  // namespace kvscope::trace
