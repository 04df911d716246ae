#include "app/gui/tokens/prompt_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "app/gui/drawing/shaped_text.h"
#include "app/gui/tokens/map_key.h"
#include "app/gui/tokens/run_difference.h"

namespace kvscope::gui {
namespace {

ImU32 ink_on(ImU32 ground) {
    const ImVec4 c = ImGui::ColorConvertU32ToFloat4(ground);
    return 0.299f * c.x + 0.587f * c.y + 0.114f * c.z > 0.5f ? IM_COL32(0, 0, 0, 255) : IM_COL32_WHITE;
}

constexpr std::string_view space = "·";

ImU32 faint(ImU32 ink) { return (ink & 0xffffffu) | (90u << IM_COL32_A_SHIFT); }

/// Draws the part of a token that is in one line. The leading space is fainter than the letters.
void draw_piece(ImDrawList* list, ImVec2 at, ImU32 ink, float cell, float width, bool is_turned,
                std::string_view shown) {
    if (shown.starts_with(space) && shown.size() > space.size() && !shown.substr(space.size()).starts_with(space)) {
        shown.remove_prefix(space.size());
        width -= cell;
        draw_text(list, {is_turned ? at.x + width : at.x, at.y}, faint(ink), space);
        if (!is_turned) at.x += cell;
    }
    const bool is_blank = shown.starts_with(space) || shown.starts_with("↵") || shown.starts_with("→");
    draw_text(list, at, is_blank ? faint(ink) : ink, shown, width);
}

/// Left and right edge of a PlacedToken on the screen, and the joined text that contains the token.
struct Box {
    float left = 0;
    float right = 0;
    const JoinedTokens* joined = nullptr;
    float text = 0;  ///< left edge of the joined text in screen pixels
    float from = 0;  ///< left and right edge of the token within the joined text, in pixels
    float to = 0;
    float squeeze = 1;
};

/// Divides the width of a joined text among its tokens by their letters. Returns the right edge.
float share_out(const JoinedTokens& joined, std::span<Box> boxes, float left, float most, float cell) {
    const float blank = joined.has_space ? cell : 0;
    const std::span<const float> edges = byte_edges(joined.text);
    const float advance = std::max(*std::ranges::max_element(edges), 1.0f);
    const float squeeze = std::min((most - blank) / advance, 1.0f);
    const float text = joined.is_right_to_left ? left : left + blank;
    size_t byte = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
        const auto [low, high] = reach_of_bytes(edges, byte, joined.ends[i]);
        boxes[i] = {
            std::round(text + low * squeeze), std::round(text + high * squeeze), &joined, text, low, high, squeeze};
        byte = joined.ends[i];
    }
    if (joined.is_right_to_left)
        boxes.front().right += blank;
    else
        boxes.front().left -= blank;
    return std::round(left + advance * squeeze + blank);
}

/// Returns the boxes of the tokens in a line. Joined texts may be narrower than their cells.
std::vector<Box> boxes_of(const PromptColumn& one, const PromptGrid& grid, size_t line) {
    const auto pieces = one.lines->line(line);
    const auto all_joined = one.lines->joined_in(line);
    std::vector<Box> boxes(pieces.size());
    std::vector<size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!all_joined.empty())
        std::ranges::stable_sort(order, [&](size_t a, size_t b) { return pieces[a].cell < pieces[b].cell; });
    const size_t first = one.lines->begins[line];
    float x = one.x;
    for (const size_t i : order) {
        if (boxes[i].joined) continue;
        const auto after = std::upper_bound(all_joined.begin(), all_joined.end(), first + i,
                                            [](size_t place, const JoinedTokens& j) { return place < j.first; });
        if (after != all_joined.begin() && std::prev(after)->end > first + i) {
            const JoinedTokens& joined = *std::prev(after);
            const size_t begin = joined.first - first;
            uint32_t cells = 0;
            for (size_t k = begin; k < joined.end - first; ++k) cells += pieces[k].n_cells;
            x = share_out(joined, std::span(boxes).subspan(begin, joined.end - joined.first), x,
                          grid.cell * static_cast<float>(cells), grid.cell);
        } else {
            boxes[i].left = x;
            x += grid.cell * static_cast<float>(pieces[i].n_cells);
            boxes[i].right = x;
        }
    }
    if (one.lines->is_turned(line)) {
        const float shift = std::max(one.x + grid.cell * static_cast<float>(grid.cells) - x, 0.0f);
        for (Box& box : boxes) {
            box.left += shift;
            box.right += shift;
            box.text += shift;
        }
    }
    return boxes;
}

bool ends_at_right(const Box& box, size_t place) {
    if (!box.joined) return true;
    return box.joined->is_right_to_left ? place == box.joined->first : place + 1 == box.joined->end;
}

void draw_joined(ImDrawList* list, const Box& box, float y, ImU32 ink, bool is_first, float cell) {
    if (is_first && box.joined->has_space)
        draw_text(list, {box.joined->is_right_to_left ? box.right - cell : box.left, y}, faint(ink), space);
    draw_text_between(list, {box.text, y}, ink, box.joined->text, box.from, box.to, box.squeeze);
}

void draw_outlines(Context& context, const PromptColumn& one, const PromptSearch& search, const PlacedToken& piece,
                   ImVec2 from, ImVec2 to) {
    const int64_t token = piece.token;
    const Theme& theme = context.theme;
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto outline = [&](int64_t span_first, int64_t span_last, ImU32 color, float thickness) {
        list->AddLine({from.x, from.y + 1}, {to.x, from.y + 1}, color, thickness);
        list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, color, thickness);
        const float begin = piece.is_turned ? to.x - 1 : from.x;
        const float end = piece.is_turned ? from.x : to.x - 1;
        if (token == span_first) list->AddLine({begin, from.y}, {begin, to.y}, color, thickness);
        if (token == span_last) list->AddLine({end, from.y}, {end, to.y}, color, thickness);
    };
    const auto containing = [&](const TokenSpans& spans) {
        auto after = std::upper_bound(spans.begin(), spans.end(), token,
                                      [](int64_t t, const auto& span) { return t < span.first; });
        return after != spans.begin() && (--after)->second >= token ? after : spans.end();
    };
    if (one.pins && one.pins->contains(token)) {
        list->AddTriangleFilled(from, {from.x + 6, from.y}, {from.x, from.y + 6}, packed(theme.pin));
        list->AddLine({from.x, to.y - 2}, {to.x, to.y - 2}, packed(theme.pin), 2);
    }
    if (note_at_token(*one.document, token)) list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, packed(theme.pin), 2);
    if (const auto mark = containing(one.marks); mark != one.marks.end())
        outline(mark->first, mark->second, packed(theme.mark), 2);
    if (search.found() && one.document->id() == context.session.focus()->id()) {
        if (const auto match = containing(*search.found()); match != search.found()->end()) {
            const bool is_current = static_cast<size_t>(match - search.found()->begin()) == search.current();
            outline(match->first, match->second, packed(theme.ink, is_current ? 1.0f : 0.6f), is_current ? 2.0f : 1.0f);
        }
    }
    const auto is_here = [&](const Cursor& cursor) {
        return cursor.run.document == one.run.document && cursor.run.prompt == one.run.prompt && cursor.contains(token);
    };
    const Cursor selected = context.session.cursor();
    if (is_here(selected)) outline(selected.first_token, selected.last_token, packed(theme.accent), 2);
    if (is_here(context.session.hover())) list->AddRectFilled(from, to, packed(theme.hover, 0.3f));
}

std::pair<size_t, size_t> visible_lines(const PromptLines& lines, const PromptGrid& grid) {
    const auto first = static_cast<size_t>(std::max((grid.top - grid.origin.y) / grid.line, 0.0f));
    const auto last = static_cast<size_t>(std::max((grid.bottom - grid.origin.y) / grid.line + 1, 0.0f));
    return {std::min(first, lines.size()), std::min(last, lines.size())};
}

}  // namespace

const Note* note_at_token(const Document& document, int64_t token) {
    for (const Note& note : document.notes)
        if (note.prompt == document.prompt && token >= note.first_token && token <= note.last_token) return &note;
    return nullptr;
}

PromptColumn make_prompt_column(Session& session, const RunKey& key, const TaskSlot<PromptLines>& slot,
                                const PromptGrid& grid) {
    PromptColumn out;
    out.run = key;
    out.document = session.document(key);
    const auto text = ask_prompt_text(session, *out.document);
    out.prompt = text.value;
    if (!out.prompt) {
        out.error = text.error;
        return out;
    }
    const std::string stamp = fmt::format("{}/{}", out.prompt->number, grid.cells);
    out.lines = session.tasks
                    .ask(slot, std::to_string(key.document), stamp,
                         [prompt = out.prompt, cells = grid.cells] { return break_lines(*prompt, cells); })
                    .value;
    // The lines of the previously shown prompt do not match this prompt.
    if (out.lines && out.lines->prompt != out.prompt->number) out.lines.reset();
    if (key.valid()) {
        const auto answer = token_retention_counts(session, key);
        out.counts = answer.value;
        out.error = answer.error;
    }
    out.marks = marked_spans(session, *out.document);
    const auto pins = out.document->pins.find(out.document->prompt);
    if (pins != out.document->pins.end()) out.pins = &pins->second;
    return out;
}

void draw_prompt_column(Context& context, const PromptColumn& one, const PromptGrid& grid, const PromptSearch& search) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (!one.lines || !one.prompt) {
        const std::string text = one.prompt || one.error.empty() ? "reading …" : one.error;
        const ImVec4& color = text == one.error ? context.theme.error : context.theme.ink_quiet;
        list->AddText(nullptr, 0, {one.x, grid.top}, packed(color), text.c_str(), nullptr,
                      grid.column - ImGui::GetFontSize());
        ImGui::LogText("%s\n", text.c_str());
        return;
    }
    const auto [first, last] = visible_lines(*one.lines, grid);
    list->AddRectFilled({one.x - 4, grid.top}, {one.x + grid.column - ImGui::GetFontSize() + 4, grid.bottom},
                        packed(context.theme.ground));
    const auto& reader = *one.document->reader();
    const size_t layers = reader.has_model() ? static_cast<size_t>(reader.model().n_layers) : 1;
    const size_t rows = one.counts ? one.counts->kept->n_rows : 1;
    const size_t most = grid.by_heads ? layers * rows : layers;
    const auto in = [&](const std::shared_ptr<const TokenRetentionCounts>& of, size_t token) {
        if (!of) return 0.0;
        const auto& counts = grid.by_heads ? of->heads : of->layers;
        return token < counts.size() ? counts[token] : 0.0;
    };
    const MapColors colors = one.less ? difference_colors(context.theme, static_cast<float>(grid.farthest))
                                      : retention_count_colors(context.theme, most, grid.least);
    const float below = std::round((grid.line - ImGui::GetFontSize()) / 2);
    const auto ground_of = [&](const PlacedToken& piece) {
        const double value = in(one.counts, piece.token) - in(one.less, piece.token);
        if (one.less && value != 0)
            return map_value_to_color(colors, scale_difference_to_color(static_cast<float>(value), colors.max));
        return value > 0 ? map_value_to_color(colors, static_cast<float>(value)) : ImU32{0};
    };
    for (size_t i = first; i < last; ++i) {
        const auto pieces = one.lines->line(i);
        const std::vector<Box> boxes = boxes_of(one, grid, i);
        const float top = grid.origin.y + grid.line * static_cast<float>(i);
        for (size_t j = 0; j < pieces.size(); ++j) {
            const ImU32 ground = ground_of(pieces[j]);
            const float gap = ends_at_right(boxes[j], one.lines->begins[i] + j) ? 1 : 0;
            if (ground)
                list->AddRectFilled({boxes[j].left, top + 1}, {boxes[j].right - gap, top + grid.line - 1}, ground);
        }
        for (size_t j = 0; j < pieces.size(); ++j) {
            const PlacedToken& piece = pieces[j];
            const Box& box = boxes[j];
            const ImU32 ground = ground_of(piece);
            const ImU32 ink =
                ground ? ink_on(ground) : packed(!one.run.valid() ? context.theme.ink : context.theme.ink_quiet);
            if (box.joined) {
                draw_joined(list, box, top + below, ink, one.lines->begins[i] + j == box.joined->first, grid.cell);
            } else {
                const std::string_view shown = one.prompt->shown[piece.token];
                draw_piece(list, {box.left, top + below}, ink, grid.cell, box.right - box.left, piece.is_turned,
                           shown.substr(piece.begin, piece.end - piece.begin));
            }
            draw_outlines(context, one, search, piece, {box.left, top}, {box.right, top + grid.line});
        }
    }
}

int64_t token_under_mouse(const PromptColumn& one, const PromptGrid& grid) {
    const ImVec2 mouse = ImGui::GetMousePos();
    if (!one.lines || !ImGui::IsWindowHovered() || mouse.y < grid.top || mouse.y >= grid.bottom || mouse.x < one.x ||
        mouse.x >= one.x + grid.column)
        return -1;
    const auto line = static_cast<size_t>(std::max((mouse.y - grid.origin.y) / grid.line, 0.0f));
    if (line >= one.lines->size()) return -1;
    const auto pieces = one.lines->line(line);
    const std::vector<Box> boxes = boxes_of(one, grid, line);
    for (size_t i = 0; i < pieces.size(); ++i)
        if (mouse.x >= boxes[i].left && mouse.x < boxes[i].right) return pieces[i].token;
    return -1;
}

}  // namespace kvscope::gui
