#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "common/json.h"
#include "trace/read_block.h"
#include "trace/tree.h"

namespace kvscope::gui {
namespace {

using trace::DataSetBlock;
using trace::DataSetValue;
using trace::TreeNode;

constexpr size_t rows_a_block = 256;  // values are read in blocks of rows, at most three blocks at a time
constexpr size_t most_columns = 64;
constexpr size_t long_text = 160;
constexpr size_t most_text = 20'000;

template <class Integer>
std::string shape_text(const std::vector<Integer>& shape) {
    if (shape.empty()) return "single value";
    std::string out;
    for (const auto extent : shape)
        out += fmt::format("{}{}", out.empty() ? "" : " × ", analysis::format_count(static_cast<int64_t>(extent)));
    return out;
}

struct Contents {
    std::vector<TreeNode> nodes;
    std::vector<std::vector<size_t>> children;  ///< child nodes of each node
    std::map<std::string, size_t> by_path;
};

Contents read_contents(const std::filesystem::path& path) {
    Contents contents;
    contents.nodes = trace::tree(path);
    contents.children.resize(contents.nodes.size());
    for (size_t i = 0; i < contents.nodes.size(); ++i) {
        const std::string& name = contents.nodes[i].path;
        contents.by_path[name] = i;
        if (name == "/") continue;
        const size_t slash = name.rfind('/');
        const auto parent = contents.by_path.find(slash == 0 ? "/" : name.substr(0, slash));
        if (parent != contents.by_path.end()) contents.children[parent->second].push_back(i);
    }
    return contents;
}

std::string shown_value(const DataSetValue& value) {
    if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.7g}", *number);
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return "–";
}

class TraceView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (session.documents().empty())
            return draw_nothing(context, open_trace_or_demo() + " to see what its file contains.");
        const Document* document = session.document(document_);
        if (!document || !chosen_) document = session.focus();
        document_ = document->id();
        if (session.documents().size() > 1) draw_documents(context);
        const auto answer = session.tasks.ask(contents_, std::to_string(document_), document->stamp(),
                                              [path = document->file()->path()] { return read_contents(path); });
        if (!answer.error.empty()) return draw_error(context, answer.error);
        if (!answer.value || !answer.current) return draw_nothing(context, "reading the file's contents …");
        const Contents& contents = *answer.value;
        const float em = ImGui::GetFontSize();
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool is_narrow = room.x < 34 * em;  // a narrow view stacks its parts
        const ImVec2 tree = is_narrow ? ImVec2{0, std::max(0.4f * room.y, 6 * em)}
                                      : ImVec2{std::clamp(0.4f * room.x, 14 * em, 34 * em), 0};
        ImGui::BeginChild(is_narrow ? "tree above" : "tree", tree,
                          is_narrow ? ImGuiChildFlags_ResizeY : ImGuiChildFlags_ResizeX);
        if (!contents.nodes.empty()) draw_node(context, contents, 0);  // the root
        ImGui::EndChild();
        is_narrow ? ImGui::Separator() : ImGui::SameLine();
        ImGui::BeginChild("details");
        const auto selected = contents.by_path.find(selected_);
        if (selected == contents.by_path.end())
            draw_nothing(context, "Click a group to see its attributes, or a data set to see its values.");
        else
            draw_details(context, *document, contents.nodes[selected->second]);
        ImGui::EndChild();
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a group", "show its attributes"},
                {"click a data set", "show its values; the fields above choose the indices of the leading dimensions"},
                {"hover a value", "show its position, and the full text of a long value"}};
    }

    void save(nlohmann::json& state) const override { state["path"] = selected_; }
    void load(const nlohmann::json& state) override {
        selected_ = state.value("path", std::string("/"));
        if (!state.contains(shown_document)) return;
        document_ = state.value(shown_document, -1);
        chosen_ = true;
    }

 private:
    void draw_documents(const Context& context) {
        const Session& session = context.session;
        const Document& shown = *session.document(document_);
        draw_trace_badge(context, shown);
        ImGui::SameLine();
        const float width = std::min(ImGui::GetContentRegionAvail().x, 40 * ImGui::GetFontSize());
        const float room = width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x;
        ImGui::SetNextItemWidth(width);
        const std::string name = text_that_fits(session.name_of(shown), room);
        const bool is_open = ImGui::BeginCombo("##trace file", name.c_str());
        if (!is_open) item_tooltip(shown.path());
        if (!is_open) return;
        for (const auto& document : session.documents()) {
            ImGui::PushID(document->id());
            draw_trace_badge(context, *document);
            ImGui::SameLine();
            if (ImGui::Selectable(session.name_of(*document).c_str(), document->id() == document_)) {
                document_ = document->id();
                chosen_ = true;
            }
            ImGui::PopID();
        }
        ImGui::EndCombo();
    }

    void draw_node(Context& context, const Contents& contents, size_t index) {
        const TreeNode& node = contents.nodes[index];
        const size_t slash = node.path.rfind('/');
        const std::string name = node.path == "/" ? "/" : node.path.substr(slash + 1);
        ImGuiTreeNodeFlags flags =
            ImGuiTreeNodeFlags_SpanAvailWidth | ImGuiTreeNodeFlags_OpenOnArrow | ImGuiTreeNodeFlags_OpenOnDoubleClick;
        if (contents.children[index].empty()) flags |= ImGuiTreeNodeFlags_Leaf | ImGuiTreeNodeFlags_NoTreePushOnOpen;
        if (node.path == "/" || node.path == "/prompts") flags |= ImGuiTreeNodeFlags_DefaultOpen;
        if (node.path == selected_) flags |= ImGuiTreeNodeFlags_Selected;
        const bool open = ImGui::TreeNodeEx(name.c_str(), flags);
        if (ImGui::IsItemClicked() && !ImGui::IsItemToggledOpen()) select(node.path);
        if (!node.link_to.empty()) ImGui::SetItemTooltip("the same as %s", node.link_to.c_str());
        const std::string note = node.is_group ? label_of(node) : shape_text(node.shape) + "  " + node.type;
        if (!note.empty()) {
            ImGui::SameLine();
            ImGui::TextColored(context.theme.ink_quiet, "%s", note.c_str());
        }
        if (!open || (flags & ImGuiTreeNodeFlags_NoTreePushOnOpen)) return;
        for (const size_t child : contents.children[index]) draw_node(context, contents, child);
        ImGui::TreePop();
    }

    static std::string label_of(const TreeNode& node) {
        for (const char* wanted : {"label", "name"}) {
            for (const auto& attribute : node.attributes)
                if (attribute.name == wanted) return attribute.value;
        }
        return "";
    }

    void select(const std::string& path) {
        if (path == selected_) return;
        selected_ = path;
        index_.clear();
        first_column_ = 0;
        visible_row_ = 0;
    }

    void draw_details(Context& context, const Document& document, const TreeNode& node) {
        ImGui::PushTextWrapPos();
        text_in(context.fonts.mono, node.path);
        if (!node.is_group)
            disabled_text(fmt::format("{} · {} · {}, {} in the file", shape_text(node.shape), node.type,
                                      analysis::format_bytes(static_cast<double>(node.bytes)),
                                      analysis::format_bytes(static_cast<double>(node.stored_bytes))));
        if (!node.link_to.empty()) ImGui::TextDisabled("the same as %s", node.link_to.c_str());
        ImGui::PopTextWrapPos();
        draw_attributes(context, node);
        if (!node.is_group) draw_data_set(context, document, node);
    }

    static void draw_attributes(const Context& context, const TreeNode& node) {
        if (node.attributes.empty()) {
            if (node.is_group) ImGui::TextDisabled("no attributes");
            return;
        }
        ImGui::PushID(node.path.c_str());
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH;
        if (ImGui::BeginTable("attributes", 3, flags)) {
            ImGui::TableSetupColumn("attribute");
            ImGui::TableSetupColumn("type");
            ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
            ImGui::TableHeadersRow();
            for (const auto& attribute : node.attributes) {
                ImGui::TableNextRow();
                ImGui::TableNextColumn();
                ImGui::TextUnformatted(attribute.name.c_str());
                ImGui::TableNextColumn();
                ImGui::TextDisabled("%s", attribute.type.c_str());
                ImGui::TableNextColumn();
                ImGui::PushFont(context.fonts.mono, 0);
                draw_text_value(attribute);
                ImGui::PopFont();
            }
            ImGui::EndTable();
        }
        ImGui::PopID();
    }

    static void draw_text_value(const trace::TreeAttribute& attribute) {
        const std::string& value = attribute.value;
        if (value.size() <= long_text && value.find('\n') == std::string::npos) return text_item(value);
        ImGui::PushID(attribute.name.c_str());
        if (ImGui::SmallButton("Copy")) ImGui::SetClipboardText(value.c_str());
        ImGui::SameLine();
        quiet_text(fmt::format("{} characters{}", analysis::format_count(static_cast<int64_t>(value.size())),
                               value.size() > most_text ? ", the first 20,000 are shown" : ""));
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const auto n_lines = static_cast<float>(std::min<size_t>(value.size() / 60 + 2, 10));
        ImGui::BeginChild("text", {0, n_lines * line}, ImGuiChildFlags_ResizeY);
        ImGui::PushTextWrapPos(0);
        ImGui::TextUnformatted(value.c_str(), value.c_str() + std::min(value.size(), most_text));
        ImGui::PopTextWrapPos();
        ImGui::EndChild();
        ImGui::PopID();
    }

    void draw_data_set(Context& context, const Document& document, const TreeNode& node) {
        const size_t n_dimensions = node.shape.size();
        // The table shows the last two dimensions. A compound data set has one dimension and several columns.
        const size_t n_leading = n_dimensions > 2 ? n_dimensions - 2 : 0;
        index_.resize(n_leading);
        for (size_t d = 0; d < n_leading; ++d) {
            if (d > 0) ImGui::SameLine();
            int at = index_[d];
            ImGui::SetNextItemWidth(8 * ImGui::GetFontSize());
            ImGui::InputInt(fmt::format("of {}##trace index {}", node.shape[d], d).c_str(), &at);
            index_[d] = std::clamp(at, 0, static_cast<int>(node.shape[d]) - 1);
        }
        const std::string place = fmt::format("{} {}", node.path, fmt::join(index_, ","));
        const auto answer = ask_values(context, document, node, n_leading);
        if (!answer.error.empty()) {
            quiet_text(answer.error);
            return;
        }
        if (!answer.value) return ImGui::TextDisabled("reading …");
        if (shown_of_ != place && !answer.current) {
            ImGui::TextDisabled("reading …");  // the values belong to another data set or another part of it
            return;
        }
        if (answer.current) shown_of_ = place;
        const DataSetBlock& peek = *answer.value;
        const bool is_table = !peek.column_types.empty() && !peek.names.empty();
        const size_t n_rows = n_dimensions == 0 ? 1 : node.shape[n_dimensions >= 2 ? n_dimensions - 2 : 0];
        const size_t n_columns =
            n_dimensions >= 2 ? static_cast<size_t>(node.shape.back()) : std::max<size_t>(peek.n_columns, 1);
        draw_columns_choice(is_table, n_columns, n_dimensions);
        draw_summary(peek);
        draw_values(context, peek, n_rows);
    }

    TaskResult<DataSetBlock> ask_values(Context& context, const Document& document, const TreeNode& node,
                                        size_t n_leading) const {
        std::vector<size_t> first;
        for (size_t d = 0; d < n_leading; ++d) first.push_back(static_cast<size_t>(index_[d]));
        const size_t block = visible_row_ / rows_a_block;
        const size_t first_row = block > 0 ? (block - 1) * rows_a_block : 0;
        if (!node.shape.empty()) first.push_back(first_row);
        if (node.shape.size() >= 2) first.push_back(static_cast<size_t>(first_column_));
        std::string stamp = document.stamp() + node.path;
        for (const size_t at : first) stamp += fmt::format(" {}", at);
        const auto path = document.file()->path();  // the folder of an unfinished trace
        return context.session.tasks.ask(values_, std::to_string(document_), stamp, [path, name = node.path, first] {
            return trace::read_data_set_block(path, name, first, 3 * rows_a_block, most_columns);
        });
    }

    void draw_columns_choice(bool is_table, size_t n_columns, size_t n_dimensions) {
        if (is_table || n_dimensions < 2 || n_columns <= most_columns) return;
        const auto last = std::min(static_cast<size_t>(first_column_) + most_columns, n_columns) - 1;
        int at = first_column_;
        ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
        ImGui::InputInt(fmt::format("to {} of {} columns##trace column", last, n_columns).c_str(), &at,
                        static_cast<int>(most_columns), 10 * static_cast<int>(most_columns));
        first_column_ = std::clamp(at, 0, static_cast<int>(n_columns) - 1);
    }

    static void draw_summary(const DataSetBlock& peek) {
        double least = 0;
        double most = 0;
        double sum = 0;
        size_t n = 0;
        size_t n_nan = 0;
        for (const DataSetValue& value : peek.values) {
            const auto* number = std::get_if<double>(&value);
            if (!number) continue;
            if (std::isnan(*number)) {
                ++n_nan;
                continue;
            }
            least = n == 0 ? *number : std::min(least, *number);
            most = n == 0 ? *number : std::max(most, *number);
            sum += *number;
            ++n;
        }
        if (n == 0) return;
        quiet_text(fmt::format("{} values read: min {:.6g}, max {:.6g}, mean {:.6g}{}",
                               analysis::format_count(static_cast<int64_t>(n + n_nan)), least, most,
                               sum / static_cast<double>(n), n_nan > 0 ? fmt::format(", {} NaN", n_nan) : ""));
    }

    void draw_values(Context& context, const DataSetBlock& peek, size_t n_rows) {
        if (peek.n_columns == 0 || n_rows == 0) return ImGui::TextDisabled("empty");
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_Resizable |
                                          ImGuiTableFlags_BordersInnerV;
        ImGui::PushFont(context.fonts.mono, 0);
        ImGui::PushID(selected_.c_str());
        if (ImGui::BeginTable("values", static_cast<int>(peek.n_columns) + 1, flags)) {
            ImGui::TableSetupScrollFreeze(1, 1);
            ImGui::TableSetupColumn("");
            for (size_t c = 0; c < peek.n_columns; ++c) {
                const std::string name =
                    c < peek.names.size() ? peek.names[c] : fmt::format("{}", peek.first_column + c);
                ImGui::TableSetupColumn(name.c_str());
            }
            ImGui::TableHeadersRow();
            ImGuiListClipper clipper;
            clipper.Begin(static_cast<int>(std::min<size_t>(n_rows, 100'000'000)));
            while (clipper.Step()) {
                for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
                    if (row > 0) visible_row_ = static_cast<size_t>(row);
                    draw_row(peek, static_cast<size_t>(row));
                }
            }
            if (ImGui::GetScrollY() == 0) visible_row_ = 0;
            ImGui::EndTable();
        }
        ImGui::PopID();
        ImGui::PopFont();
    }

    static void draw_row(const DataSetBlock& peek, size_t row) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        ImGui::TextDisabled("%zu", row);
        const bool is_read = row >= peek.first_row && row < peek.first_row + peek.n_rows;
        for (size_t c = 0; c < peek.n_columns; ++c) {
            if (!ImGui::TableNextColumn()) continue;
            if (!is_read) {
                ImGui::TextDisabled("…");
                continue;
            }
            const std::string value = shown_value(peek.at(row - peek.first_row, c));
            const size_t line_end = std::min(value.find('\n'), size_t{80});
            text_item(std::string_view(value).substr(0, line_end));
            if (ImGui::IsItemHovered()) {
                const std::string column =
                    c < peek.names.size() ? peek.names[c] : fmt::format("column {}", peek.first_column + c);
                ImGui::BeginTooltip();
                ImGui::TextDisabled("row %zu, %s", row, column.c_str());
                ImGui::PushTextWrapPos(40 * ImGui::GetFontSize());
                ImGui::TextUnformatted(value.c_str(), value.c_str() + std::min(value.size(), size_t{4000}));
                ImGui::PopTextWrapPos();
                ImGui::EndTooltip();
            }
        }
    }

    TaskSlot<Contents> contents_;
    TaskSlot<DataSetBlock> values_;
    int document_ = -1;
    bool chosen_ = false;  ///< whether the user chose a file; otherwise the file of the selected run is shown
    std::string selected_ = "/";
    std::string shown_of_;    ///< data set and leading indices of the values that were last read
    std::vector<int> index_;  ///< indices of the leading dimensions
    int first_column_ = 0;
    size_t visible_row_ = 0;
};

}  // namespace

ViewKind trace_view() {
    return {"trace",      "Trace",      "The file as a tree, with attributes and the values of any data set",
            Dock::bottom, Topic::files, make_view<TraceView>,
            R"(
####............
#.-----.........
#.###...........
#..#.----..9630.
#..#.----..7412.
#..#............
#.###...........
...#.----..8520.)"};
}

}  // namespace kvscope::gui
