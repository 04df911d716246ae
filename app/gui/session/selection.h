#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Identifies a run while its document is open. An id never changes and is never reused.
struct RunId {
    constexpr RunId() = default;
    constexpr explicit RunId(int64_t n) : number(n) {}

    int64_t number = -1;
    [[nodiscard]] bool valid() const { return number >= 0; }
    [[nodiscard]] auto operator<=>(const RunId&) const = default;
};

/// A run of a prompt of an open trace; `document` is Document::id().
struct RunKey {
    int document = -1;
    int prompt = 0;
    RunId run;
    [[nodiscard]] bool valid() const { return document >= 0 && run.valid(); }
    [[nodiscard]] std::string text() const { return std::to_string(document) + '.' + std::to_string(run.number); }
    [[nodiscard]] auto operator<=>(const RunKey&) const = default;
};

/// A selected or hovered place. Unset members are −1.
struct Cursor {
    RunKey run;
    int layer = -1;
    int kv_head = -1;
    int query_head = -1;  ///< chosen query head in the group of the KV head
    int64_t first_token = -1;
    int64_t last_token = -1;  ///< inclusive
    int step = -1;            ///< decode step

    [[nodiscard]] bool has_tokens() const { return first_token >= 0; }
    [[nodiscard]] bool contains(int64_t token) const {
        return has_tokens() && token >= first_token && token <= last_token;
    }
    [[nodiscard]] bool operator==(const Cursor&) const = default;
};

/// The selection, with a history like a browser's.
class Selection {
 public:
    /// Returns a copy, because the selection may change in the same frame.
    [[nodiscard]] Cursor current() const { return history_[at_]; }

    /// Selects a place and adds it to the history, unless it is already selected.
    void set(const Cursor& cursor);
    /// Selects a place at the user's request. Views scroll to it even if it is already selected.
    void go_to(const Cursor& cursor) {
        set(cursor);
        ++n_asked_;
    }
    [[nodiscard]] int n_asked() const { return n_asked_; }
    /// Returns the selection moved to a run. Layer, head and tokens are kept within the same prompt.
    [[nodiscard]] Cursor cursor_at(const RunKey& key) const;
    /// Returns the selection if it is in this prompt, else a cursor with only the prompt set.
    [[nodiscard]] Cursor cursor_in(int document, int prompt) const;
    void select_run(const RunKey& key) { set(cursor_at(key)); }
    /// @param extend whether to extend the selected range to the token instead of selecting only the token
    void select_token(int64_t token, bool extend = false);
    void select_layer(int layer);
    void select_head(int layer, int kv_head, int query_head = -1);
    void select_step(int step);
    void deselect();

    void forget(const RunKey& run);
    void forget_document(int document);
    [[nodiscard]] bool can_go_back() const { return at_ > 0; }
    [[nodiscard]] bool can_go_forward() const { return at_ + 1 < history_.size(); }
    void back();
    void forward();

 private:
    void drop_repeated();

    static constexpr size_t most = 500;
    std::vector<Cursor> history_{Cursor{}};
    size_t at_ = 0;
    int n_asked_ = 0;
};

/// The place under the mouse. Views set it while they draw, and all views read it in the next frame.
class Hover {
 public:
    [[nodiscard]] Cursor current() const { return current_; }
    /// Whether the prompt's text should scroll to the hovered token. True for maps of tokens, false for lists.
    [[nodiscard]] bool leads() const { return leads_; }
    void set(const Cursor& cursor, bool leads = false) {
        next_ = cursor;
        next_leads_ = leads;
    }
    void end_frame() {
        current_ = next_;
        leads_ = next_leads_;
        next_ = {};
        next_leads_ = false;
    }
    void forget(const RunKey& run) {
        for (Cursor* over : {&current_, &next_})
            if (over->run == run) *over = {};
    }

 private:
    Cursor current_;
    Cursor next_;
    bool leads_ = false;
    bool next_leads_ = false;
};

}  // namespace kvscope::gui
